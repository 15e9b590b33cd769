"""What a replay costs: a snapshot, the blocks since, and a boundary that both ends prove. Pure."""

from math import ceil, fsum

from worldmove.move.measured import Measured
from worldmove.move.reckoning.base import HASHES, Hindrance, Reckoner
from worldmove.move.terms import (
    Reckoning,
    Term,
    Way,
    commit,
    destination_pass_s,
    freeze,
    room_for_another_s,
    size_text,
    source_pass_s,
)
from worldmove.units import seconds_text

HARDLY = 1e-6
"""A share of a period that is as good as nothing: so much is rounded away where one block comes to each."""


def _forbidden(measured: Measured) -> Hindrance | None:
    if measured.num_source_slots_free == 0:
        return Hindrance("no_slot", "the source has no place for a snapshot")
    aside_s = measured.num_bytes / measured.rate("copy_rate")
    if aside_s > measured.rate("horizon_s"):
        detail = (
            f"copying the state aside takes {seconds_text(aside_s)}, and the next block is due in "
            f"{seconds_text(measured.rate('horizon_s'))}"
        )
        return Hindrance("aside", detail)
    block_s, room_s = measured.rate("block_s"), room_for_another_s(measured)
    if room_s - block_s > HARDLY * measured.rate("period_s"):
        return None
    detail = (
        f"a block takes {seconds_text(block_s)} there, and its own worlds leave {seconds_text(room_s)} for another one "
        f"in the {seconds_text(measured.rate('period_s'))} between two blocks, so it would never catch up"
    )
    return Hindrance("falls_behind", detail, before=_until_it_follows(measured))


def _reckon(measured: Measured) -> Reckoning:
    boundary, *since = _until_it_follows(measured)
    catch = _catch_up(measured, fsum(term.seconds for term in since))
    return Reckoning((boundary, *since, catch), _meeting(measured))


def _until_it_follows(measured: Measured) -> tuple[Term, ...]:
    """Return the terms until a follower may begin: the first one until its boundary, the others since."""
    size, period_s = measured.num_bytes, measured.rate("period_s")
    boundary = Term("next boundary", period_s, "the source's, at most")
    aside = Term("aside", size / measured.rate("copy_rate"), "a snapshot within the source's memory")
    snapshot = Term("snapshot", size / measured.rate("path_rate"), f"{size_text(size)}, played on")
    check_s = destination_pass_s(measured) + measured.fixed.install_s
    check = Term("check", check_s, "the snapshot, installed and verified")
    turn_s = period_s - room_for_another_s(measured)
    turn = Term("turn", turn_s, "until the blocks of the worlds there let it be installed")
    return boundary, aside, snapshot, check, turn


def _catch_up(measured: Measured, lag_s: float) -> Term:
    """Return what a follower takes that begins so long after its boundary.

    Its first block waits for those of the worlds there. Of what was played meanwhile the last period's has not left.
    The rest it makes up for, and while it does, more is played: a series whose sum is lag * G / ((1 - U) T - G).
    """
    block_s, period_s, room_s = measured.rate("block_s"), measured.rate("period_s"), room_for_another_s(measured)
    made_up_s = max(0.0, lag_s - period_s) * block_s / (room_s - block_s)
    took_s = period_s - room_s + block_s + made_up_s
    num_blocks = ceil((lag_s + took_s) / period_s)
    blocks = f"{num_blocks} block{'' if num_blocks == 1 else 's'} of {seconds_text(block_s)}"
    return Term("catch up", took_s, f"{blocks}, in {seconds_text(room_s)} of every {seconds_text(period_s)}")


def _meeting(measured: Measured) -> Way:
    """Return the way on which both ends prove the boundary that they make for at the same time: nothing is pulled.

    The source needs its freeze and two passes; a follower has to stand still there, and needs one pass.
    """
    way, fixed = Way(), measured.fixed
    freeze(way, measured)
    here_s, there_s = source_pass_s(measured), destination_pass_s(measured)
    halt_s, of = fixed.halt_s, "as its last replays did"
    if halt_s is None:  # U G behind its source, which stands still for T - G; and that is more where it can catch up
        halt_s, of = -there_s, "digested: its source waits for that while nobody waits for its next block"
    when = f"{seconds_text(abs(halt_s))} {'after' if halt_s >= 0 else 'before'} the freeze"
    way.until("halt", halt_s, f"the follower stands still {when}, {of}")
    proven_s = max(fixed.freeze_s + 2 * here_s, halt_s + there_s)
    how = f"the source's two passes, {seconds_text(here_s)} each, beside the follower's one, {seconds_text(there_s)}"
    way.until("verify", proven_s + fixed.verify_s, how)
    commit(way, measured)
    return way


REPLAY = Reckoner(("path_rate", *HASHES, "copy_rate", "period_s", "block_s", "utilisation"), _forbidden, _reckon)
