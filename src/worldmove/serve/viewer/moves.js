// Moving: the buttons, the last move as a bar of its phases, and one sentence under it.

import { moveSession, recoverSession } from "./api.js";
import { byId, make, onChoice, onPress } from "./dom.js";
import { ms, resultWords } from "./words.js";

const PHASES = ["Copying", "Holding", "Checking", "Handing over", "Moved"];
const HELD_WORTH_A_WORD_MS = 250;
const UNKNOWN_MOVE = ["It may have moved.", "The mark above stands at the process that runs your world."];
const UNKNOWN_COPY = ["A copy may have been made.", "It would be thrown away by itself."];
const LABEL_SHARE = 0.17; // of the bar: a narrower part has no room for its name

export class Moves {
  #session = null;
  #workers;
  #plan;
  #onKeep;
  #bar = byId("bar");
  #legend = byId("phases");
  #sentence = byId("move-sentence");
  #button = byId("move");
  #breaker = byId("break");
  #recover = byId("recover");
  #every = byId("every");
  #everySeconds = byId("every-seconds");
  #timer = null;
  #attempt = null; // the one that runs: {id, phases: [{name, sinceMs}]}
  #busy = false;
  #over = false;
  #held = null;
  #numResults = 0;
  #handedOver = null; // {epoch, ms}: the newest owner was named
  #firstBlock = null; // {epoch, ms}: its first frame came, so long after

