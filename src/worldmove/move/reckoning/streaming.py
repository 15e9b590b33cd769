"""What a stream costs: it carries leaves as they become final, and leaves what was final too late. Pure."""

from worldmove.move.measured import Final, Measured
from worldmove.move.reckoning.base import Hindrance, Reckoner
from worldmove.move.reckoning.difference import NEEDS, difference
from worldmove.move.reckoning.rest import rest
from worldmove.move.terms import Reckoning, Term, base, room_for_another_s, rows, size_text
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
    final = _final(measured)
    before: tuple[Term, ...] = (base(measured), rows(measured))
    followed = _followed_bytes(measured)
    if followed:
        how = f"{size_text(followed)} of each block are computed there, and do not travel"
        before = (*before, Term(FOLLOW, final.follow_s, how))
    late = max(0.0, measured.rate("new_bytes") - followed - final.num_bytes)
    in_time = measured.rate("path_rate") * final.window_s
    made = late + max(float(final.last_bytes), final.num_bytes - in_time) + _behind(measured, followed)
    return Reckoning((*before, *rest(measured, made)), difference(measured, made))


def _behind(measured: Measured, followed: int) -> float:
    """Return what rounds have left of blocks before the last one, less what the path makes up for until the next.

    It carries little more than what each block makes, where it is hardly fast enough: then that is much, for long.
    """
    path_rate, period_s = measured.rate("path_rate"), measured.rate("period_s")
    made = max(0.0, measured.rate("new_bytes") - followed)
    changing = max(0.0, measured.rate("dirty_bytes") - followed)
    round_s = changing / path_rate + changing / measured.rate("row_rate")
    left = made * max(0.0, round_s / period_s - 1.0)
    return max(0.0, left - max(0.0, path_rate * period_s - made))


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
