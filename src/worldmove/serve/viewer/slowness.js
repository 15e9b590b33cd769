// Whether a path carries words and no pictures: each frame takes longer than a page waits. Pure.
//
// Over such a path every connection begins well, and falls silent with its first frame: what a ping is answered waits
// behind that. A path that carries nothing at all brings no word either, and a world that rests answers every ping.

const CARRYING_PONGS = 2; // one may come before the first frame is on its way

export class Slowness {
  #most;
  #tries = 0;
  #words = 0;
  #pongs = 0;
  #hasFrame = false;

  /** `most`: after so many tries in a row without one frame the path is too slow. */
  constructor(most) {
    this.#most = most;
  }

  get isTooSlow() {
    return this.#tries >= this.#most;
  }

  /** Nothing has failed by it. */
  get isNone() {
    return this.#tries === 0;
  }

  begun() {
    this.#words = this.#pongs = 0;
    this.#hasFrame = false;
  }

  /** A message came, of this type. Says whether the path has just proved to be none of these. */
  word(type) {
    this.#words++;
    if (type === "pong") this.#pongs++;
    return this.#pongs >= CARRYING_PONGS && this.#carries();
  }

  /** A whole frame came. The same. */
  frame() {
    this.#hasFrame = true;
    return this.#carries();
  }

  /** A connection was given up: nothing more came over it, or the server had too much to send. */
  gaveUp() {
    if (this.#words > 0 && !this.#hasFrame && this.#pongs < CARRYING_PONGS) this.#tries++;
  }

  #carries() {
    const was = this.isTooSlow;
    this.#tries = 0;
    return was;
  }
}
