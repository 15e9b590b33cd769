// Holds each frame until it is due, then hands it over: in order, every one. A late frame goes at once.

export class ShowQueue {
  #frames = [];
  #timer = null;
  #show;

  constructor(show) {
    this.#show = show;
  }

  put(frame, dueMs) {
    this.#frames.push({ frame, dueMs });
    this.#arm();
  }

  clear() {
    clearTimeout(this.#timer);
    this.#timer = null;
    this.#frames = [];
  }

  // Timers, not animation frames: those stop in a hidden tab, and painting must never be the clock.
  #arm() {
    if (this.#timer !== null || !this.#frames.length) return;
    const wait = Math.max(0, this.#frames[0].dueMs - performance.now());
    this.#timer = setTimeout(() => this.#turn(), wait);
  }

  #turn() {
    this.#timer = null;
    while (this.#frames.length && this.#frames[0].dueMs <= performance.now() + 1) this.#show(this.#frames.shift().frame);
    this.#arm();
  }
}
