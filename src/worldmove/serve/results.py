"""A move's report in the words and units of who watches: five phases, one sentence, one line of proof. Pure."""

from collections.abc import Mapping, Sequence

from worldmove.fleet.failover_report import FailoverOutcome, FailoverReport
from worldmove.fleet.reports import MoveReport, Outcome, PhaseTime
from worldmove.serve.play_messages import Expected, FailedOver, MoveResult, PhaseInfo
from worldmove.serve.show import frames_waited

COPYING, HOLDING, CHECKING, HANDING_OVER, MOVED = "Copying", "Holding", "Checking", "Handing over", "Moved"
VISITOR_PHASES = (COPYING, HOLDING, CHECKING, HANDING_OVER, MOVED)

VISITOR_NAME: Mapping[str, str] = {
    "prepare": COPYING,
    "reserve": COPYING,
    "follow": COPYING,
    "await_base": COPYING,
    "rounds": COPYING,
    "fetch": COPYING,
    "install_base": COPYING,
    "verify_base": COPYING,
    "catch_up": COPYING,
    "transfer": HOLDING,
    "freeze": HOLDING,
    "boundary": HOLDING,
    "rows": HOLDING,
    "reconcile": HOLDING,
    "moves": HOLDING,
    "land": HOLDING,
    "halt": HOLDING,
    "install": CHECKING,
    "verify": CHECKING,
    "wait_proof": CHECKING,
    "commit": HANDING_OVER,
    "promote": HANDING_OVER,
}
"""What runs beside these (the source's two digests, its doubt, the state digest) has no part in the bar."""


def visitor_phase(name: str) -> str | None:
    """Return the visitor's word for an internal phase; None for one that has none."""
    return VISITOR_NAME.get(name)


def result_of(report: MoveReport, frame_period_s: float) -> MoveResult:
    """Return what a watcher is told of a move that has ended."""
    return MoveResult(
        attempt=report.attempt,
        outcome=report.outcome.value,
        reason=report.reason,
        sentence=sentence(report, frame_period_s),
        phases=visitor_phases(report.phases),
        pause_ms=milliseconds(report.pause_s),
        gap_ms=milliseconds(report.gap_s),
        missed_frames=missed_frames(report, frame_period_s),
        num_bytes=report.num_bytes or None,
        num_parts=report.num_leaves or None,
        source=report.source,
        to=report.destination,
        epoch=report.epoch,
        state_digest=report.destination_digest or report.source_digest,
        proof=proof(report),
        tries=report.tries,
        expected=_expected(report),
    )


def _expected(report: MoveReport) -> Expected | None:
    told = report.expected
    if told is None:
        return None
    terms = tuple(PhaseInfo(name=name, ms=round(seconds * 1000, 3)) for name, seconds in told.terms)
    return Expected(strategy=told.strategy, pause_ms=round(told.pause_s * 1000, 3), terms=terms)


def failover_of(report: FailoverReport) -> FailedOver:
    """Return what a watcher is told of a failover."""
    return FailedOver(
        outcome=report.outcome.value,
        sentence=failover_sentence(report),
        gone=report.source,
        worker=report.destination,
        epoch=report.epoch,
        block=report.next_block,
        replayed=report.num_replayed,
        compared=report.num_compared,
        ms=milliseconds(report.took_s),
    )


def failover_sentence(report: FailoverReport) -> str:
    """Say what happened to a world whose worker was gone."""
    blocks = f"{report.num_replayed} block{'' if report.num_replayed == 1 else 's'}"
    match report.outcome:
        case FailoverOutcome.REPLAYS:
            return f"{report.source} stopped. {report.destination} computes {blocks} again, then your world goes on."
        case FailoverOutcome.DIVERGED:
            which = f"{report.destination} computed block {report.differs_at} differently than it was shown"
            return f"{report.source} stopped, and {which}: your world does not go on from that copy."
        case FailoverOutcome.ENDED:
            return f"{report.source} stopped. {report.destination} took over, but showed no block: {report.why}."
        case FailoverOutcome.RESUMED:
            waited = "" if report.took_s is None else f" That took {report.took_s:.2f} s from when it was missed."
            equal = f"{report.num_compared} of {report.num_replayed} compared with what was shown, all equal"
            return f"{report.source} stopped. {report.destination} computed {blocks} again ({equal}).{waited}"


