// Four things to do within the first minute, ticked as they are done.

import { byId, say } from "./dom.js";

const WALK = 4; // tiles

export class Guide {
  #items = new Map([...byId("guide").querySelectorAll("[data-step]")].map((item) => [item.dataset.step, item]));
  #start = null;
  #flag = null; // where it was planted last
  #away = false; // has been out of reach of the flag since the move
  #moved = false;

  frame(pose, action) {
    this.#start ??= pose;
    if (apart(pose, this.#start) >= WALK) this.#tick("walk");
    if (action === "flag") {
      this.#flag = pose;
      this.#tick("flag");
    }
    if (!this.#flag || !this.#moved) return;
    if (apart(pose, this.#flag) >= WALK) this.#away = true;
    else if (this.#away && apart(pose, this.#flag) === 0) this.#tick("back");
  }

  moved() {
    this.#moved = true;
    this.#tick("move");
  }

  #tick(step) {
    const item = this.#items.get(step);
    if (item.classList.contains("done")) return;
    item.classList.add("done");
    say(item.querySelector(".tick"), "done: ");
    if (step === "back") say(byId("guide-end"), "Here is your flag. Another process draws it now, out of the same memory.");
  }
}

function apart(one, other) {
  return Math.max(Math.abs(one.y - other.y), Math.abs(one.x - other.x));
}
