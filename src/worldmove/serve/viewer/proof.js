// "The same world?": what was compared, with what, and who compared it.
//
// Three badges, never mixed: checked here (this page took the digest itself), reported (the servers' digests agree),
// not checked (and why).

import { byId, make, say } from "./dom.js";
import { HEADER_BYTES } from "./wire.js";
import { count, megabytes, plural, short } from "./words.js";

const KEPT_BLOCKS = 64;
const SIGNS = new Map([[true, "="], [false, "≠"], [null, "?"]]);

export class Proof {
  #session = "";
  #shown = null; // the frame that stands on the screen
  #digests = new Map(); // block -> digests that this page took, by the frame's index
  #check = null; // the newest
  #equal = null; // {attempt, equal, of}

  constructor() {
    byId("save").addEventListener("click", () => this.#save());
  }

  serve(session) {
    this.#session = session;
  }

  /** A frame's verdict is known: keep its digest if this page took it. */
  judged(frame) {
    if (frame.verdict !== "checked") return;
    const digests = this.#digests.get(frame.block) ?? [];
    digests[frame.index] = frame.sha256;
    this.#digests.set(frame.block, digests);
    if (this.#digests.size > KEPT_BLOCKS) this.#digests.delete(this.#digests.keys().next().value);
    if (this.#check?.block === frame.block) badge(byId("check-badge"), this.#checkBadge(this.#check));
  }

  painted(frame) {
    this.#shown = frame;
    say(byId("this-label"), `This picture, frame ${count(frame.frame)}`);
    say(byId("this-digest"), short(frame.sha256));
    badge(byId("this-badge"), frame.verdict === "checked" ? ["checked here", "good"] : ["reported", "plain"]);
  }

  counted(frames) {
    const withheld = frames.withheld ? ` · ${count(frames.withheld)} withheld` : "";
    say(
      byId("frames"),
      `${count(frames.shown)} shown · ${count(frames.missing)} missing · ${count(frames.repeated)} repeated${withheld}`,
    );
  }

  moved(result) {
    if (result.outcome !== "committed") return;
    const checked = result.proof?.startsWith("checked");
    say(byId("state-label"), `State after the last move (${megabytes(result.num_bytes)}, ${plural(result.num_parts, "part")})`);
    say(byId("state-digest"), short(result.state_digest));
    badge(byId("state-badge"), checked ? ["identical (checked)", "good"] : [result.proof ?? "not checked", "plain"]);
    this.#equal = { attempt: result.attempt, equal: 0, of: 0 };
    say(byId("equal-blocks"), "waiting for the first");
    badge(byId("check-badge"), ["not checked (the next blocks are being compared)", "plain"]);
    say(byId("check-digest"), "");
  }

  checked(check) {
    if (this.#equal?.attempt !== check.attempt) this.#equal = { attempt: check.attempt, equal: 0, of: 0 };
    this.#check = check;
    if (check.equal !== null) this.#equal.of++;
    if (check.equal) this.#equal.equal++;
    say(byId("check-label"), `The copy left behind, block ${count(check.block)}`);
    say(byId("check-digest"), `${short(check.owner.state_digest)} ${SIGNS.get(check.equal)} ${short(check.retired.state_digest)}`);
    badge(byId("check-badge"), this.#checkBadge(check));
    say(byId("equal-blocks"), `${count(this.#equal.equal)} of ${count(this.#equal.of)}`);
  }

  counts({ moved, refused, aborted, lost }) {
    say(
      byId("moves-so-far"),
      `${count(moved)} moved · ${count(refused)} refused · ${count(aborted)} aborted · ${count(lost)} lost`,
    );
  }

  // The pictures of the copy left behind against the digests that this page took of the pictures it was sent.
  #checkBadge(check) {
    if (check.equal === null) return ["not compared: there is no digest of the state", "plain"];
    if (!check.equal) return ["not equal", "bad"];
    const mine = this.#digests.get(check.block);
    const theirs = check.retired.frames ?? [];
    const here = mine && theirs.length > 0 && theirs.every((digest, i) => digest === mine[i]);
    return here ? ["equal, checked here", "good"] : ["equal, reported", "plain"];
  }

  #save() {
    if (!this.#shown) return;
    const { frame, width, height, sha256, buffer } = this.#shown;
    const name = `${this.#session}-frame-${frame}-${width}x${height}.rgb`;
    const url = URL.createObjectURL(new Blob([buffer.slice(HEADER_BYTES)], { type: "application/octet-stream" }));
    make("a", { href: url, download: name }).click();
    setTimeout(() => URL.revokeObjectURL(url), 10_000);
    byId("saved").hidden = false;
    byId("saved").replaceChildren(make("code", {}, `sha256sum ${name}`), " must print ", make("code", {}, sha256));
  }
}

function badge(element, [words, tone]) {
  element.dataset.tone = tone;
  say(element, words);
}
