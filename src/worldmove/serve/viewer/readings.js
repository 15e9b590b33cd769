// The figures under the picture, refreshed twice a second.

import { byId, say } from "./dom.js";
import { count, ms, NONE } from "./words.js";

const REFRESH_MS = 500;

export class Readings {
  #timing;
  #engine = null;
  #pingMs = null;
  #late = null;
  #resting = false;

  constructor(timing) {
    this.#timing = timing;
    setInterval(() => this.#refresh(), REFRESH_MS);
  }

  engine(engine) {
    this.#engine = engine;
    say(byId("engine"), `${engine.preset} · ${engine.width}×${engine.height} · ${engine.frames_per_s} frames/s, raw`);
    this.#memory(engine);
    this.#refresh();
  }

  /** How long an answer took; null while nobody answers. */
  ping(milliseconds) {
    this.#pingMs = milliseconds;
  }

  late(blocks) {
    this.#late = blocks;
  }

  rest(resting) {
    this.#resting = resting;
    if (resting) this.#timing.rest();
  }

  #refresh() {
    if (!this.#engine) return;
    const [p50, p95] = [this.#timing.response(0.5), this.#timing.response(0.95)];
    say(byId("response"), ms(p50));
    say(byId("response-note"), p95 === null ? "press a key" : `p95 ${ms(p95).replace(" ms", "")}`);
    this.#rate(this.#timing.framesPerS(performance.now()));
    say(byId("ping"), ms(this.#pingMs));
    say(byId("listens"), `every ${ms((1000 * this.#engine.frames_per_block) / this.#engine.frames_per_s)}`);
  }

  // A world that rests shows no pictures, and none of them is late.
  #rate(rate) {
    const shown = rate === null ? NONE : `${rate.toFixed(1)} of ${this.#engine.frames_per_s}/s`;
    const late = this.#late === null ? NONE : `${count(this.#late)} late`;
    say(byId("rate"), this.#resting ? "resting" : shown);
    say(byId("rate-note"), this.#resting ? "" : late);
  }

  #memory(engine) {
    const blocks = engine.memory_blocks;
    const spanS = (blocks * engine.frames_per_block) / engine.frames_per_s;
    say(
      byId("map-memory"),
      blocks == null
        ? "The model may forget what it has not seen for long: that is the model, not the move."
        : `The model remembers ${count(blocks)} blocks, ${spanS.toFixed(0)} s of play. What it saw before that fades here: ` +
            "the model forgets it, not the move.",
    );
  }
}
