// Bufferbloat in six steps, each with a slider and figures that are computed when it moves.
'use strict';
(() => {
  const TG = window.TG = window.TG || {};
  const { el } = TG;
  const M = 1e6;
  const rate = bits => `${Math.round(bits / 1e3)}kbit`;
  const line = { up: 10 * M, down: 50 * M, rtt: 30, buffer: 1000, load: 'up', seed: 1, varies: '', flows: 0 };
  const fq = bits => `tc qdisc add dev eth0 root handle 1: htb default 10\ntc class add dev eth0 parent 1: classid 1:10 htb rate ${rate(bits)}\ntc qdisc add dev eth0 parent 1:10 fq_codel\n`;
  const NONE = 'tc qdisc add dev eth0 root pfifo_fast\n';
  const ask = (text, changes, seconds) => ({ ...TG.request(text, seconds, { ...line, ...changes }), probes: ['ping'] });
  const only = (document, policy) => TG.series(document, null).filter(({ name }) => name === (policy ? 'A' : 'without'));
  const p95 = run => TG.quantile(TG.figures(run, 'ping').sorted, .95);
  const b = text => el('b', {}, text);

  const STEPS = [
    {
      title: '1. A full buffer',
      text: 'Two uploads fill a line of 10 Mbit/s. TCP sends more until a packet is lost, so it fills whatever buffer the modem has. Everything else waits behind it. Make the buffer larger and smaller.',
      slider: { label: 'Modem buffer', from: 20, to: 3000, value: 1000, words: ms => `${ms} ms` },
      request: value => ask(NONE, { buffer: value }, 20),
      draw: document => only(document, false),
      figure: ([{ run }]) => ['95 % of pings return within ', b(TG.time(p95(run))), '; without load it would be 30 ms. The uploads carry ', b(TG.rate(TG.goodput(run, true))), '.'],
    },
    {
      title: '2. A short buffer',
      text: 'So make it short? Latency falls, but the uploads now lose packets before they have found the rate of the line. Below one round trip of data the line runs empty after each loss.',
      slider: { label: 'Modem buffer', from: 2, to: 200, value: 5, words: ms => `${ms} ms` },
      request: value => ask(NONE, { buffer: value, rtt: 100, load: 'tcp_1up' }, 30),
      draw: document => only(document, false),
      bars: run => [['ping, 95 %', p95(run), 3e8, TG.time(p95(run))], ['carried', TG.goodput(run, true), 1e7, TG.rate(TG.goodput(run, true))], ['the line', 1e7, 1e7, '10 Mbit/s']],
      figure: ([{ run }]) => ['One upload over 100 ms: 95 % of pings within ', b(TG.time(p95(run))), ', and ', b(TG.rate(TG.goodput(run, true))), ' of 10 Mbit/s used.'],
    },
    {
      title: '3. Fair queues',
      text: 'A shaper a little below the line brings the queue home, where fq_codel gives each connection a queue of its own and keeps each short. The modem stays empty. Above 100 % the queue is the modem\'s again.',
      slider: { label: 'Shaper', from: 50, to: 120, value: 95, words: part => `${part} % of the line`, linear: true },
      request: value => ask(fq(line.up * value / 100), {}, 20),
      draw: document => TG.series(document, null),
      figure: all => ['95 % of pings within ', b(TG.time(p95(all[1].run))), ' instead of ', TG.time(p95(all[0].run)), '; the uploads carry ', b(TG.rate(TG.goodput(all[1].run, true))), ' instead of ', TG.rate(TG.goodput(all[0].run, true)), '.'],
    },
    {
      title: '4. Fair between hosts',
      text: 'Fair between connections is not fair between people: one computer uploads over four connections, the other over one. CAKE can share between hosts first.',
      slider: { label: 'Fairness', from: 0, to: 1, value: 0, words: on => on ? 'between hosts' : 'connections', linear: true, whole: true },
      request: value => ask(`tc qdisc add dev eth0 root cake bandwidth ${rate(line.up * .95)} ${value ? 'nat dual-srchost' : 'flows'}\n`, { load: 'hosts' }, 20),
      draw: document => only(document, true),
      bars: run => run.flows.map((flow, n) => [`${n < run.flows.length - 1 ? 'first' : 'second'} computer`, flow.bytes, 2.4e7, TG.rate(flow.bytes * 8e9 / (run.window[1] - run.window[0]))]),
      figure: ([{ run }]) => {
        const each = run.flows.map(flow => flow.bytes * 8e9 / (run.window[1] - run.window[0]));
        const last = each[each.length - 1], others = each.slice(0, -1).reduce((sum, one) => sum + one, 0);
        return ['The four carry ', b(TG.rate(others)), ', the one ', b(TG.rate(last)), '.'];
      },
    },
    {
      title: '5. Marking instead of dropping (ECN)',
      text: 'To slow a sender down a queue drops a packet, and that has to be sent again. With ECN it marks one instead. What is not dropped need not be sent again, and nobody waits for it.',
      slider: { label: 'Senders with ECN', from: 0, to: 1, value: 0, words: on => on ? 'yes' : 'no', linear: true, whole: true },
      request: value => ({ do: 'sim', name: 'ecn.toml', scenario: `duration = "20s"\n[home]\nup = "10mbit"\ndown = "50mbit"\n[policies.fair]\ngateway = [\n  "tc qdisc add dev eth0 root handle 1: htb default 10",\n  "tc class add dev eth0 parent 1: classid 1:10 htb rate 9500kbit",\n  "tc qdisc add dev eth0 parent 1:10 fq_codel ecn",\n]\n[[traffic]]\ntcp = "a -> server"\ncount = 4\n${value ? 'ecn = true\n' : ''}[[traffic]]\nping = "b -> server"\n` }),
      experiment: true,
      bars: run => [['sent again', run.transfers.reduce((sum, one) => sum + one.retransmissions, 0), 500, `${run.transfers.reduce((sum, one) => sum + one.retransmissions, 0)} segments`]],
      figure: run => [b(String(run.transfers.reduce((sum, one) => sum + one.retransmissions, 0))), ' segments were sent again in 20 s; the uploads carry ', b(TG.rate(run.transfers.reduce((sum, one) => sum + one.bytes, 0) * 8 / 20)), '.'],
    },
    {
      title: '6. A line that varies',
      text: 'A mobile line has another rate every moment (here a model of LTE). A shaper at a fixed rate is right on average and wrong most of the time: too high, and the queue is the modem\'s; too low, and the line is wasted. Controllers such as cake-autorate follow the line.',
      slider: { label: 'Shaper', from: 20, to: 120, value: 60, words: part => `${part} % of the mean`, linear: true },
      request: value => ask(fq(TG.lteUp * value / 100), { varies: 'lte' }, 30),
      draw: document => TG.series(document, null),
      figure: all => ['95 % of pings within ', b(TG.time(p95(all[1].run))), ' instead of ', TG.time(p95(all[0].run)), '; the uploads carry ', b(TG.rate(TG.goodput(all[1].run, true))), ' instead of ', TG.rate(TG.goodput(all[0].run, true)), '.'],
    },
  ];
  // The mean upload rate of the preset, replaced by the document's.
  TG.lteUp = 2150872;

  /** Bars: [label, value, the longest, in words]. */
  const bars = rows => rows.map(([label, value, most, words]) => el('div', { class: 'share' }, el('span', {}, label),
    el('i', { style: `width:${100 * Math.min(1, value / most)}%;background:var(--with)` }), el('span', {}, words)));

  const step = (one, engine) => {
    const figure = el('p', { class: 'figure', 'aria-live': 'polite' }, '…');
    const chart = el('figure');
    let asked = 0;
    const run = async value => {
      const now = ++asked;
      const answer = await engine.ask(one.request(value));
      if (now !== asked || answer.code === 3) return;
      if (answer.code !== 0) { figure.textContent = answer.refused ? answer.refused.reason : answer.text; return; }
      if (one.experiment) {
        const found = answer.document.runs[0];
        figure.replaceChildren(...one.figure(found));
        chart.replaceChildren(...bars(one.bars(found)));
        return;
      }
      const series = one.draw(answer.document);
      if (answer.document.link.varies) TG.lteUp = answer.document.link.up_bits;
      figure.replaceChildren(...one.figure(series));
      if (one.bars) return chart.replaceChildren(...bars(one.bars(series[0].run)));
      const width = Math.max(320, Math.min(820, chart.clientWidth || 640));
      chart.replaceChildren(TG.latency(series, width), TG.keys(series.map(({ colour, label, name }) => ({ colour, label: name === 'without' ? 'ping, without a policy' : 'ping, with the policy' }))));
    };
    let timer = 0;
    const slider = TG.slider(one.slider, value => { clearTimeout(timer); timer = setTimeout(() => run(value), 20); });
    if (one.slider.whole) slider.input.setAttribute('step', '1000');
    run(one.slider.value);
    return el('section', { class: 'step' }, el('h2', {}, one.title), el('p', {}, one.text), slider.node, figure, chart);
  };

  let made = false;
  TG.story = async place => {
    if (made) return;
    made = true;
    place.classList.add('story');
    place.append(el('p', {}, 'One upload, and pings rise from 30 ms to a second: that is bufferbloat. Each figure below is computed when you move its slider, by the same engine as the playground\'s.'));
    for (const one of STEPS) place.append(step(one, new TG.Engine()));
  };
})();