  /** `onKeep(bool)`: whether the world is to go on although no key is down. */
  constructor(workers, plan, onKeep) {
    this.#workers = workers;
    this.#plan = plan;
    this.#onKeep = onKeep;
    onPress(this.#button, () => this.#move({}));
    onPress(this.#breaker, () => this.#move({ damage: true }));
    onPress(this.#recover, () => this.#recoverCopy());
    onPress(this.#every, () => this.#toggle());
    onChoice(this.#everySeconds, () => this.#retime());
    this.#retime();
  }

  get keeps() {
    return this.#timer !== null;
  }

  /** From now on the buttons act on this session. */
  serve(session, controls) {
    this.#session = session;
    this.#enable(controls);
  }

  stop() {
    this.#session = null;
    if (this.keeps) this.#toggle();
    this.#enable(false);
  }

  /** The world is over: what was said of its last move is no longer so. */
  end() {
    this.stop();
    this.#over = true;
    clearTimeout(this.#held);
    if (this.#sentence.dataset.outcome === "lost") return;
    this.#draw([]);
    this.#say("This world is over.", "Nothing is left to move.", "lost");
  }

  /** How many moves this world has had, those before this page was opened among them. */
  counts({ moved, refused, aborted, lost }) {
    if (this.#sentence.dataset.tone !== "none" || !(moved + refused + aborted + lost)) return;
    this.#say("No move since this page opened.", "Press Move and keep walking.", "none");
  }

  phase({ attempt, phase, to }) {
    if (this.#attempt?.id !== attempt) this.#attempt = { id: attempt, phases: [] };
    this.#attempt.phases.push({ name: phase, sinceMs: performance.now() });
    this.#draw(elapsed(this.#attempt.phases));
    clearTimeout(this.#held);
    if (phase === "Copying") this.#say(`Copying your world to ${to}.`, "Keep playing.", "running");
    if (phase === "Holding") this.#held = setTimeout(() => this.#sayHeld(), HELD_WORTH_A_WORD_MS);
  }

  /** The ledger names an owner of this epoch. */
  owned(epoch) {
    if (epoch !== this.#handedOver?.epoch) this.#handedOver = { epoch, ms: performance.now() };
  }

  /** A frame came that was made in this epoch. */
  arrived(epoch) {
    if (epoch !== this.#handedOver?.epoch || epoch === this.#firstBlock?.epoch) return;
    this.#firstBlock = { epoch, ms: performance.now() - this.#handedOver.ms };
  }

  result(result) {
    clearTimeout(this.#held);
    this.#attempt = null;
    this.#numResults++;
    this.#draw(this.#withFirstBlock(result));
    this.#say(...resultWords(result));
    this.#sentence.dataset.outcome = result.outcome;
  }

  // "Moved" lasts until the first new block is here: a report that ends with the commit leaves that to this page.
  #withFirstBlock({ outcome, epoch, phases }) {
    const told = phases.some(({ name }) => name === "Moved");
    if (told || outcome !== "committed" || this.#firstBlock?.epoch !== epoch) return phases;
    return [...phases, { name: "Moved", ms: this.#firstBlock.ms }];
  }

  async #move(request) {
    if (this.#busy || !this.#session) return;
    this.#setBusy(true);
    const [to, link, before] = [this.#workers.target, this.#plan.link, this.#numResults];
    try {
      await moveSession(this.#session, request.damage ? request : { ...request, to, link });
    } catch (error) {
      // A move that got as far as a result has said it already, and better.
      if (this.#numResults === before && !this.#over) this.#sayFailed(error, "Not moved, nothing changed.", UNKNOWN_MOVE);
    } finally {
      this.#setBusy(false);
    }
  }

  async #recoverCopy() {
    try {
      await recoverSession(this.#session);
    } catch (error) {
      this.#sayFailed(error, "No copy was made, nothing changed.", UNKNOWN_COPY);
    }
  }

  // Only the server knows that nothing was done.
  #sayFailed(error, lead, otherwise) {
    if (error.refused) return this.#say(lead, error.message, "kept");
    clearTimeout(this.#held);
    this.#say(otherwise[0], `${error.message} ${otherwise[1]}`, "held");
  }

  #toggle() {
    if (this.keeps) clearInterval(this.#timer);
    this.#timer = this.keeps ? null : setInterval(() => this.#move({}), this.#everySeconds.value * 1000);
    this.#every.setAttribute("aria-pressed", String(this.keeps));
    this.#onKeep(this.keeps);
  }

  #retime() {
    this.#every.setAttribute("aria-label", `Move every ${this.#everySeconds.value} s`);
    if (!this.keeps) return;
    this.#toggle();
    this.#toggle();
  }

  #setBusy(busy) {
    this.#busy = busy;
    this.#enable(this.#session !== null);
  }

  // Not `disabled`: a disabled button would drop the focus that stands on it.
  #enable(controls) {
    for (const button of [this.#button, this.#breaker]) {
      button.setAttribute("aria-disabled", String(!controls || this.#busy));
    }
    for (const button of [this.#recover, this.#every]) button.setAttribute("aria-disabled", String(!controls));
  }

  #sayHeld() {
    const since = this.#attempt?.phases.at(-1)?.sinceMs;
    if (since) this.#say("Holding the world still:", ms(performance.now() - since), "held");
  }

  #say(lead, rest, tone) {
    this.#sentence.dataset.tone = tone;
    delete this.#sentence.dataset.outcome;
    this.#sentence.replaceChildren(make("b", {}, lead), ` ${rest}`);
  }

  #draw(phases) {
    const total = phases.reduce((sum, phase) => sum + phase.ms, 0) || 1;
    const parts = phases.map(({ name, ms: took }) => {
      const share = took / total;
      const part = make("span", { "data-phase": PHASES.indexOf(name) }, share > LABEL_SHARE ? name : "");
      part.style.flexGrow = share;
      return part;
    });
    this.#bar.replaceChildren(...parts);
    this.#bar.classList.toggle("empty", !phases.length);
    this.#legend.replaceChildren(...phases.map((phase) => legend(phase)));
  }
}

function elapsed(phases) {
  const now = performance.now();
  return phases.map(({ name, sinceMs }, i) => ({ name, ms: (phases[i + 1]?.sinceMs ?? now) - sinceMs }));
}

function legend({ name, ms: took }) {
  const item = make("li", { "data-phase": PHASES.indexOf(name) }, name, " ");
  item.append(make("span", {}, ms(took)));
  return item;
}
