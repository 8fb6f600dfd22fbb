(() => {
  const root = document.documentElement;
  const theme = new URLSearchParams(location.search).get('theme');
  if (theme) root.dataset.theme = theme;

  // Links to sections become tabs; a choice with a key is made in every load at once.
  const navs = [...document.querySelectorAll('nav[data-tabs]')];
  const links = nav => [...nav.querySelectorAll('a')];
  const show = (nav, chosen) => links(nav).forEach(link => {
    const on = link === chosen;
    link.setAttribute('aria-selected', on);
    link.tabIndex = on ? 0 : -1;
    document.getElementById(link.hash.slice(1)).hidden = !on;
  });
  const choose = (nav, link) => {
    show(nav, link);
    if (link.dataset.key) navs.forEach(other => {
      const same = links(other).find(l => l.dataset.key === link.dataset.key);
      if (other !== nav && same) show(other, same);
    });
  };
  navs.forEach(nav => {
    nav.setAttribute('role', 'tablist');
    links(nav).forEach((link, n, all) => {
      const panel = document.getElementById(link.hash.slice(1));
      link.setAttribute('role', 'tab');
      link.setAttribute('aria-controls', panel.id);
      panel.setAttribute('role', 'tabpanel');
      link.addEventListener('click', event => { event.preventDefault(); choose(nav, link); });
      link.addEventListener('keydown', event => {
        const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
        if (!step) return;
        const next = all[(n + step + all.length) % all.length];
        choose(nav, next);
        next.focus();
        event.preventDefault();
      });
    });
    show(nav, links(nav).find(link => 'first' in link.dataset) || links(nav)[0]);
  });
  // An address may name a choice.
  const named = navs.flatMap(nav => links(nav).map(link => [nav, link])).find(([, link]) => link.hash && link.hash === location.hash);
  if (named) {
    const panel = named[0].closest('.panel');
    const tab = panel && navs.flatMap(nav => links(nav).map(link => [nav, link])).find(([, link]) => link.hash === '#' + panel.id);
    if (tab) choose(...tab);
    choose(...named);
  }

  // Comma-separated values (RFC 4180) as rows of texts.
  const parsed = text => text.trimEnd().split('\n').map(line =>
    [...line.matchAll(/(?:^|,)(?:"((?:[^"]|"")*)"|([^,]*))/g)].map(m => m[1] === undefined ? m[2] : m[1].replaceAll('""', '"')));

  // What is under the pointer, read from the chart's own figures.
  document.querySelectorAll('figure[data-read]').forEach(figure => {
    const text = figure.querySelector('.csv pre');
    const [heads, ...rows] = parsed(text ? text.textContent : '');
    if (!rows.length) return;
    const upwards = figure.dataset.read === 'upwards';
    const box = figure.appendChild(document.createElement('div'));
    const hair = figure.appendChild(document.createElement('div'));
    box.className = 'readout';
    hair.className = 'hair';
    box.hidden = hair.hidden = true;
    const away = () => { box.hidden = hair.hidden = true; };
    const move = event => {
      const plots = [...figure.querySelectorAll('.marks')].map(svg => svg.getBoundingClientRect());
      const at = plots.find(r => event.clientX >= r.left && event.clientX <= r.right && event.clientY >= r.top && event.clientY <= r.bottom);
      if (!at) return away();
      const across = (event.clientX - at.left) / at.width;
      const share = 100 * (1 - (event.clientY - at.top) / at.height);
      const row = upwards
        ? rows.reduce((a, b) => Math.abs(parseFloat(b[0]) - share) < Math.abs(parseFloat(a[0]) - share) ? b : a)
        : rows[Math.min(rows.length - 1, Math.floor(across * rows.length))];
      box.replaceChildren(...row.map((text, n) => {
        const line = document.createElement(n ? 'div' : 'b');
        const [, name, unit] = heads[n].match(/^(.*?)(?: \(([^()]*)\))?$/);
        const next = rows[rows.indexOf(row) + 1];
        // Spans follow each other; of the last only the beginning is known.
        const from = !n && name.endsWith(' from');
        const span = from ? (next ? text + '–' + next[0] : 'from ' + text) : text;
        const value = text === '' ? '–' : unit ? span + ' ' + unit : span;
        line.textContent = n ? name + ' ' + value : (upwards ? value + ' ' + name : value);
        return line;
      }));
      box.hidden = hair.hidden = false;
      const frame = figure.getBoundingClientRect();
      const left = event.clientX - frame.left, top = at.top - frame.top;
      box.style.left = (across < .5 ? left + 14 : Math.max(0, left - box.offsetWidth - 14)) + 'px';
      box.style.top = top + 'px';
      if (upwards) Object.assign(hair.style, { left: at.left - frame.left + 'px', top: event.clientY - frame.top + 'px', width: at.width + 'px', height: '1px' });
      else Object.assign(hair.style, { left: left + 'px', top: top + 'px', width: '1px', height: at.height + 'px' });
    };
    figure.addEventListener('pointermove', move);
    figure.addEventListener('pointerleave', away);
  });
})();
