// Four things to do within the first minute, ticked as they are done.

import { byId, say } from "./dom.js";
import { recall, remember } from "./tab.js";

const WALK = 4; // tiles

export class Guide {
  #session = null;
  #done = new Set();
  #items = new Map([...byId("guide").querySelectorAll("[data-step]")].map((item) => [item.dataset.step, item]));
  #start = null;
  #flag = null; // where it was planted last
  #away = false; // has been out of reach of the flag since the move

  /** From now on this session is played: what was done in it before this page was loaded anew stays done. */
  serve(session) {
    this.#session = session;
    const { done, flag } = recall(`guide ${session}`) ?? { done: [], flag: null };
    this.#flag = flag;
    for (const step of done) this.#mark(step);
  }

  frame(pose, action) {
    this.#start ??= pose;
    if (apart(pose, this.#start) >= WALK) this.#tick("walk");
    if (action === "flag") {
      this.#flag = pose;
      this.#away = false;
      this.#tick("flag");
    }
    if (!this.#flag || !this.#done.has("move")) return;
    if (apart(pose, this.#flag) >= WALK) this.#away = true;
    else if (this.#away && apart(pose, this.#flag) === 0) this.#tick("back");
  }

  moved() {
    this.#tick("move");
  }

  #tick(step) {
    const known = this.#done.has(step);
    if (known && step !== "flag") return;
    this.#mark(step);
    remember(`guide ${this.#session}`, { done: [...this.#done], flag: this.#flag });
    if (step === "back") say(byId("guide-end"), "Here is your flag. Another process draws it now, out of the same memory.");
  }

  #mark(step) {
    this.#done.add(step);
    const item = this.#items.get(step);
    item.classList.add("done");
    say(item.querySelector(".tick"), "done: ");
  }
}

function apart(one, other) {
  return Math.max(Math.abs(one.y - other.y), Math.abs(one.x - other.x));
}
