// The page: opens or finds a session, and lets its parts hear of each other. Each part knows one thing.

import { findSession, openSession } from "./api.js";
import { Atlas } from "./atlas.js";
import { KeyChanges } from "./changes.js";
import { byId, say } from "./dom.js";
import { Frames } from "./frames.js";
import { Guide } from "./guide.js";
import { Keyboard } from "./keyboard.js";
import { Link } from "./link.js";
import { WorldMap } from "./map.js";
import { Moves } from "./moves.js";
import { Pad } from "./pad.js";
import { Plan } from "./plan.js";
import { Proof } from "./proof.js";
import { Readings } from "./readings.js";
import { Recovery } from "./recovery.js";
import { Stage } from "./stage.js";
import { Timing } from "./timing.js";
import { toImage } from "./wire.js";
import { awayWords, count, lossWords, plain, seconds } from "./words.js";
import { Workers } from "./workers.js";

const COMPLAINT_MS = 5000;
const NUM_POSES = 32; // four seconds of play
const PLAY = "Click or press a key to play";
const LET_GO = "Keys are yours again. Click here, or press Enter here, to play.";
const WATCHING = "You are watching. Play here takes the controls.";
const TAKEN = "Another page took the controls. You are watching. Play here takes them back.";
const RESTS = "The world rests. It stands still and forgets nothing. Press a key.";

class App {
  stage = new Stage();
  changes = new KeyChanges();
  keyboard = new Keyboard(byId("stage"), this.changes, () => this.keysChanged(), (playing) => this.playChanged(playing));
  pad = new Pad(this.keyboard);
  timing = new Timing();
  readings = new Readings(this.timing);
  atlas = new Atlas();
  map = new WorldMap(this.atlas);
  recovery = new Recovery(this.atlas);
  workers = new Workers();
  plan = new Plan(this.workers);
  moves = new Moves(this.workers, this.plan, (keep) => this.link?.send({ type: "keep", keep }));
  proof = new Proof();
  guide = new Guide();
  frames = new Frames({
    came: (frame) => this.came(frame),
    passed: (frame) => this.passed(frame),
    damaged: (frame) => this.damaged(frame),
    show: (frame) => this.paint(frame),
    showCopy: (frame) => this.recovery.paint(frame, toImage(frame)),
    strange: (why) => this.alarm(`This page does not understand the server: ${why}. Reload it.`),
  });
  link = null;
  engine = null;
  lost = false;
  poses = []; // of the newest live frames that arrived, newest first

  async begin() {
    const found = location.pathname.match(/^\/play\/([^/]+)\/?$/);
    this.stage.words("loading", "Opening your world. The first time takes some seconds.");
    if (found) return this.join(decodeURIComponent(found[1]));
    try {
      const { session } = await openSession();
      history.replaceState(null, "", `/play/${encodeURIComponent(session)}`);
      this.join(session);
    } catch (error) {
      this.stage.words("over", error.message, ["Try again", () => location.reload()]);
    }
  }

  join(session) {
    this.session = session;
    this.proof.serve(session);
    this.guide.serve(session);
    this.link = new Link(session, {
      frame: (buffer) => this.frames.take(buffer),
      message: (message) => this.hear[message.type]?.(message),
      waiting: (waitMs) => this.away(waitMs),
      carries: () => this.stage.words("link", null),
      over: (why) => this.over(why),
    });
  }

  // What the server says, by its type.
  hear = {
    hello: (hello) => this.welcome(hello),
    owner: (owner) => this.owned(owner),
    workers: ({ workers }) => this.workers.update(workers),
    move: (message) => (message.event === "phase" ? this.moves.phase(message) : this.moveEnded(message)),
    check: (check) => this.proof.checked(check),
    counts: (counts) => {
      this.proof.counts(counts);
      this.moves.counts(counts);
      this.readings.late(counts.blocks_late);
    },
    rest: ({ resting }) => this.rest(resting),
    recover: ({ state }) => (state === "opened" ? this.recovery.open(this.poses) : this.recovery.close()),
    failover: ({ outcome, sentence }) => (outcome === "diverged" ? this.alarm : this.complain).call(this, plain(sentence)),
    lost: ({ sentence }) => this.end(sentence),
    taken_over: () => this.takenOver(),
    pong: ({ t }) => this.readings.ping(performance.now() - t),
    error: ({ message }) => this.complain(plain(message)),
  };

