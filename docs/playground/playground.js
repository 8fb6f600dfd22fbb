// The page: state, editor, line, and what is asked of the engine when something changes.
'use strict';
(() => {
  const { el } = window.TG;
  const TG = window.TG;
  const at = id => document.getElementById(id);
  const M = 1e6;
  const first = { up: 20 * M, down: 100 * M, rtt: 30, buffer: 1500 };
  const fresh = () => ({ a: TG.textOf('cake', first), b: null, from: { a: 'cake', b: null }, ...first, varies: '', load: 'both', flows: 0, seconds: 20, seed: 1, packet: 'udp 192.168.1.7:5060 > 203.0.113.9:5060 dscp EF len 200' });
  let state = fresh();
  let side = 'a';
  TG.last = { a: null, b: null };

  // ---- State in the address: deflated JSON.
  const KEYS = ['a', 'b', 'from', 'up', 'down', 'rtt', 'buffer', 'varies', 'load', 'flows', 'seconds', 'seed', 'packet'];
  const pack = async text => {
    const stream = new Blob([text]).stream().pipeThrough(new CompressionStream('deflate-raw'));
    const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
    let letters = '';
    for (let n = 0; n < bytes.length; n += 8192) letters += String.fromCharCode(...bytes.subarray(n, n + 8192));
    return btoa(letters).replace(/\+/g, '-').replace(/\//g, '_').replace(/=+$/, '');
  };
  const unpack = async text => {
    const bytes = Uint8Array.from(atob(text.replace(/-/g, '+').replace(/_/g, '/')), letter => letter.charCodeAt(0));
    return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate-raw'))).text();
  };
  /** Takes over what has the type that it should have: an address is a stranger's text. */
  const adopt = given => {
    const clean = fresh();
    for (const key of ['up', 'down', 'rtt', 'buffer', 'flows', 'seconds', 'seed']) {
      const { from = 0, to = 1000 } = SLIDERS.find(one => one.key === key) || {};
      if (Number.isFinite(given[key])) clean[key] = Math.round(Math.min(to, Math.max(from, given[key])));
    }
    for (const key of ['a', 'varies', 'load', 'packet']) if (typeof given[key] === 'string') clean[key] = given[key];
    clean.b = typeof given.b === 'string' ? given.b : null;
    const known = id => TG.gallery.some(entry => entry.id === id) ? id : null;
    clean.from = { a: known(given.from && given.from.a), b: known(given.from && given.from.b) };
    return clean;
  };
  const MAX_ADDRESS = 60000;
  let saved = '';
  const remember = async () => {
    const address = await pack(JSON.stringify(Object.fromEntries(KEYS.map(key => [key, state[key]]))));
    if (address.length > MAX_ADDRESS) return false;
    saved = `#s=${address}`;
    if (at('story').hidden) history.replaceState(null, '', saved);
    return true;
  };
  const recall = async () => {
    const found = location.hash.match(/^#s=([\w-]+)$/);
    if (!found) return;
    try { state = adopt(JSON.parse(await unpack(found[1]))); } catch (_) { tell('The address does not hold a state of this page; it begins afresh.'); }
  };

  const tell = text => { at('notice').textContent = text || ''; at('notice').hidden = !text; };

  // ---- The request.
  const nameOf = text => {
    const line = text.split('\n').map(line => line.trim()).find(line => line && !line.startsWith('#')) || '';
    if (/^\[|^[\w-]+\s*=\s*["\[\d]/.test(line)) return 'policy.toml';
    if (/^(qdisc|class|filter|action|chain)\s/.test(line)) return 'policy.batch';
    return 'policy.sh';
  };
  const roots = text => [...new Set([...text.matchAll(/qdisc\s+(?:add|replace)\s+dev\s+(\S+)/g)].map(found => found[1]).filter(dev => !/^ifb/.test(dev)))];
  TG.request = (text, seconds, line = state) => {
    const request = { do: 'try', name: nameOf(text), policy: text, duration: `${seconds}s`, load: [line.load], seed: line.seed };
    if (line.varies) request.preset = line.varies;
    else Object.assign(request, { up: `${Math.round(line.up)}bit`, down: `${Math.round(line.down)}bit`, buffer: `${line.buffer}ms` });
    request.rtt = `${line.rtt}ms`;
    if (line.flows) request.flows = line.flows;
    const devices = roots(text);
    if (request.name !== 'policy.toml' && devices.length > 1) [request.dev, request.lan] = devices;
    return request;
  };

  // ---- Engines: one looks at the text, one for each policy simulates.
  const looker = new TG.Engine();
  const engines = { a: new TG.Engine(), b: new TG.Engine() };

  let round = 0, coarse = false, again = false;
  /** First coarse, then exactly. A change meanwhile waits for the coarse figures, which are quick, and ends the exact ones. */
  const simulate = async () => {
    if (coarse) { again = true; return; }
    const now = ++round;
    for (const seconds of state.seconds > 4 ? [4, state.seconds] : [state.seconds]) {
      coarse = seconds <= 4;
      const sides = state.b === null ? ['a'] : ['a', 'b'];
      const answers = await Promise.all(sides.map(one => engines[one].ask(TG.request(state[one], seconds))));
      const replaced = now !== round || answers.some(answer => answer.code === 3);
      if (coarse) {
        coarse = false;
        if (again) { again = false; setTimeout(simulate); }
      }
      if (replaced) return;
      const failed = answers.findIndex(answer => answer.code !== 0);
      if (failed >= 0) return refused(answers[failed], sides[failed]);
      tell('');
      at('status').className = 'status';
      const took = Math.max(...answers.map(answer => answer.took));
      TG.last = { a: answers[0], b: answers[1] || null };
      document.querySelector('.right').classList.remove('stale');
      TG.draw(answers[0].document, answers[1] ? answers[1].document : null);
      at('status').textContent = `${seconds} s of the line, without and with the policy, computed in ${Math.round(took)} ms${seconds < state.seconds ? ' …' : ''}`;
    }
    document.documentElement.dataset.done = String(now);
  };
  const refused = (answer, one) => {
    document.documentElement.dataset.done = String(round);
    if (answer.code === 2) return tell(`The simulator stopped (${answer.text}) and was started again. Please report this with the link to this page.`);
    document.querySelector('.right').classList.add('stale');
    const { reason, remedy } = answer.refused;
    at('status').className = 'status bad';
    at('status').textContent = `${state.b === null ? '' : `${one.toUpperCase()}: `}${reason}${remedy ? `; ${remedy}` : ''}`;
  };

  // ---- Findings and mistakes, in the editor and below it.
  let shown = [];
  const look = async () => {
    const text = state[side];
    const answer = await looker.ask({ do: 'check', name: nameOf(text), policy: text });
    if (answer.code === 3 || text !== state[side]) return;
    if (answer.code === 2) return tell(`The checker stopped (${answer.text}) and was started again.`);
    shown = answer.code === 0
      ? answer.document.findings.map(finding => ({
        level: finding.level, line: finding.place && finding.place.line,
        from: finding.place && finding.place.column ? finding.place.column - 1 : null, to: finding.place && finding.place.end_column ? finding.place.end_column - 1 : null,
        title: `${finding.rule}: ${finding.what}`, because: finding.because, fix: finding.fix,
      }))
      : mistakes(answer.refused);
    at('findings').replaceChildren(...shown.slice(0, 30).map(finding), ...(shown.length ? [] : [el('p', { class: 'hint' }, 'check: no findings.')]));
    document.documentElement.dataset.checked = String(Number(document.documentElement.dataset.checked || 0) + 1);
    mark();
    explain();
  };
  const mistakes = refused => {
    const place = one => ({ level: 'error', line: one.line, from: one.columns && one.columns[0], to: one.columns && one.columns[1], title: one.reason, because: one.remedy });
    const whole = { level: 'error', line: null, title: refused.reason, because: refused.remedy };
    return refused.places.length ? refused.places.map(place) : [whole];
  };
  const finding = one => {
    const made = el('div', { class: `finding ${one.level}` });
    const title = el('p');
    if (one.line) title.append(el('a', { href: `#line${one.line}`, onclick: event => { event.preventDefault(); go(one); } }, `line ${one.line}`));
    title.append(one.title);
    made.append(title);
    if (one.because) made.append(el('p', { class: 'because' }, one.because));
    if (one.fix && one.fix.edits.length) made.append(el('p', {}, el('button', { type: 'button', onclick: () => fix(one.fix) }, `Fix: ${one.fix.what}`)));
    else if (one.fix) made.append(el('p', { class: 'because' }, one.fix.what));
    return made;
  };
  const lineStart = (text, line) => { let start = 0; for (let n = 1; n < line; n++) start = text.indexOf('\n', start) + 1 || text.length; return start; };
  const go = ({ line, from, to }) => {
    const box = at('policy');
    const start = lineStart(box.value, line);
    const end = box.value.indexOf('\n', start) < 0 ? box.value.length : box.value.indexOf('\n', start);
    box.focus();
    box.setSelectionRange(from === null || from === undefined ? start : start + from, to === null || to === undefined ? end : start + to);
    box.scrollTop = Math.max(0, (line - 4) * 19.5);
    scrolled();
  };
  const fix = ({ edits }) => {
    const lines = state[side].split('\n');
    for (const edit of [...edits].sort((one, other) => other.line - one.line || (other.column || 0) - (one.column || 0))) {
      const letters = [...lines[edit.line - 1]];
      if (edit.column) letters.splice(edit.column - 1, edit.end_column - edit.column, edit.with);
      lines[edit.line - 1] = edit.column ? letters.join('') : edit.with;
    }
    setText(lines.join('\n'));
  };

  // ---- The editor: a text field, line numbers beside it, marks beneath it.
  const scrolled = () => {
    const box = at('policy');
    at('numbers').scrollTop = box.scrollTop;
    at('marks').scrollTop = box.scrollTop;
    at('marks').scrollLeft = box.scrollLeft;
  };
  const MAX_MARKED = 2000;
  const mark = () => {
    const lines = state[side].split('\n');
    const worst = new Map();
    const order = { note: 0, warning: 1, error: 2 };
    for (const one of shown) {
      if (!one.line) continue;
      const known = worst.get(one.line);
      if (!known || order[one.level] > order[known.level]) worst.set(one.line, one);
    }
    const many = Math.min(lines.length, 20000);
    if (!worst.size) {
      at('numbers').textContent = Array.from({ length: many }, (_, n) => n + 1).join('\n');
      at('marks').textContent = '';
      return scrolled();
    }
    const numbers = [], marks = [];
    for (let n = 1; n <= Math.min(many, MAX_MARKED); n++) {
      const one = worst.get(n);
      numbers.push(one ? el('span', { class: one.level }, String(n)) : String(n), '\n');
      const text = [...lines[n - 1]];
      if (!one) { marks.push(`${lines[n - 1]}\n`); continue; }
      const from = one.from === null || one.from === undefined ? text.findIndex(letter => letter.trim()) : one.from;
      const to = one.to === null || one.to === undefined ? text.length : one.to;
      marks.push(text.slice(0, from).join(''), el('span', { class: one.level }, text.slice(from, to).join('')), `${text.slice(to).join('')}\n`);
    }
    if (many > MAX_MARKED) numbers.push(Array.from({ length: many - MAX_MARKED }, (_, n) => n + MAX_MARKED + 1).join('\n'));
    at('numbers').replaceChildren(...numbers);
    at('marks').replaceChildren(...marks);
    scrolled();
  };
  const setText = (text, from = null) => {
    state[side] = text;
    state.from[side] = from;
    if (at('policy').value !== text) at('policy').value = text;
    at('gallery').value = from || '';
    shown = [];
    mark();
    changed();
  };

  // ---- Explain.
  const explain = async () => {
    const packet = state.packet.trim();
    if (!packet) return at('explained').replaceChildren();
    const text = state[side];
    let answer = await looker.ask({ do: 'explain', name: nameOf(text), policy: text, packet });
    // Which device, where it may be any: the first.
    const by = answer.refused && answer.refused.reason.match(/may leave by (\S+)/);
    if (by) answer = await looker.ask({ do: 'explain', name: nameOf(text), policy: text, packet: `${packet} out ${by[1].replace(/,$/, '')}` });
    if (answer.code === 3 || packet !== state.packet.trim()) return;
    if (answer.code !== 0) return at('explained').replaceChildren(el('p', { class: 'hint' }, answer.refused ? `${answer.refused.reason}${answer.refused.remedy ? `; ${answer.refused.remedy}` : ''}` : String(answer.text)));
    const [story] = answer.document.packets;
    const sections = story.sections || [];
    const line = one => el('li', { class: one.outcome === 'met' ? 'matched' : 'soft' },
      one.place ? el('a', { href: `#line${one.place.line}`, onclick: event => { event.preventDefault(); go(one.place); } }, `line ${one.place.line}`) : null, one.place ? ' ' : null,
      one.what, el('span', { class: 'soft' }, [].concat(one.why || []).length ? ` – ${[].concat(one.why).join('; ')}` : ''));
    at('explained').replaceChildren(
      story.end ? el('p', { class: 'end' }, story.end.dropped ? '' : 'It waits in: ', el('b', {}, story.end.text)) : '',
      ...sections.flatMap(section => [el('p', { class: 'hint' }, section.title), el('ul', { class: 'path' }, ...section.lines.slice(0, 40).map(line))]));
  };

  // ---- The line: sliders on a logarithmic scale.
  const SLIDERS = [
    { key: 'up', label: 'Upload', from: .25 * M, to: 200 * M, words: TG.rate },
    { key: 'down', label: 'Download', from: .5 * M, to: 500 * M, words: TG.rate },
    { key: 'rtt', label: 'Round trip', from: 2, to: 600, words: ms => `${ms} ms` },
    { key: 'buffer', label: 'Modem buffer', from: 2, to: 3000, words: ms => `${ms} ms` },
    { key: 'seconds', label: 'Simulated', from: 4, to: 60, words: s => `${s} s`, linear: true },
  ];
  const two = value => Number(value.toPrecision(2));
  /** A slider on a logarithmic scale, its value in words beside it. */
  TG.slider = ({ label, from, to, value, words, linear }, changed) => {
    const place = value => linear ? (value - from) / (to - from) * 1000 : Math.log(value / from) / Math.log(to / from) * 1000;
    const read = place => linear ? Math.round(from + (to - from) * place / 1000) : two(from * (to / from) ** (place / 1000));
    const output = el('output', {}, words(value));
    const input = el('input', { type: 'range', min: 0, max: 1000, step: 1, value: place(value), 'aria-label': label, 'aria-valuetext': words(value) });
    input.addEventListener('input', () => {
      const now = read(Number(input.value));
      output.textContent = words(now);
      input.setAttribute('aria-valuetext', words(now));
      changed(now);
    });
    const set = value => { input.value = place(value); output.textContent = words(value); input.setAttribute('aria-valuetext', words(value)); };
    return { node: el('label', {}, el('span', {}, label), input, output), set, input };
  };
  const sliders = {};
  const refit = () => {
    // A policy of the gallery that nobody edited follows the line.
    for (const one of ['a', 'b']) {
      if (!state.from[one] || state[one] === null) continue;
      state[one] = TG.textOf(state.from[one], state);
      if (one === side && at('policy').value !== state[one]) { at('policy').value = state[one]; shown = []; mark(); }
    }
  };

  // ---- Everything that follows a change.
  let timers = {};
  const later = (name, wait, work) => { clearTimeout(timers[name]); timers[name] = setTimeout(work, wait); };
  const changed = (fast = false) => {
    if (fast) simulate(); else later('simulate', 150, simulate);
    later('look', 200, look);
    later('remember', 400, remember);
  };

  const paint = () => {
    at('policy').value = state[side];
    at('gallery').value = state.from[side] || '';
    at('load').value = state.load;
    at('packet').value = state.packet;
    const known = TG.presets.findIndex(one => ['up', 'down', 'rtt', 'buffer'].every(key => one[key] === state[key]));
    at('preset').value = state.varies ? `v:${state.varies}` : known >= 0 ? `p:${known}` : '';
    for (const { key } of SLIDERS) sliders[key].set(state[key]);
    for (const key of ['up', 'down', 'buffer']) sliders[key].input.disabled = Boolean(state.varies);
    at('tab-a').setAttribute('aria-selected', String(side === 'a'));
    at('tab-b').setAttribute('aria-selected', String(side === 'b'));
    at('drop-b').hidden = state.b === null;
    shown = [];
    mark();
  };
  const pick = one => {
    side = one;
    if (one === 'b' && state.b === null) { state.b = state.a; state.from.b = state.from.a; changed(); }
    paint();
    later('look', 10, look);
  };

  const save = (name, text, type) => {
    const url = URL.createObjectURL(new Blob([text], { type }));
    el('a', { href: url, download: name }).click();
    setTimeout(() => URL.revokeObjectURL(url), 10000);
  };
  const quoted = text => JSON.stringify(text);
  /** The commands that a policy comes to; of a refused one, null. */
  const commandsOf = async text => {
    const answer = await looker.ask({ do: 'commands', name: nameOf(text), policy: text });
    if (answer.code === 0) return answer.document.commands;
    tell(answer.refused ? `The policy cannot be exported: ${answer.refused.reason}` : '');
    return null;
  };
  const saveScript = async () => {
    const commands = await commandsOf(state[side]);
    if (commands) save('policy.sh', `#!/bin/sh\n# Made by tidegate's playground. Try it first: tidegate try policy.sh --up ${Math.round(state.up)}bit --down ${Math.round(state.down)}bit\nset -e\n${commands.join('\n')}\n`, 'text/x-shellscript');
  };
  const LOADS = { up: ['lan -> server', 2, 0], down: ['', 0, 3], both: ['', 2, 3], tcp_1up: ['', 1, 0] };
  const saveScenario = async () => {
    const policies = [];
    for (const one of ['a', 'b']) {
      if (state[one] === null) continue;
      if (nameOf(state[one]) !== 'policy.sh') {
        // Not commands: a file of its own beside the scenario.
        const file = nameOf(state[one]).replace('policy', `policy-${one}`);
        save(file, state[one], 'text/plain');
        policies.push(`[policies.${one}]\ngateway = ${quoted(file)}\n`);
        continue;
      }
      const commands = await commandsOf(state[one]);
      if (!commands) return;
      policies.push(`[policies.${one}]\ngateway = [\n${commands.map(line => `    ${quoted(line)},`).join('\n')}\n]\n`);
    }
    const [, ups, downs] = LOADS[state.load] || LOADS.both;
    const traffic = [ups && `    { tcp = "a -> server", count = ${ups} },`, downs && `    { tcp = "a <- server", count = ${downs} },`].filter(Boolean).join('\n');
    save('playground.toml', `title = "From the playground"\nduration = "${state.seconds}s"\nseed = ${state.seed}\n\n[home]\nup = "${Math.round(state.up)}bit"\ndown = "${Math.round(state.down)}bit"\nrtt = "${state.rtt}ms"\nbuffer = "${state.buffer}ms"\n\n[policies.none]\n\n${policies.join('\n')}\n[loads.load]\ntraffic = [\n${traffic}\n]\n\n[[traffic]]\nping = "b -> server"\n`, 'text/plain');
  };

  const begin = async () => {
    const missing = TG.missing();
    if (missing) return tell(`This browser has no ${missing}, which the simulator needs; a browser of 2023 or later has it.`);
    at('gallery').append(el('option', { value: '' }, 'your own'), ...TG.gallery.map(({ id, title }) => el('option', { value: id }, title)));
    at('preset').append(el('option', { value: '' }, 'your own'), ...TG.presets.map(({ title }, n) => el('option', { value: `p:${n}` }, title)), ...TG.varying.map(([id, title]) => el('option', { value: `v:${id}` }, title)));
    at('load').append(...TG.loads.map(([id, title]) => el('option', { value: id }, title)));
    await recall();
    for (const one of SLIDERS) {
      sliders[one.key] = TG.slider({ ...one, value: state[one.key] }, value => {
        state[one.key] = value;
        at('preset').value = state.varies ? `v:${state.varies}` : '';
        if (one.key === 'up' || one.key === 'down') refit();
        changed(true);
      });
      at('sliders').append(sliders[one.key].node);
    }
    paint();
    at('policy').addEventListener('input', () => { state[side] = at('policy').value; state.from[side] = null; at('gallery').value = ''; shown = []; mark(); changed(); });
    at('policy').addEventListener('scroll', scrolled);
    // What is wrong with the line under the pointer.
    at('policy').addEventListener('mousemove', event => {
      const line = Math.floor((event.offsetY + at('policy').scrollTop - 9.6) / 19.5) + 1;
      const here = shown.filter(one => one.line === line).map(one => `${one.title}${one.because ? ` – ${one.because}` : ''}`).join('\n');
      if (at('policy').title !== here) at('policy').title = here;
    });
    at('gallery').addEventListener('change', () => { if (at('gallery').value) setText(TG.textOf(at('gallery').value, state), at('gallery').value); });
    at('preset').addEventListener('change', () => {
      const [kind, name] = at('preset').value.split(':');
      state.varies = kind === 'v' ? name : '';
      if (kind === 'p') { const { up, down, rtt, buffer } = TG.presets[Number(name)]; Object.assign(state, { up, down, rtt, buffer }); refit(); }
      paint();
      changed();
    });
    at('load').addEventListener('change', () => { state.load = at('load').value; changed(); });
    at('packet').addEventListener('input', () => { state.packet = at('packet').value; later('explain', 150, explain); later('remember', 400, remember); });
    at('tab-a').addEventListener('click', () => pick('a'));
    at('tab-b').addEventListener('click', () => pick('b'));
    at('drop-b').addEventListener('click', () => { state.b = null; state.from.b = null; side = 'a'; paint(); changed(); });
    at('copy').addEventListener('click', async () => {
      const fits = await remember();
      if (!fits) return tell('The policy is too long for a link; save it as a file.');
      try { await navigator.clipboard.writeText(location.href); at('copy').textContent = 'Copied'; } catch (_) { at('copy').textContent = 'The address bar has it'; }
      setTimeout(() => { at('copy').textContent = 'Copy link'; }, 2000);
    });
    at('save-sh').addEventListener('click', saveScript);
    at('save-toml').addEventListener('click', saveScenario);
    at('save-json').addEventListener('click', () => { if (TG.last.a) save('result.json', TG.last.a.text, 'application/json'); });
    at('reset').addEventListener('click', () => { state = fresh(); side = 'a'; paint(); changed(); });
    const page = name => {
      at('play').hidden = name !== 'play';
      at('story').hidden = name !== 'story';
      for (const link of document.querySelectorAll('nav a')) {
        if (link.dataset.go === name) link.setAttribute('aria-current', 'page'); else link.removeAttribute('aria-current');
      }
      if (name === 'story') { history.replaceState(null, '', '#story'); TG.story(at('story')); } else if (saved) history.replaceState(null, '', saved);
    };
    for (const link of document.querySelectorAll('nav a')) link.addEventListener('click', event => { event.preventDefault(); page(link.dataset.go); });
    let seen = true;
    try { seen = Boolean(localStorage.getItem('tidegate-seen')); localStorage.setItem('tidegate-seen', '1'); } catch (_) { }
    page(location.hash === '#story' || (!seen && !location.hash) ? 'story' : 'play');
    window.addEventListener('resize', () => later('draw', 200, () => { if (TG.last.a) TG.draw(TG.last.a.document, TG.last.b ? TG.last.b.document : null); }));
    await simulate();
    await look();
  };
  window.addEventListener('DOMContentLoaded', () => begin().catch(error => tell(`The page cannot start: ${error.message || error}`)));
})();
