// The engine: tidegate's module in workers, which can be ended. A request is JSON, its answer a document.
'use strict';
(() => {
  const TG = window.TG = window.TG || {};

  // Runs in the worker; its text is all that the worker has.
  function worker() {
    let ready = null, exports = null;
    const text = (at, length) => new TextDecoder().decode(new Uint8Array(exports.memory.buffer, at, length));
    const answer = request => {
      const bytes = new TextEncoder().encode(request);
      const at = exports.tidegate_input(bytes.length);
      if (!at) return { code: 1, text: JSON.stringify({ refused: { reason: 'the text is longer than 5 MB, the most in a page', remedy: 'shorten it, or use tidegate on your computer', places: [] } }) };
      new Uint8Array(exports.memory.buffer, at, bytes.length).set(bytes);
      const code = exports.tidegate_answer();
      return { code, text: text(exports.tidegate_output(), exports.tidegate_output_length()) };
    };
    onmessage = async event => {
      const { id, bytes, request } = event.data;
      if (bytes) ready = WebAssembly.compile(bytes);
      if (!request) return;
      const begun = performance.now();
      try {
        exports = exports || (await WebAssembly.instantiate(await ready, {})).exports;
        postMessage({ id, ...answer(request), took: performance.now() - begun });
      } catch (error) {
        let said = '';
        try { said = text(exports.tidegate_panic(), exports.tidegate_panic_length()); } catch (_) { }
        exports = null;
        postMessage({ id, code: 2, text: said || String(error), took: performance.now() - begun });
      }
    };
  }

  /** The module's bytes: embedded, because a page from disk may not fetch its neighbours. */
  async function bytes() {
    const packed = Uint8Array.from(atob(window.TIDEGATE_WASM.replace(/\s+/g, '')), letter => letter.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream('gzip'));
    return new Response(stream).arrayBuffer();
  }

  let loaded = null;
  let url = null;
  const PATIENCE = 30000;

  /** One worker. A new request replaces the one that runs, if that is of the same kind of work. */
  class Engine {
    constructor() { this.next = 1; this.running = null; this.worker = null; }

    async start() {
      loaded = loaded || bytes();
      const module = await loaded;
      if (this.worker) return;
      url = url || URL.createObjectURL(new Blob([`(${worker})()`], { type: 'text/javascript' }));
      this.worker = new Worker(url);
      this.worker.onmessage = event => this.finish(event.data);
      this.worker.onerror = event => this.fail(event.message || 'the worker stopped');
      this.worker.postMessage({ bytes: module });
    }

    stop() {
      if (this.worker) this.worker.terminate();
      this.worker = null;
      if (this.running) {
        clearTimeout(this.running.timer);
        this.running.resolve({ code: 3 });
      }
      this.running = null;
    }

    fail(text) {
      const running = this.running;
      this.running = null;
      this.stop();
      if (!running) return;
      clearTimeout(running.timer);
      running.resolve(text === null
        ? { code: 1, refused: { reason: `this takes longer than ${PATIENCE / 1000} s, and was ended`, remedy: 'shorten the policy, lower the rates, or use tidegate on your computer', places: [] } }
        : { code: 2, text });
    }

    finish({ id, ...answer }) {
      if (!this.running || this.running.id !== id) return;
      const { resolve, timer } = this.running;
      clearTimeout(timer);
      this.running = null;
      if (answer.code === 2) this.stop();
      resolve(answer);
    }

    /** Resolves with code (0 done, 1 refused, 2 failed, 3 replaced by a later request) and the parsed document. */
    async ask(request) {
      if (this.running) this.stop();
      const id = this.next++;
      this.latest = id;
      await this.start();
      if (this.latest !== id) return { code: 3 };
      const answer = await new Promise(resolve => {
        const timer = setTimeout(() => this.fail(null), PATIENCE);
        this.running = { id, resolve, timer };
        this.worker.postMessage({ id, request: JSON.stringify(request) });
      });
      if (answer.code > 1) return answer;
      const document = JSON.parse(answer.text);
      return answer.code === 0
        ? { code: 0, document, text: answer.text, took: answer.took }
        : { code: 1, refused: document.refused, took: answer.took };
    }
  }
  TG.Engine = Engine;

  /** Why this browser cannot, or null. */
  TG.missing = () => {
    if (typeof WebAssembly !== 'object') return 'WebAssembly';
    if (typeof DecompressionStream !== 'function') return 'DecompressionStream';
    if (typeof Worker !== 'function') return 'Worker';
    return null;
  };
})();
