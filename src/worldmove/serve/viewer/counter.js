// Counts what this page was shown, from the frame numbers alone. Pure.

export class FrameCounter {
  shown = 0;
  missing = 0;
  repeated = 0;
  withheld = 0;
  #next = null;
  #catchUp = false;

  /** A connection was made: the newest block may come again, and is dropped without being counted. */
  connected() {
    this.#catchUp = true;
  }

  /** Whether the frame is new. What is not has been here before and must not be painted. */
  arrived(number) {
    if (this.#next !== null && number < this.#next) {
      if (!this.#catchUp) this.repeated++;
      return false;
    }
    this.#catchUp = false;
    if (this.#next !== null) this.missing += number - this.#next;
    this.#next = number + 1;
    return true;
  }
}
