// Response time and rate, measured where the visitor sits. What was not measured is null, never 0. Pure.

const NUM_RESPONSES = 20;
const RATE_WINDOW_MS = 3000;

export class Timing {
  #pressed = new Map();
  #responses = [];
  #paints = [];

  pressed(number, nowMs) {
    this.#pressed.set(number, nowMs);
  }

  /** A frame was painted that has used every key change up to `number`. */
  painted(number, nowMs) {
    for (const [change, atMs] of this.#pressed) {
      if (change > number) break;
      this.#pressed.delete(change);
      this.#responses.push(nowMs - atMs);
    }
    this.#responses.splice(0, this.#responses.length - NUM_RESPONSES);
    this.#paints.push(nowMs);
  }

  /** Changes that were never acknowledged are sent anew under other numbers. */
  forget() {
    this.#pressed.clear();
  }

  /** Key to picture over the last key changes, in ms. */
  response(share) {
    if (!this.#responses.length) return null;
    const sorted = [...this.#responses].sort((a, b) => a - b);
    return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))];
  }

  framesPerS(nowMs) {
    while (this.#paints[0] < nowMs - RATE_WINDOW_MS) this.#paints.shift();
    const span = this.#paints.at(-1) - this.#paints[0];
    return this.#paints.length < 5 || !span ? null : ((this.#paints.length - 1) * 1000) / span;
  }

  rest() {
    this.#paints = [];
  }
}
