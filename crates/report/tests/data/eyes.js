{
  const all = (what, where = document) => [...where.querySelectorAll(what)];
  const shown = element => element.getClientRects().length > 0;
  const name = element => {
    const figure = element.closest('figure');
    const caption = figure && figure.querySelector('figcaption').textContent.slice(0, 60);
    const section = element.closest('.panel');
    return [section ? section.id : '', caption || '', element.tagName + '.' + (element.getAttribute('class') || ''),
      element.textContent.slice(0, 40)].join(' | ');
  };
  const found = { width: innerWidth, dark: matchMedia('(prefers-color-scheme: dark)').matches };
  found.panels = all('.panel').length;
  found.panels_at_first = all('.panel').filter(shown).map(panel => panel.id);
  found.probes_at_first = all('.probe').filter(shown).length;

  // A choice of a load and of a probe, as a click makes it.
  const tabs = all('nav[data-tabs] [role=tab]');
  if (tabs.length) {
    tabs.find(tab => tab.hash === '#load-1').click();
    const picks = all('#load-1 .picks a');
    if (picks.length > 1) picks[1].click();
  }
  found.after_choice = tabs.length ? all('.panel, .probe').filter(shown).map(part => part.id) : [];

  // Everything open, to be measured.
  const open = () => all('[hidden]').filter(part => !part.matches('.readout, .hair')).forEach(part => { part.hidden = false; });
  open();

  // A pointer in the middle of a chart.
  const figure = document.querySelector('#load-1 figure[data-read]') || document.querySelector('figure[data-read]');
  const middle = figure.querySelector('.marks').getBoundingClientRect();
  figure.dispatchEvent(new PointerEvent('pointermove', {
    clientX: middle.left + middle.width / 2, clientY: middle.top + middle.height / 2, bubbles: true }));
  const read = all('.readout', figure).flatMap(box => [...box.children].map(line => line.textContent));
  found.read_out = read.slice(0, 4).join(' · ');
  figure.dispatchEvent(new PointerEvent('pointerleave'));

  // Nothing is wider than the page, but for what scrolls in its box.
  const scrolls = element => element.closest('.scroll, .wide, pre');
  found.too_wide = all('body *').filter(e => shown(e) && !scrolls(e) && !e.closest('svg, details:not([open])'))
    .filter(e => { const r = e.getBoundingClientRect(); return r.width > 0 && (r.right > innerWidth + .5 || r.left < -.5); }).map(name);
  if (document.documentElement.scrollWidth > innerWidth) found.too_wide.push('the page: ' + document.documentElement.scrollWidth);
  all('.chart:not(.fixed) text').forEach(text => {
    const r = text.getBoundingClientRect();
    if (r.left < -.5 || r.right > innerWidth + .5) found.too_wide.push(name(text));
  });

  // Each figure holds marks, in their place; each chart says what it shows; its words do not cover each other.
  found.figures = all('figure').length;
  found.empty = [];
  found.outside = [];
  found.covered = [];
  all('figure').forEach(figure => {
    if (!figure.querySelector('svg')) found.empty.push(name(figure));
  });
  // (A drawing that a narrow page replaces by text is not there.)
  all('svg.chart').filter(chart => !chart.closest('.only-wide') || shown(chart)).forEach(chart => {
    const marks = all('.mark', chart).filter(mark => mark.getBBox().width + mark.getBBox().height > 0);
    if (!marks.length) found.empty.push('no marks: ' + name(chart));
    if (!chart.getAttribute('aria-label') || !chart.querySelector('desc').textContent) found.empty.push('no words: ' + name(chart));
    marks.forEach(mark => {
      const paper = (mark.closest('.marks') || chart).getBoundingClientRect(), r = mark.getBoundingClientRect();
      const slack = 3;
      if (r.left < paper.left - slack || r.right > paper.right + slack || r.top < paper.top - slack || r.bottom > paper.bottom + slack)
        found.outside.push(name(mark));
    });
    const words = all('text', chart).map(text => [text, text.getBoundingClientRect()]);
    words.forEach(([text, a], n) => words.slice(n + 1).forEach(([other, b]) => {
      const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
      const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
      // Lines of text may touch.
      if (wide > 1 && high > 4) found.covered.push(name(text) + ' / ' + other.textContent);
    }));
  });
  all('figure:not(:has(details)):not(.wide)').forEach(figure => found.empty.push('no table: ' + name(figure)));
  all('figure details').forEach(details => {
    const values = details.querySelector('pre');
    // Comma-separated values: a head, and rows of as many fields (a quoted one may hold commas).
    const fields = line => line.replace(/"([^"]|"")*"/g, '').split(',').length;
    const lines = values && details.matches('.csv') ? values.textContent.trimEnd().split('\n') : [];
    const whole = lines.length > 1 && lines.every(line => fields(line) === fields(lines[0]));
    if (!details.querySelector('tbody tr') && !whole) found.empty.push('empty table: ' + name(details));
  });

  // Words are dark enough on what they stand on (WCAG 2.2, 1.4.3).
  const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
  const pixel = colour => { canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1); return [...canvas.getImageData(0, 0, 1, 1).data]; };
  const light = colour => {
    const [r, g, b] = pixel(colour).slice(0, 3).map(c => c / 255).map(c => c <= .04045 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4);
    return .2126 * r + .7152 * g + .0722 * b;
  };
  const contrast = (a, b) => { const [x, y] = [light(a), light(b)].sort((p, q) => q - p); return (x + .05) / (y + .05); };
  const style = getComputedStyle(document.documentElement);
  const grounds = ['--paper', '--panel'].map(variable => style.getPropertyValue(variable));
  const colours = new Map();
  all('body *').filter(e => [...e.childNodes].some(node => node.nodeType === 3 && node.textContent.trim()) && !e.closest('script, style, desc, title'))
    .forEach(e => { const s = getComputedStyle(e); colours.set(e.closest('svg') ? s.fill : s.color, e); });
  found.pale = [];
  colours.forEach((element, colour) => grounds.forEach(ground => {
    const ratio = contrast(colour, ground);
    if (ratio < 4.5) found.pale.push(colour + ' on ' + ground + ': ' + ratio.toFixed(2) + ' ' + name(element));
  }));
  // Marks need less (1.4.11).
  [1, 2, 3, 4, 5, 6, 7, 8].map(n => style.getPropertyValue('--c' + n)).forEach((colour, n) => {
    const ratio = contrast(colour, grounds[0]);
    if (ratio < 2.7) found.pale.push('colour ' + (n + 1) + ': ' + ratio.toFixed(2));
  });

  found.requests = performance.getEntriesByType('resource').map(entry => entry.name).filter(url => !url.startsWith('data:'));
  found.errors = heard.errors;
  found.refused = heard.refused;
  parent.postMessage(JSON.stringify(found), '*');
}
