// The throw-away copy, rebuilt from one picture, beside what was seen where it walks.

import { byId, say } from "./dom.js";
import { count } from "./words.js";

const WHY =
  "This copy was rebuilt from your last picture alone, without the model's memory. It walks back the way you came. ";

export class Recovery {
  #panel = byId("recovery");
  #copy = byId("copy-picture").getContext("2d", { alpha: false });
  #seen = byId("seen-picture").getContext("2d");
  #sentence = byId("recovery-sentence");
  #atlas;
  #candidates = null; // while a copy is open: where the picture may have been taken that it began with
  #origin = null;
  #worst = null;

  constructor(atlas) {
    this.#atlas = atlas;
    byId("recovery-close").addEventListener("click", () => this.#hide());
  }

  /** A copy's own poses count from where its picture was taken: one of these, newest first. */
  open(poses) {
    this.#candidates = poses;
    this.#origin = null;
    this.#worst = { known: 0, different: 0 };
    this.#panel.hidden = false;
    say(this.#sentence, WHY);
  }

  close() {
    if (!this.#candidates) return;
    this.#candidates = null;
    say(this.#sentence, `${this.#verdict(this.#worst, "differed")} The copy was thrown away. Your world was not touched.`);
  }

  paint(frame, image) {
    if (!this.#candidates) return;
    this.#origin ??= this.#place(frame, image);
    const pose = plus(this.#origin, frame.pose);
    for (const { canvas } of [this.#copy, this.#seen]) Object.assign(canvas, { width: image.width, height: image.height });
    this.#copy.putImageData(image, 0, 0);
    this.#seen.putImageData(this.#atlas.view(image.width, image.height, pose), 0, 0);
    const verdict = this.#atlas.compare(image, pose);
    if (verdict.different >= this.#worst.different) this.#worst = verdict;
    say(this.#sentence, WHY + this.#verdict(verdict, "differ"));
  }

  // The player may have walked on while the copy was made: its first picture tells where it began.
  #place(frame, image) {
    const strangeness = (origin) => {
      const { known, different } = this.#atlas.compare(image, plus(origin, frame.pose));
      return different - known;
    };
    return this.#candidates.reduce((best, origin) => (strangeness(origin) < strangeness(best) ? origin : best));
  }

  #verdict({ known, different }, verb) {
    if (!known) return "You have not been here yet.";
    if (!different) return `None of ${count(known)} tiles ${verb} so far: walk a little further before you try again.`;
    return `${count(different)} of the ${count(known)} tiles you had seen there ${verb}.`;
  }

  #hide() {
    this.#panel.hidden = true;
    byId("recover").focus({ preventScroll: true });
  }
}

function plus(one, other) {
  return { y: one.y + other.y, x: one.x + other.x };
}
