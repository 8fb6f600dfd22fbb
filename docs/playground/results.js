// Results of `try`, drawn: figures, charts, who gets what, queues, the tree.
'use strict';
(() => {
  const TG = window.TG = window.TG || {};
  const { el } = TG;
  const css = name => `var(--${name})`;
  const COLOURS = ['c1', 'c2', 'c3', 'c4', 'c5', 'c6', 'c7', 'c8'];
  const COLOUR_OF = { without: css('without'), A: css('with'), B: css('other') };

  const probeOf = (run, id) => run && run.probes.find(probe => probe.id === id);
  const within = (run, probe) => probe ? probe.replies.filter(([sent]) => sent >= run.window[0] && sent < run.window[1]) : [];

  /** Sorted replies of a probe in the measured window, and how many were lost. */
  const figures = (run, id) => {
    const replies = within(run, probeOf(run, id));
    const got = replies.map(([, took]) => took).filter(took => took !== null).sort((a, b) => a - b);
    return { sorted: got, lost: replies.length - got.length, all: replies.length };
  };
  TG.figures = figures;
  const goodput = (run, up) => run ? run.flows.filter(flow => flow.up === up).reduce((sum, flow) => sum + flow.bytes, 0) * 8e9 / (run.window[1] - run.window[0]) : null;
  TG.goodput = goodput;

  /** The runs that a document has, by name: without, A (and B of another document). */
  TG.series = (a, b) => {
    const pick = (document, policy) => document && document.runs.find(run => run.policy === policy && !run.witnesses);
    return [['without', pick(a, false), 'without'], ['A', pick(a, true), b ? 'with A' : 'with the policy'], ['B', pick(b, true), 'with B']]
      .filter(([, run]) => run).map(([name, run, label]) => ({ name, run, label, colour: COLOUR_OF[name] }));
  };

  /** Latency over time: all pings, on a logarithmic scale. */
  TG.latency = (series, width, probe = 'ping') => {
    const end = Math.max(...series.map(({ run }) => run.window[1]));
    const begin = Math.min(...series.map(({ run }) => run.window[0]));
    const all = series.flatMap(({ run }) => figures(run, probe).sorted);
    if (!all.length) return el('p', { class: 'hint' }, 'No replies.');
    const least = Math.min(...all), most = Math.max(...all, least * 4);
    const lines = series.map(({ run, colour }) => ({
      colour, points: within(run, probeOf(run, probe)).map(([sent, took]) => [(sent - begin) / 1e9, took === null ? null : took / 1e6]),
    }));
    return TG.lines(lines, {
      width, height: width < 460 ? 200 : 230, log: true, title: 'Round trip of pings over time',
      x: [0, (end - begin) / 1e9, value => `${value} s`],
      y: [least / 1e6 * 0.9, most / 1e6 * 1.15, value => value >= 1000 ? `${value / 1000} s` : `${Number(value.toPrecision(2))} ms`],
    });
  };

  TG.cdf = (series, width) => {
    const sets = series.map(({ run, colour }) => ({ colour, sorted: figures(run, 'ping').sorted }));
    const all = sets.flatMap(({ sorted }) => sorted);
    if (!all.length) return el('p');
    const lines = sets.map(({ colour, sorted }) => ({
      colour, step: true, points: sorted.map((took, n) => [took / 1e6, (n + 1) / sorted.length * 100]),
    }));
    return TG.lines(lines, {
      width, height: 180, logx: true, title: 'Share of pings within a time',
      x: [Math.min(...all) / 1e6 * 0.95, Math.max(...all) / 1e6 * 1.05, value => value >= 1000 ? `${value / 1000} s` : `${Number(value.toPrecision(2))} ms`],
      y: [0, 100, value => `${value} %`],
    });
  };

  const caption = (bold, rest) => el('figcaption', {}, el('b', {}, bold), ` ${rest}`);
  const legend = series => TG.keys(series.map(({ colour, label }) => ({ colour, label })));

  const WORDS = {
    ping: 'Ping, 95 % within', 'voip-up': 'Call upload, 95 % within', 'voip-down': 'Call download, 95 % within',
    dns: 'DNS look-up, typically', ssh: 'SSH login, typically', web: 'Web page, typically',
  };
  const tiles = series => {
    const tile = (title, values) => {
      const most = Math.max(...values.map(({ value }) => value || 0)) || 1;
      const last = values.filter(({ name }) => name === 'A')[0] || values[0];
      const made = el('div', { class: 'tile' }, el('span', {}, title), el('b', {}, last.words));
      for (const { name, label, words } of values.filter(one => one !== last)) {
        made.append(el('span', { class: name === 'B' ? 'b' : '' }, `${label}: ${words}`));
      }
      for (const { name, value } of values) made.append(el('i', { class: 'meter', style: `width:${100 * (value || 0) / most}%;background:${COLOUR_OF[name]}` }));
      return made;
    };
    const made = [];
    const ids = series[0].run.probes.map(probe => probe.id).filter((id, n, all) => all.indexOf(id) === n);
    for (const id of ids.filter(id => WORDS[id])) {
      const share = WORDS[id].includes('95') ? 0.95 : 0.5;
      made.push(tile(WORDS[id], series.map(({ name, label, run }) => {
        const { sorted } = figures(run, id);
        const value = TG.quantile(sorted, share);
        return { name, label, value, words: TG.time(value) };
      })));
    }
    for (const [up, title] of [[true, 'Uploads carry'], [false, 'Downloads carry']]) {
      if (!series[0].run.flows.some(flow => flow.up === up)) continue;
      made.push(tile(title, series.map(({ name, label, run }) => ({ name, label, value: goodput(run, up), words: TG.rate(goodput(run, up)) }))));
    }
    return made;
  };

  /** Each transfer's share, per run. */
  const shares = series => {
    const made = [];
    const most = Math.max(1, ...series.flatMap(({ run }) => run.flows.map(flow => flow.bytes)));
    for (const { label, colour, run } of series) {
      made.push(el('p', { class: 'share-of' }, label === 'without' ? 'without a policy' : label));
      if (!run.flows.length) made.push(el('p', { class: 'hint' }, 'No transfers in this load.'));
      for (const flow of run.flows) {
        const rate = flow.bytes * 8e9 / (run.window[1] - run.window[0]);
        made.push(el('div', { class: 'share' }, el('span', {}, flow.title + (flow.class && run.policy ? ` · ${flow.class}` : '')),
          el('i', { style: `width:${100 * flow.bytes / most}%;background:${colour};opacity:${flow.up ? 1 : .6}` }), el('span', {}, TG.rate(rate))));
      }
    }
    return made;
  };

  const palette = run => {
    const sum = one => one.sent.reduce((all, bytes) => all + bytes, 0);
    const leaves = run.classes.filter(one => one.leaf && sum(one) > 0).sort((one, other) => sum(other) - sum(one));
    return new Map(leaves.slice(0, 8).map((one, n) => [one.id, css(COLOURS[n])]));
  };

  /** Bytes waiting in each class, and in the buffers outside. */
  const queues = (series, width, documents) => {
    const charts = [];
    for (const { name: own, label, run } of series) {
      const document = documents[own === 'B' ? 1 : 0];
      const kinds = new Map(document.tree.map(node => [node.device === document.device ? node.id : `${node.device} ${node.id}`, node]));
      const name = one => [one.id, kinds.has(one.id) && !kinds.get(one.id).is_class ? kinds.get(one.id).kind : '', one.title].filter(Boolean).join(' ');
      const colours = palette(run);
      const step = run.step_ns;
      const points = values => values.map((value, n) => [(n + 1) * step / 1e9 - run.window[0] / 1e9, value / 1e3]).filter(([at]) => at >= 0);
      const lines = run.classes.filter(one => colours.has(one.id)).map(one => ({ colour: colours.get(one.id), label: name(one), points: points(one.backlog) }));
      for (const buffer of run.buffers) {
        if (buffer.backlog.some(bytes => bytes > 0)) lines.push({ colour: buffer.title === 'modem' ? css('ink') : css('soft'), dash: buffer.title === 'modem' ? '6 3' : '2 3', label: `${buffer.title} buffer`, thin: true, points: points(buffer.backlog) });
      }
      const most = Math.max(1, ...lines.flatMap(line => line.points.map(([, y]) => y)));
      charts.push(el('figure', {}, caption(label, '· kB waiting'), TG.lines(lines, {
        width, height: 150, title: `Bytes waiting, ${label}`, x: [0, (run.window[1] - run.window[0]) / 1e9, value => `${value} s`], y: [0, most * 1.08, value => `${value} kB`],
      }), TG.keys(lines)));
    }
    return charts;
  };

  /** The qdiscs and classes, each with the share of its device's bytes that it sent. */
  const tree = (document, run) => {
    const colours = palette(run);
    const sent = new Map(run.classes.map(one => [one.id, one.sent.reduce((sum, bytes) => sum + bytes, 0)]));
    const total = Math.max(1, ...sent.values());
    const made = [];
    for (const device of [...new Set(document.tree.map(node => node.device))]) {
      const nodes = document.tree.filter(node => node.device === device);
      if (nodes.length > 400) { made.push(el('p', { class: 'hint' }, `${device}: ${nodes.length} qdiscs and classes`)); continue; }
      const below = (parent, depth) => nodes.filter(node => node.parent === parent && node.id !== parent).map(node => {
        const id = device === document.device ? node.id : `${device} ${node.id}`;
        const share = sent.get(id);
        const line = el('div', { class: node.unreachable ? 'node dead' : 'node', title: node.options },
          el('code', {}, `${node.id} ${node.kind}`), ' ',
          el('span', { class: 'soft' }, [node.title, node.rate_bits ? TG.rate(node.rate_bits) : '', node.ceil_bits && node.ceil_bits !== node.rate_bits ? `≤ ${TG.rate(node.ceil_bits)}` : '',
            share !== undefined ? `sent ${TG.bytes(share)}` : '', node.unreachable ? `never reached: ${node.unreachable}` : ''].filter(Boolean).join(' · ')));
        if (share !== undefined) line.append(el('i', { style: `width:${100 * share / total}%;background:${colours.get(id) || css('soft')}` }));
        const children = depth < 12 ? below(node.id, depth + 1) : [];
        return el('li', {}, line, children.length ? el('ul', {}, ...children) : null);
      });
      made.push(el('p', { class: 'hint' }, device), el('ul', { class: 'tree' }, ...below('', 0)));
    }
    return made;
  };

  /** Draws everything that the documents of A and B have. */
  TG.draw = (a, b) => {
    const at = id => document.getElementById(id);
    const series = TG.series(a, b);
    if (!series.length) return;
    const width = Math.max(320, Math.min(900, at('latency').clientWidth || 640));
    at('verdict').textContent = a.verdict[0] || '';
    at('more').replaceChildren(...a.verdict.slice(1, 6).map(text => el('li', {}, text)));
    if (b && b.verdict[0]) at('more').append(el('li', {}, `B: ${b.verdict[0]}`));
    at('tiles').replaceChildren(...tiles(series));
    at('latency').replaceChildren(caption('Ping, round trip', 'over time; the scale is logarithmic.'), TG.latency(series, width), legend(series));
    at('cdf').replaceChildren(caption('Ping, CDF:', 'the share of replies within a time.'), TG.cdf(series, width));
    at('shares').replaceChildren(...shares(series));
    at('queues').replaceChildren(...queues(series, width, [a, b]));
    const trees = [];
    for (const { name, run } of series.filter(({ name }) => name !== 'without')) {
      if (b) trees.push(el('p', { class: 'share-of' }, name));
      trees.push(...tree(name === 'B' ? b : a, run));
    }
    at('tree').replaceChildren(...trees);
    at('notes').replaceChildren(...a.notes.map(text => el('li', {}, text)));
    at('command').textContent = `The same on your computer: ${a.command}`;
  };
})();
