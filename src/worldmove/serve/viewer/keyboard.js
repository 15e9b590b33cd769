// From keys and thumbs to named keys of the world. Keys go by their place (event.code), not by their letter.
//
// The page plays from the first key or click on, until Escape. Only then are keys kept from scrolling; a key
// pressed while a field has the focus, or Space while a button has it, is never ours.

const CODES = {
  ArrowUp: "up", KeyW: "up",
  ArrowDown: "down", KeyS: "down",
  ArrowLeft: "left", KeyA: "left",
  ArrowRight: "right", KeyD: "right",
  Space: "flag",
};

export class Keyboard {
  playing = false;
  fresh = true; // nobody has played yet
  #letGo = false;
  #keys = [];
  #stage;
  #changes;
  #onChange;
  #onPlay;

  constructor(stage, changes, onChange, onPlay) {
    [this.#stage, this.#changes, this.#onChange, this.#onPlay] = [stage, changes, onChange, onPlay];
    addEventListener("keydown", (event) => this.#down(event));
    addEventListener("keyup", (event) => this.#up(event));
    addEventListener("blur", () => this.release());
    document.addEventListener("visibilitychange", () => document.hidden && this.release());
    stage.addEventListener("pointerdown", () => this.play());
  }

  /** The keys that this world understands. */
  understand(keys) {
    this.#keys = keys;
  }

  play() {
    this.#letGo = false;
    this.#set(true);
  }

  release() {
    this.#changes.releaseAll();
    this.#onChange();
  }

  press(key, cause) {
    if (!this.#keys.includes(key)) return;
    this.play();
    this.#changes.press(key, cause);
    this.#onChange();
  }

  lift(key, cause) {
    this.#changes.release(key, cause);
    this.#onChange();
  }

  #down(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || isField(event.target)) return;
    if (event.code === "Escape") return this.#escape();
    if (event.code === "Enter" && event.target === this.#stage) return this.play();
    const key = CODES[event.code];
    if (!this.#keys.includes(key) || this.#letGo || (key === "flag" && isControl(event.target))) return;
    event.preventDefault();
    if (!event.repeat) this.press(key, event.code);
  }

  #up(event) {
    if (CODES[event.code]) this.lift(CODES[event.code], event.code);
  }

  #escape() {
    if (!this.playing) return;
    this.#letGo = true;
    this.release();
    this.#set(false);
  }

  #set(playing) {
    if (this.playing === playing) return;
    this.playing = playing;
    this.fresh = false;
    this.#onPlay(playing);
  }
}

const isField = (target) => target instanceof Element && target.matches("input, select, textarea, [contenteditable]");
const isControl = (target) => target instanceof Element && target.matches("button, a, summary");
