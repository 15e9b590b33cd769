// Numbers and sentences, as the page says them. Pure. What was not measured reads "-", never 0.

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const tenth = new Intl.NumberFormat("en", { minimumFractionDigits: 1, maximumFractionDigits: 1 });

export const NONE = "-";

export const count = (number) => (number == null ? NONE : whole.format(number));

export const plural = (number, one, many = `${one}s`) => `${count(number)} ${number === 1 ? one : many}`;

/** Milliseconds, never "0 ms": what was too short to read is said to be shorter than what we read. */
export function ms(value) {
  if (value == null) return NONE;
  if (value < 0.05) return "under 0.1 ms";
  if (value >= 999.5) return seconds(value / 1000);
  return value < 9.95 ? `${tenth.format(value)} ms` : `${whole.format(value)} ms`;
}

export const seconds = (value) => `${tenth.format(value)} s`;

export const megabytes = (bytes) => (bytes == null ? NONE : `${tenth.format(bytes / 1e6)} MB`);

/** The first 8 hex digits, in two groups; the name of the digest ("xxh3-128:") is left out. */
export function short(digest) {
  const digits = digest?.split(":").at(-1);
  return digits ? `${digits.slice(0, 4)} ${digits.slice(4, 8)}` : NONE;
}

/** What stands over the picture while there is no connection. */
export function awayWords(waitMs, isTooSlow) {
  const what = isTooSlow ? "Your link is too slow: no picture came through it in 8 s. Trying again" : "Reconnecting";
  return `${what} (${seconds(waitMs / 1000)}). Your world is held for you.`;
}

/** Why a world is lost, after what that means. */
export function lossWords(why) {
  const words = plain(why);
  return words.startsWith("This world") ? words : `This world could not be recovered: ${words.replace(/\.$/, "")}.`;
}

// What the server says in the words of its log, as a visitor would say it.
const PLAINER = [
  [/\bworker (?=worker-)/gi, ""],
  [/\bthe session was not frozen in time\b/gi, "The world was not stopped in time, so nothing was moved"],
];

export const plain = (text) => PLAINER.reduce((words, [said, plainer]) => words.replace(said, plainer), text);

const LEADS = {
  committed: ["Moved.", "moved"],
  refused: ["Not moved, nothing changed.", "kept"],
  aborted: ["Not moved, nothing changed.", "kept"],
  in_doubt: ["Holding.", "held"],
  lost: ["The computer running your world stopped.", "lost"],
};

/** A result as [first words, what follows, tone]. */
export function resultWords(result) {
  const [lead, tone] = LEADS[result.outcome] ?? [`${result.outcome}.`, "kept"];
  const sentence = plain(result.sentence || ownSentence(result));
  return [lead, sentence.startsWith(lead) ? sentence.slice(lead.length).trim() : sentence, tone];
}

function ownSentence(result) {
  if (result.outcome === "committed") {
    return (
      `Your world now runs in ${result.to}. You waited ${plural(result.missed_frames, "frame")}; ` +
      `the pause was ${ms(result.pause_ms)}. Parts: ${result.proof}.`
    );
  }
  if (result.outcome === "in_doubt") return "We are making sure that only one copy goes on. Usually under 2 s.";
  return "Your world goes on where it was.";
}
