// One session's WebSocket: it opens again by itself, unless the server said that this would be in vain.

import { Silence } from "./silence.js";
import { Slowness } from "./slowness.js";

const FIRST_WAIT_MS = 250;
const LONGEST_WAIT_MS = 5000;
const PING_MS = 2000;
const UNANSWERED_PINGS = 4; // with nothing else heard: 8 s
const SLOW_TRIES = 2;
const NO_CODE = 1006;
const TOO_SLOW = 4001; // more waited for this page than the server keeps
const NO_USE = { 1008: "refused", 4004: "unknown", 4010: "ended" };

export class Link {
  #url;
  #on;
  #socket = null;
  #waitMs = FIRST_WAIT_MS;
  #closed = false;
  #timer = null;
  #silence = new Silence(UNANSWERED_PINGS);
  #slowness = new Slowness(SLOW_TRIES);

  /** Whether to ask for the controls when connecting; a page that only watches must not take them back. */
  controls = true;

  /** The newest block that is here whole, with its receipt; null before the first. A new server goes by it. */
  received = null;

  /** `on`: frame(ArrayBuffer), message(object), waiting(ms), carries() after it was too slow, over(why). */
  constructor(session, on) {
    const scheme = location.protocol === "https:" ? "wss" : "ws";
    this.#url = `${scheme}://${location.host}/api/sessions/${encodeURIComponent(session)}/play`;
    this.#on = on;
    setInterval(() => this.#ping(), PING_MS);
    addEventListener("online", () => this.#hurry());
    this.connect();
  }

  /** Whether no frame comes through, however often it is tried. */
  get isTooSlow() {
    return this.#slowness.isTooSlow;
  }

  connect() {
    clearTimeout(this.#timer);
    this.#silence.broken();
    this.#slowness.begun();
    const socket = new WebSocket(this.#address());
    socket.binaryType = "arraybuffer";
    socket.onmessage = ({ data }) => {
      this.#silence.broken();
      const isFrame = data instanceof ArrayBuffer;
      const message = isFrame ? null : JSON.parse(data);
      if (isFrame ? this.#slowness.frame() : this.#slowness.word(message.type)) this.#on.carries();
      if (this.#slowness.isNone) this.#waitMs = FIRST_WAIT_MS; // a word alone is no sign that it gets better
      if (isFrame) this.#on.frame(data);
      else this.#on.message(message);
    };
    socket.onclose = ({ code }) => (code === TOO_SLOW ? this.#giveUp(code) : this.#lose(code));
    this.#socket = socket;
  }

  #address() {
    const query = new URLSearchParams();
    if (!this.controls) query.set("watch", "true");
    if (this.received !== null) query.set("received", this.received);
    return `${this.#url}?${query}`;
  }

  /** Send a message if somebody listens. Says whether it went. */
  send(message) {
    if (this.#socket?.readyState !== WebSocket.OPEN) return false;
    this.#socket.send(JSON.stringify(message));
    return true;
  }

  /** Connect anew at once, this time with the controls. */
  takeControls() {
    this.controls = true;
    this.#leave();
    this.connect();
  }

  close() {
    this.#closed = true;
    clearTimeout(this.#timer);
    this.#socket?.close();
  }

  // A handshake that nobody answers is a silence too.
  #ping() {
    if (!this.#socket || this.#closed) return;
    if (this.#silence.round()) this.#giveUp(NO_CODE);
    else this.send({ type: "ping", t: performance.now() });
  }

  #giveUp(code) {
    this.#slowness.gaveUp();
    this.#lose(code);
  }

  // Nothing is heard of it any more, whether or not the other end hears that it closes.
  #leave() {
    if (!this.#socket) return;
    this.#socket.onmessage = this.#socket.onclose = null;
    this.#socket.close();
    this.#socket = null;
  }

  #lose(code) {
    if (this.#closed) return;
    this.#leave();
    if (NO_USE[code]) {
      this.close();
      return this.#on.over(NO_USE[code]);
    }
    // A little chance keeps a hundred pages from knocking in one instant.
    const waitMs = this.#waitMs * (0.75 + Math.random() / 2);
    this.#waitMs = Math.min(LONGEST_WAIT_MS, this.#waitMs * 2);
    this.#on.waiting(waitMs);
    this.#timer = setTimeout(() => this.connect(), waitMs);
  }

  #hurry() {
    if (!this.#socket && !this.#closed) this.connect();
  }
}
