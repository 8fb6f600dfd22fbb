// node node.js PLAYGROUND REQUESTS: answers requests (a JSON array of texts) and those about each policy of the
// playground's gallery with the compiled module. Each line of its output is one: request, code, text.
'use strict';
const fs = require('node:fs');
const path = require('node:path');
const vm = require('node:vm');
const zlib = require('node:zlib');

const [, , playground, requests] = process.argv;
const embedded = fs.readFileSync(path.join(playground, 'tidegate.wasm.js'), 'utf8').split('window.TIDEGATE_WASM = `')[1];
const module_ = new WebAssembly.Module(zlib.gunzipSync(Buffer.from(embedded.split('`')[0], 'base64')));
const wasm = new WebAssembly.Instance(module_, {}).exports;
const answer = request => {
  const bytes = new TextEncoder().encode(request);
  const at = wasm.tidegate_input(bytes.length);
  new Uint8Array(wasm.memory.buffer, at, bytes.length).set(bytes);
  const code = wasm.tidegate_answer();
  const text = new Uint8Array(wasm.memory.buffer, wasm.tidegate_output(), wasm.tidegate_output_length());
  return { request, code, text: new TextDecoder().decode(text) };
};

const page = { window: {} };
vm.runInNewContext(fs.readFileSync(path.join(playground, 'gallery.js'), 'utf8'), page);
const all = JSON.parse(fs.readFileSync(requests, 'utf8'));
for (const { id, text } of page.window.TG.gallery) {
  const policy = text({ up: 2e6, down: 10e6 });
  const name = `${id}.${id === 'short' ? 'toml' : 'sh'}`;
  const dev = policy.includes('eth1') || id === 'short' ? {} : { dev: 'eth0' };
  all.push({ do: 'check', name, policy }, { do: 'commands', name, policy },
    { do: 'explain', name, policy, packet: 'udp 192.168.1.7:5060 > 203.0.113.9:5060 dscp EF len 200', reply: true },
    { do: 'try', name, policy, ...dev, up: '2mbit', down: '10mbit', duration: '3s', load: ['both', 'hosts'] });
}
for (const request of all) {
  process.stdout.write(JSON.stringify(answer(typeof request === 'string' ? request : JSON.stringify(request))) + '\n');
}