  welcome(hello) {
    this.engine = hello.engine;
    this.frames.counter.connected();
    this.timing.forget();
    this.keyboard.understand(hello.engine.keys);
    this.pad.understand(hello.engine.keys);
    if (hello.controls) this.changes.resume(hello.next_number);
    else this.changes.pause();
    if (hello.owner) this.owned(hello.owner);
    this.moves.serve(this.session, hello.controls);
    this.plan.serve(this.session);
    this.stage.size(hello.engine.width, hello.engine.height);
    this.map.remember(hello.engine.memory_blocks);
    this.readings.engine(hello.engine);
    if (!this.link.isTooSlow) this.stage.words("link", null);
    this.rest(false); // a world that rests says so after its hello
    this.stage.words("taken", hello.controls ? null : WATCHING, this.playHere);
    if (this.keyboard.fresh) this.stage.words("play", PLAY);
    if (this.moves.keeps) this.link.send({ type: "keep", keep: true });
    this.keysChanged();
  }

  owned(owner) {
    this.workers.owned(owner);
    this.moves.owned(owner.epoch);
  }

  playHere = ["Play here", () => this.link.takeControls()];

  came(frame) {
    this.moves.arrived(frame.epoch);
    this.poses = [frame.pose, ...this.poses.slice(0, NUM_POSES - 1)];
  }

  passed(frame) {
    this.proof.judged(frame);
    if (frame.index < this.engine.frames_per_block - 1) return;
    this.link.received = `${frame.block}-${frame.receipt}`;
    this.link.send({ type: "received", block: frame.block, server_life: frame.serverLife });
  }

  damaged(frame) {
    this.proof.counted(this.frames.counter);
    this.alarm(`Frame ${count(frame.frame)} was not shown: its bytes do not have the digest that its worker gave.`);
  }

  paint(frame) {
    const image = toImage(frame);
    const key = this.engine.keys[frame.action - 1] ?? null;
    this.stage.paint(frame, image);
    this.stage.words("loading", null);
    this.stage.chip([`block ${count(frame.block)}`, this.workers.owner?.worker].filter(Boolean).join(" · "));
    this.pad.applied(key);
    this.frames.counter.shown++;
    this.timing.painted(frame.number, performance.now());
    this.proof.painted(frame);
    this.proof.counted(this.frames.counter);
    this.map.seen(frame, this.atlas.add(image, frame.pose, frame.block));
    this.guide.frame(frame.pose, key);
  }

  moveEnded(result) {
    this.moves.result(result);
    this.plan.followed(result);
    this.proof.moved(result);
    if (result.outcome === "committed") this.guide.moved();
    if (result.outcome === "lost") this.alarm(plain(result.sentence));
  }

  keysChanged() {
    this.pad.pressed(this.changes);
    // One message for all that changed in this turn of the event loop.
    queueMicrotask(() => {
      for (let changes = this.changes.take(); changes.length; changes = this.changes.take()) {
        for (const [number, , down] of changes) if (down) this.timing.pressed(number, performance.now());
        this.link?.send({ type: "keys", changes });
      }
    });
  }

  playChanged(playing) {
    this.stage.words("play", null);
    this.stage.words("let go", playing ? null : LET_GO);
  }

  rest(resting) {
    this.stage.words("rest", resting ? RESTS : null);
    this.readings.rest(resting);
  }

  takenOver() {
    this.link.controls = false;
    this.changes.pause();
    this.moves.stop();
    this.stage.words("taken", TAKEN, this.playHere);
  }

  away(waitMs) {
    this.changes.pause();
    this.plan.stop();
    this.readings.ping(null);
    this.stage.words("link", awayWords(waitMs, this.link?.isTooSlow));
    // A refused handshake looks to a page like a broken line: ask the other way whether there is a point in trying.
    findSession(this.session).catch(({ status }) => {
      if (status === 404) this.over("unknown");
      if (status === 403) this.over("refused");
    });
  }

  over(why) {
    const words = {
      unknown: "This world is not here any more.",
      ended: "This world has ended.",
      refused: "The server does not let this page in: open it at the address that the server printed.",
    };
    if (this.lost) return;
    if (why === "refused") this.link.close();
    else this.close();
    this.moves.stop();
    this.plan.stop();
    this.stage.words("over", words[why], ["Start a new world", () => location.assign("/")]);
  }

  end(why) {
    const sentence = lossWords(why);
    this.lost = true;
    this.pad.applied(null);
    this.close();
    this.alarm(sentence);
    this.stage.words("over", sentence, ["Start a new world", () => location.assign("/")]);
  }

  // Nothing comes from this world any more: what was said of its present is taken back.
  close() {
    this.link.close();
    this.workers.ended();
    this.moves.end();
    this.plan.stop();
    this.stage.chip("");
  }

  complain(message) {
    this.stage.words("error", message);
    setTimeout(() => this.stage.words("error", null), COMPLAINT_MS);
  }

  alarm(sentence) {
    byId("alarm").hidden = false;
    say(byId("alarm"), sentence);
  }
}

new App().begin();
