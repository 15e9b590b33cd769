// The processes, and which of them owns this world.

import { byId, make, onChoice } from "./dom.js";
import { plural } from "./words.js";

export class Workers {
  #list = byId("workers");
  #target = byId("target");
  #rows = [];
  #owner = null;
  #last = null; // the owner that a world had which is over

  constructor() {
    onChoice(this.#target, () => {});
  }

  update(rows) {
    this.#rows = rows;
    this.#draw();
  }

  owned(owner) {
    this.#owner = owner;
    this.#draw();
  }

  /** The world is over: nobody owns it. */
  ended() {
    this.#last = this.#owner ?? this.#last;
    this.owned(null);
  }

  get owner() {
    return this.#owner;
  }

  /** Where the next move is to go: a worker's name, or null to let the server choose. */
  get target() {
    return this.#target.value || null;
  }

  #draw() {
    this.#list.replaceChildren(...this.#rows.map((row) => this.#card(row)));
    const others = this.#rows.filter((row) => row.name !== this.#owner?.worker);
    this.#target.parentElement.hidden = others.length < 2;
    const kept = others.some((row) => row.name === this.target) ? this.target : "";
    const options = others.map((row) => make("option", { value: row.name }, row.name));
    this.#target.replaceChildren(make("option", { value: "" }, "any"), ...options);
    this.#target.value = kept;
  }

  #card(row) {
    const owns = row.name === this.#owner?.worker;
    const card = make("li", { class: owns ? "worker owner" : "worker", "data-worker": row.name });
    card.append(make("b", {}, row.name), make("span", {}, `process ${row.pid ?? "-"}`));
    card.append(make("span", { class: "holds" }, owns ? `your world, epoch ${this.#owner.epoch}` : this.#others(row)));
    return card;
  }

  // The newest row of the last owner may still count the world that is over.
  #others(row) {
    return row.name === this.#last?.worker ? "your world was here" : roomIn(row);
  }
}

function roomIn(row) {
  if (row.state === "suspected") return "does not answer";
  if (row.state && !["ready", "running", "schedulable"].includes(row.state)) return row.state;
  return row.sessions ? `${plural(row.sessions, "other world")}` : "empty";
}
