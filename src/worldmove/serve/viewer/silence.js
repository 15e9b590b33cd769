// Whether a connection still carries anything. Pure.
//
// A path can go silent without closing (a tunnel, a network that changed): nobody tells a page. A server answers every
// ping, so rounds in which not even that came say so. Rounds are counted, not seconds: a hidden page's timers are slowed
// down, and a machine that slept has missed none.

export class Silence {
  #most;
  #rounds = 0;

  /** `most`: so many rounds in a row without a word are a silence. */
  constructor(most) {
    this.#most = most;
  }

  /** Something came, or a connection was begun. */
  broken() {
    this.#rounds = 0;
  }

  /** A round begins. Says whether those before it were a silence. */
  round() {
    return this.#rounds++ >= this.#most;
  }
}
