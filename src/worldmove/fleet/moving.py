"""A whole move: whether it is to be made, and the one report that comes of it."""

import hashlib

from worldmove.errors import MoveRefused
from worldmove.fleet.reports import Expectation, MoveReport, Outcome
from worldmove.fleet.routes import CORRUPTING
from worldmove.fleet.tries import Ending, Plan
from worldmove.move.admission import Verdict
from worldmove.move.measured import Measured
from worldmove.move.messages import Ended
from worldmove.move.remedy import cheapest
from worldmove.move.report import merge_phases, pause_s


def require(verdict: Verdict, measured: Measured) -> None:
    """Raise MoveRefused, with the numbers and what would help, for a move that is not admitted."""
    if not verdict.admitted:
        remedy = cheapest(measured, verdict.strategy)
        help_by = f"; it would take {remedy.sentence}" if remedy else ""
        raise MoveRefused(verdict.reason, verdict.detail + help_by)


def said_of_frames(block: int | None) -> str:
    """Say of a follower that came out otherwise which was the first block of other frames; None: none is known.

    That is not to say that they were the same: a world that rests has none, and words of some may be lost.
    """
    return "no other frames of it were seen" if block is None else f"its frames were others from block {block} on"


def expectation(verdict: Verdict | None) -> Expectation | None:
    """Return what a report says was expected; None where admission was not asked, or did not know."""
    if verdict is None or not verdict.terms:
        return None
    return Expectation(
        strategy=verdict.strategy.value,
        pause_s=verdict.expected_s,
        before_s=verdict.before_s,
        terms=tuple((term.name, term.seconds) for term in verdict.terms),
    )


def report(plan: Plan, ending: Ending, *, epoch: int, tries: int, started_at: float, took_s: float) -> MoveReport:
    """Put a move's last try into one value."""
    ends = [end for end in (ending.source, ending.destination) if end is not None]
    largest = max(ends, key=lambda end: end.num_bytes, default=None)
    phases = merge_phases(ending.source, ending.destination)
    return MoveReport(
        session=plan.session,
        attempt=plan.attempt,
        source=plan.source.name,
        destination=plan.destination.name,
        outcome=ending.outcome,
        reason=ending.reason,
        detail=_sentence(plan, ending, tries),
        epoch=epoch,
        tries=tries,
        transport=plan.transport,
        strategy=plan.strategy.value,
        epoch_before=plan.epoch,
        environment_digest=_environment_digest(plan) if ending.source or ending.destination else "",
        started_at=started_at,
        took_s=took_s,
        pause_s=pause_s(phases) if ending.outcome is Outcome.COMMITTED else None,
        phases=phases,
        num_bytes=largest.num_bytes if largest else 0,
        num_leaves=largest.num_leaves if largest else 0,
        num_groups=largest.num_groups if largest else 0,
        num_checked=_num_checked(ending.destination),
        in_place_bytes=ending.destination.in_place_bytes if ending.destination else 0,
        moved_bytes=ending.destination.moved_bytes if ending.destination else 0,
        pulled_bytes=ending.destination.pulled_bytes if ending.destination else 0,
        followed_bytes=ending.destination.followed_bytes if ending.destination else 0,
        plain=ending.destination.plain if ending.destination else "",
        source_digest=ending.source.state_digest if ending.source else "",
        destination_digest=ending.destination.state_digest if ending.destination else "",
    )


def _environment_digest(plan: Plan) -> str:
    """Return SHA-256 of the environment that both ends share: they were compared before anything was offered."""
    fields = plan.destination.hello.environment if plan.destination.hello else {}
    text = "".join(f"{name}={fields[name]}\n" for name in sorted(fields))
    return hashlib.sha256(text.encode()).hexdigest()


def _num_checked(destination: Ended | None) -> int:
    """Return how many leaves the destination says it has compared: those of a state that it proved and committed."""
    if destination is None or destination.outcome != "committed" or destination.num_groups == 0:
        return 0
    return destination.num_leaves


def _sentence(plan: Plan, ending: Ending, tries: int) -> str:
    if ending.outcome is Outcome.COMMITTED:
        return f"Moved to {plan.destination.name}"
    if plan.transport.startswith(CORRUPTING) and ending.reason == "mismatch":
        return f"One part arrived damaged ({tries} {'try' if tries == 1 else 'tries'})"
    return ending.detail