def missed_frames(report: MoveReport, frame_period_s: float) -> int | None:
    """How many frame periods a watcher waited; None where nobody knows."""
    return None if report.gap_s is None else frames_waited(report.gap_s, frame_period_s)


def milliseconds(seconds: float | None) -> float | None:
    """Return milliseconds to a thousandth, or None for a measurement that is not there."""
    return None if seconds is None else round(seconds * 1000, 3)


def visitor_phases(phases: Sequence[PhaseTime]) -> tuple[PhaseInfo, ...]:
    """Return the five phases with the time each took: from its first start to its last end, at either end."""
    spans: dict[str, tuple[float, float]] = {}
    for phase in phases:
        if name := visitor_phase(phase.name):
            start, end = spans.get(name, (phase.start_s, phase.end_s))
            spans[name] = (min(start, phase.start_s), max(end, phase.end_s))
    return tuple(
        PhaseInfo(name=name, ms=round(1000 * (spans[name][1] - spans[name][0]), 3))
        for name in VISITOR_PHASES
        if name in spans
    )


def proof(report: MoveReport) -> str:
    """Return ``checked n/n``, or ``not checked`` and why: there is no third."""
    why = _why_not_checked(report)
    return f"not checked ({why})" if why else f"checked {report.num_checked}/{report.num_leaves}"


def _why_not_checked(report: MoveReport) -> str:
    """Return why a move has no proof to show; empty where the destination says that it compared every part."""
    if report.outcome is not Outcome.COMMITTED:
        return str(report.outcome.value)
    if report.num_checked == 0:
        return f"{report.destination} has not reported a comparison"
    if report.num_checked != report.num_leaves:
        return f"{report.destination} has compared {report.num_checked} of {report.num_leaves} parts"
    if report.source_digest and report.destination_digest not in ("", report.source_digest):
        return "the state digests of both ends differ"
    return ""


def sentence(report: MoveReport, frame_period_s: float) -> str:
    """Say what happened in one or two sentences; one that failed begins with what did not happen."""
    match report.outcome:
        case Outcome.COMMITTED:
            return _moved(report, frame_period_s)
        case Outcome.REFUSED:
            return f"Not moved, nothing changed. {_clause(report)} {_place(report, 'goes on')}"
        case Outcome.ABORTED:
            waited = f" {_waited(report.gap_s, frame_period_s)}" if report.gap_s else ""
            return f"Not moved, nothing changed. {_clause(report)} {_place(report, 'goes on')}{waited}"
        case Outcome.IN_DOUBT:
            return "Holding. We are making sure that only one copy goes on."
        case Outcome.LOST:
            return f"This world could not be recovered. {_clause(report)}"


def _place(report: MoveReport, does: str) -> str:
    """Say where the session is, which is where the row's owner lives."""
    return "No worker runs it now." if report.runs_at is None else f"Your world {does} at {report.runs_at}."


def _moved(report: MoveReport, frame_period_s: float) -> str:
    there = report.runs_at == report.destination
    parts = ["Moved." if there else f"Moved to {report.destination}.", _place(report, "now runs")]
    if report.gap_s is not None:
        parts.append(_waited(report.gap_s, frame_period_s))
    if report.pause_s is not None:
        parts.append(f"The pause was {report.pause_s * 1000:.1f} ms.")
    why = _why_not_checked(report)
    identical = f"All {report.num_checked} parts are identical (checked)."
    parts.append(f"Its parts: not checked ({why})." if why else identical)
    return " ".join(parts)


def _waited(gap_s: float, frame_period_s: float) -> str:
    waited = frames_waited(gap_s, frame_period_s)
    return f"You waited {waited} frame{'' if waited == 1 else 's'}."


def _clause(report: MoveReport) -> str:
    text = report.detail.removeprefix("Not moved, nothing changed: ").strip() or report.reason
    first = text.partition(" ")[0].rstrip(":;,")
    # A name (worker-1) stays as it is.
    return (text[0].upper() + text[1:] if first.isalpha() else text).rstrip(".") + "."
