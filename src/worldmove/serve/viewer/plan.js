// What the next move would be: the speed of the link, the strategy it would get, and the terms of its pause.

import { planMove } from "./api.js";
import { byId, make, onChoice } from "./dom.js";
import { megabytes, ms } from "./words.js";

// What the slider stands at, from its left end on. None: as fast as the path is.
const SPEEDS = [
  [null, "as fast as it is"],
  ["10gbit", "10 Gb/s"],
  ["1gbit", "1 Gb/s"],
  ["250mbit", "250 Mb/s"],
  ["100mbit", "100 Mb/s"],
  ["25mbit", "25 Mb/s"],
];
const ASK_EVERY_MS = 3000;
const LABEL_SHARE = 0.2; // of the bar: a narrower part has no room for its name

const WHY_NOT = {
  too_slow: "too slow",
  too_long: "would prepare too long",
  falls_behind: "would never catch up",
  aside: "its snapshot would be too slow",
  not_measured: "not measured yet",
  no_slot: "no free place",
};

export class Plan {
  #session = null;
  #workers;
  #slider = byId("link");
  #speed = byId("link-speed");
  #sentence = byId("plan-sentence");
  #bar = byId("plan-bar");
  #terms = byId("plan-terms");
  #others = byId("plan-others");
  #after = byId("plan-after");
  #timer = null;
  #numAsked = 0;

  constructor(workers) {
    this.#workers = workers;
    this.#slider.max = SPEEDS.length - 1;
    this.#slider.addEventListener("input", () => this.#moved());
    onChoice(this.#slider, () => {});
    this.#moved();
  }

  /** The speed that the next move is to have; null for that of the path. */
  get link() {
    return SPEEDS[this.#slider.value][0];
  }

  /** From now on plans are made for this session. */
  serve(session) {
    this.#session = session;
    clearInterval(this.#timer);
    this.#timer = setInterval(() => this.look(), ASK_EVERY_MS);
    this.look();
  }

  stop() {
    this.#session = null;
    clearInterval(this.#timer);
  }

  /** Ask anew. An answer that a newer question has overtaken is not shown. */
  async look() {
    if (!this.#session || document.hidden) return;
    const asked = ++this.#numAsked;
    try {
      const plan = await planMove(this.#session, { to: this.#workers.target, link: this.link });
      if (asked === this.#numAsked) this.#show(plan);
    } catch (error) {
      if (asked === this.#numAsked) this.#say("No plan.", error.message);
    }
  }

  /** A move has ended: what had been expected of it stands beside what came of it. */
  followed({ outcome, pause_ms: pause, expected }) {
    if (outcome === "committed" && expected) {
      const [lead, rest] = [`Expected ${ms(expected.pause_ms)}, measured ${ms(pause)}`, ` by ${expected.strategy}.`];
      this.#after.replaceChildren(make("b", {}, lead), rest);
    } else {
      this.#after.replaceChildren();
    }
    this.look();
  }

  #moved() {
    const words = SPEEDS[this.#slider.value][1];
    this.#speed.textContent = words;
    this.#slider.setAttribute("aria-valuetext", words);
    this.look();
  }

  #show(plan) {
    const chosen = plan.strategies.find(({ strategy }) => strategy === plan.strategy);
    if (plan.admitted) {
      const before = chosen.before_ms > 1 ? `, after ${ms(chosen.before_ms)} that you play on` : "";
      this.#say(`By ${plan.strategy}.`, `${megabytes(plan.num_bytes)}, a pause of about ${ms(chosen.pause_ms)}${before}.`);
    } else {
      this.#say("It would be refused.", chosen.remedy ? `It would take ${chosen.remedy}.` : `${chosen.detail}.`);
    }
    this.#draw(chosen.pause, plan.admitted);
    const others = plan.strategies.filter((found) => found !== chosen);
    this.#others.textContent = others.map(otherwise).join(" · ");
  }

  #draw(terms, admitted) {
    const total = terms.reduce((sum, term) => sum + term.ms, 0) || 1;
    const parts = terms.map((term, number) => {
      const part = make("span", { "data-term": number, title: term.how }, term.ms / total > LABEL_SHARE ? term.name : "");
      part.style.flexGrow = term.ms / total;
      return part;
    });
    this.#bar.replaceChildren(...parts);
    this.#bar.classList.toggle("empty", !terms.length);
    this.#bar.classList.toggle("refused", !admitted);
    this.#terms.replaceChildren(...terms.map(named));
  }

  #say(lead, rest) {
    this.#sentence.replaceChildren(make("b", {}, lead), ` ${rest}`);
  }
}

function named(term, number) {
  const item = make("li", { "data-term": number }, term.name, " ");
  item.append(make("span", {}, ms(term.ms)));
  return item;
}

function otherwise({ strategy, admitted, pause_ms: pause, reason }) {
  if (admitted) return `${strategy}: ${ms(pause)}`;
  return `${strategy}: ${WHY_NOT[reason] ?? reason}${pause == null ? "" : ` (${ms(pause)})`}`;
}
