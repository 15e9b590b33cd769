"""What a stream costs: it carries leaves as they become final, and leaves what was final too late. Pure."""

from worldmove.move.measured import Final, Measured
from worldmove.move.reckoning.base import Hindrance, Reckoner
from worldmove.move.reckoning.difference import NEEDS, before, difference
from worldmove.move.reckoning.settled import Settled, settled
from worldmove.move.terms import Reckoning, Term, room_for_another_s, size_text
from worldmove.units import seconds_text

FOLLOW = "follow"
"""The term of what is computed at the destination while the session is played: a plan that has it says so."""


def _forbidden(measured: Measured) -> Hindrance | None:
    """Each block's new bytes have to be across before the next block's."""
    travels_s = (measured.rate("new_bytes") - _followed_bytes(measured)) / measured.rate("path_rate")
    if travels_s <= measured.rate("period_s"):
        return None
    detail = (
        f"what each block makes takes {seconds_text(travels_s)} over this path, and the next block comes after "
        f"{seconds_text(measured.rate('period_s'))}"
    )
    return Hindrance("falls_behind", detail)


def _reckon(measured: Measured) -> Reckoning:
    final, followed = _final(measured), _followed_bytes(measured)
    found = settled(measured, followed)
    made, at_worst = (_made(measured, final, each) for each in (found, found.at_worst()))
    how = f"{size_text(followed)} of each block are computed there, and do not travel"
    beside = (Term(FOLLOW, final.follow_s, how),) if followed else ()
    terms = before(measured, found, made, followed=followed, beside=beside)
    return Reckoning(terms, difference(measured, made), found, difference(measured, at_worst).at_s)


def _made(measured: Measured, final: Final, found: Settled) -> float:
    """Return what is left at the last boundary: what was final too late, and what was behind."""
    late = max(0.0, found.new - final.num_bytes)
    # What is final travels once what is behind has.
    in_time = max(0.0, measured.rate("path_rate") * final.window_s - found.behind)
    return late + max(float(final.last_bytes), final.num_bytes - in_time) + found.still_behind


def _followed_bytes(measured: Measured) -> int:
    """Return what of each block the destination computes itself: nothing where it has no time for that.

    Nor where the source has no place for a copy to begin with.
    """
    final = _final(measured)
    if measured.num_source_slots_free == 0:
        return 0
    if final.follow_s and (measured.utilisation is None or final.follow_s >= room_for_another_s(measured)):
        return 0
    return final.followed_bytes


def _final(measured: Measured) -> Final:
    if measured.final is None:
        raise ValueError("what is final was not measured")
    return measured.final


STREAMING = Reckoner((*NEEDS, "final"), _forbidden, _reckon)
