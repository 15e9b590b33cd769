// The drawn keys: filled while the picture shown was reached by them, outlined while they are pressed.

import { byId } from "./dom.js";

export class Pad {
  #buttons = [...byId("pad").querySelectorAll("[data-key]")];
  #keyboard;

  constructor(keyboard) {
    this.#keyboard = keyboard;
    for (const button of this.#buttons) this.#listen(button, button.dataset.key);
  }

  /** Show the keys this world understands, and only those. */
  understand(keys) {
    for (const button of this.#buttons) button.hidden = !keys.includes(button.dataset.key);
  }

  applied(key) {
    for (const button of this.#buttons) button.classList.toggle("applied", button.dataset.key === key);
  }

  pressed(changes) {
    for (const button of this.#buttons) button.classList.toggle("pressed", changes.isDown(button.dataset.key));
  }

  #listen(button, key) {
    const lift = (event) => this.#keyboard.lift(key, `pointer ${event.pointerId}`);
    button.addEventListener("pointerdown", (event) => {
      event.preventDefault();
      button.setPointerCapture(event.pointerId);
      this.#keyboard.press(key, `pointer ${event.pointerId}`);
    });
    for (const end of ["pointerup", "pointercancel", "lostpointercapture"]) button.addEventListener(end, lift);
    button.addEventListener("contextmenu", (event) => event.preventDefault());
    // Enter or Space on a focused button, or a switch: a click without a pointer is one tap.
    button.addEventListener("click", (event) => {
      if (event.detail) return;
      this.#keyboard.press(key, "click");
      this.#keyboard.lift(key, "click");
    });
  }
}
