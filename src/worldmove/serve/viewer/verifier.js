// Frames in, frames with a verdict out, in the order in which they came.
//
// verdict "checked": this page took the digest of the bytes it got, and it is the one the worker gave.
// verdict "damaged": it is another one; the frame must not be painted.
// verdict "reported": this browser lets no Web Worker run, so the digest is only what the worker gave.

export class Verifier {
  #worker = null;
  #waiting = new Map();
  #id = 0;
  #onVerdict;

  constructor(onVerdict) {
    this.#onVerdict = onVerdict;
    try {
      this.#worker = new Worker(new URL("./verify-worker.js", import.meta.url), { type: "module" });
      this.#worker.onmessage = ({ data }) => this.#take(data);
      this.#worker.onerror = () => this.#giveUp();
    } catch {
      this.#worker = null;
    }
  }

  check(frame) {
    if (!this.#worker) return this.#onVerdict(frame, "reported");
    const id = this.#id++;
    this.#waiting.set(id, { frame, verdict: null });
    this.#worker.postMessage({ id, buffer: frame.buffer });
  }

  #take({ id, digest }) {
    const entry = this.#waiting.get(id);
    entry.verdict = digest === entry.frame.sha256 ? "checked" : "damaged";
    this.#release();
  }

  // A Map keeps its order of insertion: the head is the oldest frame.
  #release() {
    for (const [id, { frame, verdict }] of this.#waiting) {
      if (!verdict) return;
      this.#waiting.delete(id);
      this.#onVerdict(frame, verdict);
    }
  }

  // From here on frames go unchecked, and the panel says so.
  #giveUp() {
    this.#worker = null;
    for (const entry of this.#waiting.values()) entry.verdict ??= "reported";
    this.#release();
  }
}
