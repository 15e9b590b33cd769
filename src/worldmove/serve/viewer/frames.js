// From a message to a picture that may be painted: read it, count it, take its digest, hold it until it is due.

import { FrameCounter } from "./counter.js";
import { ShowQueue } from "./queue.js";
import { Verifier } from "./verifier.js";
import { LIVE, readFrame, WireError } from "./wire.js";

export class Frames {
  counter = new FrameCounter();
  #on;
  #verifier = new Verifier((frame, verdict) => this.#judged(frame, verdict));
  #live = new ShowQueue((frame) => this.#on.show(frame));
  #copies = new ShowQueue((frame) => this.#on.showCopy(frame));

  /** `on`: came, passed, show (a live frame), showCopy (a copy's), damaged (either), strange(why). */
  constructor(on) {
    this.#on = on;
  }

  take(buffer) {
    const cameMs = performance.now();
    try {
      const frame = readFrame(buffer);
      frame.dueMs = cameMs + frame.showAfterMs;
      if (frame.kind === LIVE) {
        if (!this.counter.arrived(frame.frame)) return;
        this.#on.came(frame);
      }
      this.#verifier.check(frame);
    } catch (error) {
      if (!(error instanceof WireError)) throw error;
      this.#on.strange(error.message);
    }
  }

  #judged(frame, verdict) {
    frame.verdict = verdict;
    if (verdict === "damaged") {
      if (frame.kind === LIVE) this.counter.withheld++;
      this.#on.damaged(frame);
    } else if (frame.kind === LIVE) {
      this.#on.passed(frame);
      this.#live.put(frame, frame.dueMs);
    } else {
      this.#copies.put(frame, frame.dueMs);
    }
  }
}
