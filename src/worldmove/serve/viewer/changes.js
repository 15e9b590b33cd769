// Numbers this page's key changes, one by one, and knows which keys are down. Pure.
//
// Two causes may hold one key (an arrow and a letter, a thumb and a key): it is down while any cause is.

export class KeyChanges {
  #causes = new Map(); // key -> causes that hold it
  #next = null; // null until the server says where to begin
  #outgoing = [];

  /** The keys that are down now. */
  get down() {
    return [...this.#causes.keys()];
  }

  isDown(key) {
    return this.#causes.has(key);
  }

  press(key, cause) {
    const causes = this.#causes.get(key);
    if (causes) return causes.add(cause);
    this.#causes.set(key, new Set([cause]));
    this.#number(key, true);
  }

  release(key, cause) {
    const causes = this.#causes.get(key);
    if (!causes?.delete(cause) || causes.size) return;
    this.#causes.delete(key);
    this.#number(key, false);
  }

  releaseAll() {
    for (const key of this.down) {
      this.#causes.delete(key);
      this.#number(key, false);
    }
  }

  /** After a hello: what was not acknowledged is forgotten, and what is down now is pressed again. */
  resume(nextNumber) {
    this.#outgoing = [];
    this.#next = nextNumber;
    for (const key of this.down) this.#number(key, true);
  }

  /** Nobody listens: changes made from now on reach nobody, the next hello tells of what is down then. */
  pause() {
    this.#next = null;
    this.#outgoing = [];
  }

  /** Take what is to be sent: [[number, key, down], ...]. */
  take(most = 64) {
    return this.#outgoing.splice(0, most);
  }

  #number(key, down) {
    if (this.#next !== null) this.#outgoing.push([this.#next++, key, down]);
  }
}
