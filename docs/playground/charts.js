// Charts as SVG elements, and numbers as words. Everything is set as text or attribute, nothing as markup.
'use strict';
(() => {
  const TG = window.TG = window.TG || {};
  const NS = 'http://www.w3.org/2000/svg';

  /** An element of the page: `el('p', { class: 'x' }, 'text', child)`. */
  TG.el = (name, attributes = {}, ...children) => {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) {
      if (value === null || value === undefined || value === false) continue;
      if (key.startsWith('on')) made.addEventListener(key.slice(2), value);
      else made.setAttribute(key, value === true ? '' : value);
    }
    made.append(...children.filter(child => child !== null && child !== undefined));
    return made;
  };
  const svg = (name, attributes = {}, ...children) => {
    const made = document.createElementNS(NS, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children);
    return made;
  };

  const digits = (value, unit) => {
    const places = value >= 100 ? 0 : value >= 10 ? 1 : value >= 1 ? 2 : 3;
    return `${Number(value.toFixed(places)).toString()} ${unit}`;
  };
  /** Nanoseconds in words. */
  TG.time = ns => ns === null || ns === undefined || !isFinite(ns) ? '–'
    : ns >= 1e9 ? digits(ns / 1e9, 's') : ns >= 1e6 ? digits(ns / 1e6, 'ms') : digits(ns / 1e3, 'µs');
  /** Bits per second in words. */
  TG.rate = bits => bits >= 1e9 ? digits(bits / 1e9, 'Gbit/s') : bits >= 1e6 ? digits(bits / 1e6, 'Mbit/s')
    : digits(bits / 1e3, 'kbit/s');
  TG.bytes = bytes => bytes >= 1e6 ? digits(bytes / 1e6, 'MB') : bytes >= 1e3 ? digits(bytes / 1e3, 'kB') : `${bytes} B`;

  /** The value that a share of sorted values is at most: nearest rank. */
  TG.quantile = (sorted, share) => sorted.length ? sorted[Math.min(sorted.length - 1, Math.max(0, Math.ceil(share * sorted.length) - 1))] : null;

  /** Round ticks between two values. */
  const ticks = (from, to, many) => {
    const raw = (to - from) / many;
    if (!(raw > 0)) return [from];
    const power = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 5, 10].find(times => times * power >= raw) * power;
    const found = [];
    for (let at = Math.ceil(from / step) * step; at <= to + step * 1e-6; at += step) found.push(at);
    return found;
  };
  const logTicks = (from, to) => {
    const found = [];
    for (let power = Math.floor(Math.log10(from)); power <= Math.ceil(Math.log10(to)); power++) {
      for (const times of [1, 2, 5]) {
        const at = times * 10 ** power;
        if (at >= from * 0.999 && at <= to * 1.001) found.push(at);
      }
    }
    return found.length > 7 ? found.filter((_, n) => n % 2 === 0) : found;
  };

  /**
   * Lines over an axis. lines: [{ colour, label, points: [[x, y]], step, fill, dots }]; options: { width, height,
   * x: [from, to, words], y: [from, to, words], log (of y), logx, title }.
   */
  TG.lines = (lines, options) => {
    const { width = 640, height = 220 } = options;
    const [left, right, top, bottom] = [58, 10, 10, 24];
    const [x0, x1, xWords] = options.x;
    let [y0, y1, yWords] = options.y;
    if (!(y1 > y0)) y1 = y0 + 1;
    const lx = options.logx ? Math.log10 : value => value;
    const ly = options.log ? Math.log10 : value => value;
    const px = value => left + (lx(value) - lx(x0)) / (lx(x1) - lx(x0) || 1) * (width - left - right);
    const py = value => height - bottom - (ly(Math.max(value, options.log ? y0 : value)) - ly(y0)) / (ly(y1) - ly(y0) || 1) * (height - top - bottom);
    const root = svg('svg', { class: 'chart', viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': options.title });
    for (const at of options.log ? logTicks(y0, y1) : ticks(y0, y1, 4)) {
      root.append(svg('line', { class: 'grid', x1: left, x2: width - right, y1: py(at), y2: py(at) }));
      const label = svg('text', { x: left - 8, y: py(at) + 4, 'text-anchor': 'end' });
      label.textContent = yWords(at);
      root.append(label);
    }
    const across = options.logx ? logTicks(x0, x1) : ticks(x0, x1, width < 420 ? 3 : 6);
    for (const at of across) {
      const label = svg('text', { x: px(at), y: height - 6, 'text-anchor': px(at) > width - 30 ? 'end' : 'middle' });
      label.textContent = xWords(at);
      root.append(label);
      if (options.logx) root.append(svg('line', { class: 'grid', x1: px(at), x2: px(at), y1: top, y2: height - bottom }));
    }
    for (const line of lines) {
      let path = '', open = false;
      for (const [x, y] of line.points) {
        if (y === null) { open = false; continue; }
        const point = `${px(x).toFixed(1)} ${py(y).toFixed(1)}`;
        path += open ? (line.step ? `H${px(x).toFixed(1)}V${py(y).toFixed(1)}` : `L${point}`) : `M${point}`;
        open = true;
      }
      if (!path) continue;
      if (line.fill) root.append(svg('path', { d: `${path}L${px(line.points[line.points.length - 1][0]).toFixed(1)} ${py(y0)}L${px(line.points[0][0]).toFixed(1)} ${py(y0)}Z`, fill: line.colour, opacity: 0.18 }));
      root.append(svg('path', { d: path, fill: 'none', stroke: line.colour, 'stroke-width': line.thin ? 1.1 : 1.8, 'stroke-linejoin': 'round', 'stroke-dasharray': line.dash || 'none' }));
    }
    return root;
  };

  /** A list of colours and what they are. */
  TG.keys = entries => TG.el('ul', { class: 'keys' }, ...entries.map(({ colour, label }) =>
    TG.el('li', {}, TG.el('i', { class: 'chip', style: `background:${colour}` }), TG.el('span', {}, label))));
})();
