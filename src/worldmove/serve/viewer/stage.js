// The picture, in whole multiples of its own pixels, and the words that stand over it.

import { byId, make, onPress, say } from "./dom.js";

const ORDER = ["over", "link", "loading", "taken", "error", "let go", "rest", "play"]; // the first that has words is shown

export class Stage {
  #box = byId("stage");
  #canvas = byId("picture");
  #context = this.#canvas.getContext("2d", { alpha: false });
  #chip = byId("chip");
  #notice = byId("notice");
  #status = byId("status");
  #words = new Map();

  constructor() {
    new ResizeObserver(() => this.#fit()).observe(this.#box.parentElement);
    addEventListener("resize", () => this.#fit());
    onPress(byId("fullscreen"), () => this.#fullscreen());
  }

  size(width, height) {
    this.#canvas.width = width;
    this.#canvas.height = height;
    this.#box.style.aspectRatio = `${width} / ${height}`;
    this.#fit();
  }

  paint(frame, image) {
    this.#context.putImageData(image, 0, 0);
    Object.assign(this.#box.dataset, {
      frame: frame.frame,
      block: frame.block,
      pose: `${frame.pose.y},${frame.pose.x}`,
      epoch: frame.epoch,
    });
  }

  chip(text) {
    say(this.#chip, text);
  }

  /** Give or take (null) the words for one reason. `act` is [label, function]: one next thing to do. */
  words(reason, text, act = null) {
    if (text === null) this.#words.delete(reason);
    else this.#words.set(reason, { text, act });
    const shown = ORDER.find((name) => this.#words.has(name));
    this.#box.dataset.state = shown ?? "playing";
    this.#show(shown ? this.#words.get(shown) : { text: "", act: null });
  }

  #show({ text, act }) {
    if (this.#notice.dataset.text === text) return;
    this.#notice.dataset.text = text;
    this.#notice.hidden = !text;
    this.#notice.replaceChildren(make("span", {}, text));
    if (act) this.#notice.append(this.#button(act));
    say(this.#status, text);
  }

  #button([label, run]) {
    const button = make("button", { type: "button", class: "primary small" }, label);
    onPress(button, run);
    return button;
  }

  // One picture pixel must cover a whole number of the screen's pixels, or some tiles look wider than others.
  #fit() {
    const ratio = devicePixelRatio || 1;
    const room = this.#box.parentElement.clientWidth;
    const tall = document.fullscreenElement ? innerHeight : Math.max(256, Math.min(640, innerHeight * 0.64));
    const scale = Math.min((room * ratio) / this.#canvas.width, (tall * ratio) / this.#canvas.height);
    const width = (Math.max(1, Math.floor(scale)) * this.#canvas.width) / ratio;
    this.#box.style.width = `${Math.min(width, room)}px`;
  }

  #fullscreen() {
    if (document.fullscreenElement) document.exitFullscreen();
    else this.#box.parentElement.requestFullscreen?.();
  }
}
