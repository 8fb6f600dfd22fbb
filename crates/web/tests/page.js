// node page.js CHROMIUM PAGE [SHOTS]: opens the playground from disk, uses it, and prints what it found as JSON. With
// SHOTS it also takes pictures into that folder. Chromium is driven over its pipe (--remote-debugging-pipe).
'use strict';
const { spawn } = require('node:child_process');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');

const [, , chromium, page, shots] = process.argv;
const profile = fs.mkdtempSync(path.join(os.tmpdir(), 'tidegate-page-'));
const browser = spawn(chromium, ['--headless=new', '--no-sandbox', '--disable-gpu', '--no-first-run', '--disable-sync',
  '--disable-quic', '--disable-background-networking', '--disable-component-update', '--hide-scrollbars',
  '--host-resolver-rules=MAP * ~NOTFOUND', '--remote-debugging-pipe', `--user-data-dir=${profile}`, 'about:blank'],
{ stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'] });
const [, , , to, from] = browser.stdio;
let session, next = 1, rest = '';
const waiting = new Map(), errors = [];
from.on('data', data => {
  rest += data.toString('utf8');
  for (let end; (end = rest.indexOf('\0')) >= 0; rest = rest.slice(end + 1)) {
    const message = JSON.parse(rest.slice(0, end));
    if (message.id) { waiting.get(message.id)(message.result || message); waiting.delete(message.id); }
    if (message.method === 'Runtime.exceptionThrown') errors.push(message.params.exceptionDetails.exception?.description || message.params.exceptionDetails.text);
    if (message.method === 'Log.entryAdded' && message.params.entry.level === 'error') errors.push(message.params.entry.text);
  }
});
const send = (method, params = {}, own = session) => new Promise(resolve => {
  const id = next++;
  waiting.set(id, resolve);
  to.write(JSON.stringify({ id, method, params, sessionId: own }) + '\0');
});
const evaluate = async expression => {
  const { result, exceptionDetails } = await send('Runtime.evaluate', { expression, awaitPromise: true, returnByValue: true });
  if (exceptionDetails) throw new Error(exceptionDetails.exception?.description || exceptionDetails.text);
  return result.value;
};
/** Waits until an expression holds. */
const until = async (expression, seconds = 60) => {
  const end = Date.now() + seconds * 1000;
  while (!(await evaluate(expression).catch(() => false))) {
    if (Date.now() > end) throw new Error(`never: ${expression}; ${await evaluate('document.body.innerText')}`);
    await new Promise(resolve => setTimeout(resolve, 50));
  }
};
const open = async address => {
  await send('Page.navigate', { url: 'about:blank' });
  await send('Page.navigate', { url: address });
  await until('document.readyState === "complete" && document.documentElement.dataset.done && document.documentElement.dataset.checked');
};
const type = async text => {
  const before = await evaluate('[document.documentElement.dataset.done, document.documentElement.dataset.checked]');
  await evaluate(`(() => { const box = document.getElementById('policy'); box.value = ${JSON.stringify(text)}; box.dispatchEvent(new Event('input')); })()`);
  await until(`document.documentElement.dataset.done !== ${JSON.stringify(before[0])} && document.documentElement.dataset.checked !== ${JSON.stringify(before[1])}`);
};
const size = (width, height, scale = 1) => send('Emulation.setDeviceMetricsOverride', { width, height, deviceScaleFactor: scale, mobile: width < 500 });
const theme = dark => send('Emulation.setEmulatedMedia', { features: [{ name: 'prefers-color-scheme', value: dark ? 'dark' : 'light' }] });
const shoot = async (name, height) => {
  if (!shots) return;
  const full = height || Math.min(4000, await evaluate('document.documentElement.scrollHeight'));
  const { data } = await send('Page.captureScreenshot', { captureBeyondViewport: true, clip: { x: 0, y: 0, width: await evaluate('innerWidth'), height: full, scale: 1 } });
  fs.writeFileSync(path.join(shots, `${name}.png`), Buffer.from(data, 'base64'));
};

const main = async () => {
  const { targetInfos } = await send('Target.getTargets', {}, undefined);
  const { sessionId } = await send('Target.attachToTarget', { targetId: targetInfos.find(one => one.type === 'page').targetId, flatten: true }, undefined);
  session = sessionId;
  for (const domain of ['Page', 'Runtime', 'Log']) await send(`${domain}.enable`);
  const address = `file://${page}`;
  const found = { errors };
  await size(1200, 900);
  await theme(false);
  await send('Page.navigate', { url: address });
  await until('document.readyState === "complete"');
  await evaluate('localStorage.setItem("tidegate-seen", "1")');
  await open(address);
  found.verdict = await evaluate('document.getElementById("verdict").textContent');
  found.tiles = await evaluate('document.querySelectorAll(".tile").length');
  found.charts = await evaluate('document.querySelectorAll("#play svg.chart").length');
  // What is explained comes after what is tried.
  await until('document.getElementById("explained").textContent !== ""');
  found.explained = await evaluate('document.getElementById("explained").textContent');
  await shoot('page-1200-light');
  await theme(true);
  await shoot('page-1200-dark');
  await theme(false);

  // A mistake gives a finding with its line, the fix takes it away.
  await type('tc qdisc add dev eth0 root handle 1: htb default 99\ntc class add dev eth0 parent 1: classid 1:1 htb rate 5mbit\n');
  found.finding = await evaluate('document.getElementById("findings").textContent');
  found.marked = await evaluate('document.querySelectorAll("#marks span").length');
  await type('tc qdisc add dev eth0 root handle 1: htb\ntc class add dev eth0 parent 1: bogus\n');
  found.refused = await evaluate('document.getElementById("findings").textContent');
  await shoot('mistake-1200-light', 900);
  await type('#!/bin/sh\nfor i in 1 2; do tc qdisc show; done\n');
  found.script = await evaluate('document.getElementById("findings").textContent');
  await type('\u0000\u0001PK\u0003'.repeat(50));
  found.binary = await evaluate('document.getElementById("findings").textContent');

  // A slider moves the figures; the state is in the address.
  await type('tc qdisc add dev eth0 root cake bandwidth 9mbit\n');
  const drag = async (label, place) => {
    const before = await evaluate('document.documentElement.dataset.done');
    await evaluate(`(() => { const input = document.querySelector('input[aria-label="${label}"]'); input.value = ${place}; input.dispatchEvent(new Event('input')); })()`);
    await until(`document.documentElement.dataset.done !== ${JSON.stringify(before)}`);
  };
  found.before = await evaluate('document.getElementById("tiles").textContent');
  await drag('Upload', 400);
  found.after = await evaluate('document.getElementById("tiles").textContent');
  await new Promise(resolve => setTimeout(resolve, 700));
  const link = await evaluate('location.href');
  await open(link);
  found.kept = await evaluate('[document.getElementById("policy").value, document.querySelector("input[aria-label=Upload]").value]');

  // Two policies side by side.
  await evaluate('document.getElementById("tab-b").click()');
  await evaluate('(() => { const list = document.getElementById("gallery"); list.value = "tbf"; list.dispatchEvent(new Event("change")); })()');
  await until('document.getElementById("tiles").textContent.includes("with B")');
  found.both = await evaluate('document.querySelectorAll("#shares .share-of").length');
  await shoot('both-1200-light');
  await evaluate('document.getElementById("drop-b").click()');

  // Markup in a policy or an address stays text.
  await type('tc qdisc add dev eth0 root handle 1: htb default "<img src=x onerror=alert(1)>"\n');
  found.markup = await evaluate('document.querySelectorAll("#play img, #play script").length');

  // Recomputations: 30 s at 10 Mbit/s both ways.
  found.rates = await evaluate(`(async () => {
    const engine = new TG.Engine(), took = [];
    const line = { up: 1e7, down: 1e7, rtt: 30, buffer: 1000, load: 'both', seed: 1, varies: '', flows: 0 };
    for (let n = 0; n < 12; n++) {
      const { took: ms } = await engine.ask(TG.request(TG.textOf('fq', line), 30, line));
      if (n > 1) took.push(ms);
    }
    engine.stop();
    return took.sort((a, b) => a - b);
  })()`);

  await evaluate(`document.querySelector('nav a[data-go=story]').click()`);
  await until('[...document.querySelectorAll(".step .figure")].length === 6 && [...document.querySelectorAll(".step .figure")].every(one => one.textContent !== "…")');
  found.story = await evaluate('[...document.querySelectorAll(".step .figure")].map(one => one.textContent)');
  await shoot('story-1200-light');

  await size(390, 844);
  await open(address);
  found.wide = await evaluate('document.documentElement.scrollWidth');
  await shoot('page-390-light');
  await theme(true);
  await shoot('page-390-dark');
  console.log(JSON.stringify(found));
};
const end = code => {
  browser.on('exit', () => {
    // Its helpers may still write there.
    try { fs.rmSync(profile, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 }); } catch (_) { }
    process.exit(code);
  });
  browser.kill('SIGKILL');
};
main().then(() => end(0), error => { console.error(error.stack, JSON.stringify(errors)); end(1); });
