"""What each strategy costs, phases overlapped as they run: measurements in, terms in seconds out. Pure.

    S state, B path, h hash at the source, h' at the destination, r rows, m memory; all rates in bytes per second

    boundary copy   freeze + boundary + left/B -> landed; its proofs, commit                        left = S
    pre-copy        freeze + S/r + boundary + reconcile + moved/m + left/B -> landed; its proofs, commit
    streaming       the same; left: what was final too late to travel before the boundary
    its proofs      max(landed + install + S/h', max(landed, freeze + S/h) + S/h)
    replay          max(freeze + 2 S/h, halt + S/h'), commit

What runs side by side: the source's first pass beside all until the landing; its second pass beside the destination's
install and pass; and of a replay both of the source's passes beside a follower that steps its last block and has its
pass, if it is late: the source waits for it while it rests. What the destination begins with before the state is
resolved (a boundary below zero) is landing beside the freeze.
What comes before the freeze costs no pause, and has to fit into the move's patience.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import ceil, fsum
from types import MappingProxyType

from worldmove.move.measured import Final, Measured
from worldmove.move.strategy import Strategy
from worldmove.move.terms import (
    Reckoning,
    Term,
    Way,
    arrive,
    base,
    commit,
    destination_pass_s,
    freeze,
    growth,
    rows,
    size_text,
    source_pass_s,
)
from worldmove.units import seconds_text

FOLLOW = "follow"
"""The term of what is computed at the destination while the session is played: a plan that has it says so."""
REST_TERM = "rest"
"""The term of what comes over while a session stands still before its freeze."""
REST = 0.35
"""The share of the horizon in which what differs is counted on to come over before the freeze.

The session stands still for half of it, until the next list comes; a quarter of that goes to word of the rows and to
looking for them (75 to 90 of 325 ms, of a large state).
"""

STANDS = 2 * REST
"""The same of the time between a block's end and the next list, where it is known what a block takes that is computed
alone: moves make blocks longer which lie beside them, and so does the horizon say less while they go on."""

HARDLY = 1e-6
"""A share of a period that is as good as nothing: so much is rounded away where one block comes to each."""


@dataclass(frozen=True, slots=True)
class Hindrance:
    """What forbids a strategy whatever the horizon: a word, a sentence with its numbers, and the terms up to there."""

    reason: str
    detail: str
    before: tuple[Term, ...] = ()


@dataclass(frozen=True, slots=True)
class Reckoner:
    """How one strategy is reckoned. ``forbidden`` and ``reckon`` may count on the measurements that it needs."""

    needs: tuple[str, ...]
    forbidden: Callable[[Measured], Hindrance | None]
    reckon: Callable[[Measured], Reckoning]


def _never(_: Measured) -> None:
    """Nothing forbids it."""


# boundary copy


def _boundary_copy(measured: Measured) -> Reckoning:
    way, known_s = Way(), max(0.0, measured.fixed.freeze_s + measured.fixed.boundary_s)
    freeze(way, measured)
    way.until("boundary", known_s, "its way to the destination")
    arrive(way, measured, known_s, measured.num_bytes)
    commit(way, measured)
    return Reckoning((), way)


# pre-copy


def _pre_copy(measured: Measured) -> Reckoning:
    rounds, made = _rounds(measured)
    before = (base(measured), rows(measured), *rounds, *_rest(measured, made))
    return Reckoning(before, _difference(measured, made))


def _rounds(measured: Measured) -> tuple[tuple[Term, ...], float]:
    """Return the round after the base, if one is made, and what is left for the boundary.

    A round pulls what changes, and leaves the new bytes of the blocks that were played in it; so would any further one.
    It is made where it leaves less than the base did and there is patience for it: a faster path never leaves more.
    """
    changing = measured.rate("dirty_bytes")
    base_s = base(measured).seconds + rows(measured).seconds
    round_s = changing / measured.rate("path_rate") + changing / measured.rate("row_rate")
    left, then = _made_in(measured, base_s), _made_in(measured, round_s)
    if then >= left or base_s + round_s > measured.patience_s:
        return (), left
    return (Term("round", round_s, f"{size_text(changing)} that change from block to block"),), then


def _made_in(measured: Measured, seconds: float) -> float:
    """Return the new bytes of the blocks that are played in a time: those of one at least, all of them at most."""
    num_blocks = max(1.0, seconds / measured.rate("period_s"))
    num_blocks = ceil(num_blocks) if num_blocks < measured.num_bytes else num_blocks
    return min(float(measured.num_bytes), measured.rate("new_bytes") * num_blocks)


def _difference(measured: Measured, made: float) -> Way:
    """Return the way through a pause in which the destination finds what it holds.

    ``made``: what it cannot hold before the session stands still.
    """
    way, fixed, larger = Way(), measured.fixed, growth(measured)
    freeze(way, measured)
    digested = rows(measured)
    way.take(digested.name, digested.seconds, digested.how)
    way.take("boundary", fixed.boundary_s * larger, "its way, with the digests of rows that have changed")
    left = _left(measured, made)
    if fixed.reconcile_s is not None:
        way.take("reconcile", fixed.reconcile_s * larger, "every row looked for")
    elif left > 0:
        way.take("reconcile", digested.seconds, "every row looked for; as long as digesting them, to start with")
    else:
        way.take("reconcile", 0.0, "nothing to be looked for: all of it came before")
    # What lies elsewhere is moved before anything is pulled: at rest, where there is any.
    moved = 0.0 if rest_s(measured) > 0 else max(0.0, measured.rate("dirty_bytes") - measured.rate("new_bytes"))
    move_rate = measured.move_rate or measured.rate("copy_rate")
    way.take("moves", moved / move_rate, f"{size_text(moved)} that lie elsewhere over there")
    arrive(way, measured, way.at_s, left)
    commit(way, measured)
    return way


def _rest(measured: Measured, made: float) -> tuple[Term, ...]:
    """Return what is counted on to come over while a session stands still before its freeze, if anything is."""
    brought_s = min(made / measured.rate("path_rate"), rest_s(measured))
    if brought_s <= 0:
        return ()
    brought = size_text(brought_s * measured.rate("path_rate"))
    return (Term(REST_TERM, brought_s, f"{brought} before the freeze, while nobody waits: else in the pause"),)


def _left(measured: Measured, made: float) -> float:
    """Return what is pulled in the pause: while the session stands still before it, some of it comes over.

    As much as was left of earlier moves over this path, where there were any; no less than was left of any, however
    long that was. Where it was always long enough, the freeze has waited for it, and waits longer for a slower path:
    counted on is a share of the time until somebody waits.
    """
    if measured.fixed.is_left_known:
        return min(float(measured.num_bytes), measured.fixed.left_bytes * growth(measured))
    rested = made - measured.rate("path_rate") * rest_s(measured)
    return min(float(measured.num_bytes), max(rested, measured.fixed.left_bytes * growth(measured)))


def rest_s(measured: Measured) -> float:
    """Return how long a session is counted on to stand still before its freeze, for what differs to come over.

    Where no move has measured it, for that share of the horizon, as after moves for which it was always enough.
    """
    fixed = measured.fixed
    waits_s = min(measured.rate("horizon_s"), measured.still_s)  # where nobody waits, its ends do
    if fixed.num_moves and not fixed.is_rested:
        return fixed.rest_s
    stands_s = 0.0
    if measured.period_s is not None and measured.block_s is not None:
        stands_s = min(measured.still_s, STANDS * max(0.0, measured.period_s - measured.block_s))
    return max(fixed.rest_s, REST * waits_s, stands_s)


# streaming


def _cannot_stream(measured: Measured) -> Hindrance | None:
    """Each block's new bytes have to be across before the next block's."""
    travels_s = (measured.rate("new_bytes") - _followed_bytes(measured)) / measured.rate("path_rate")
    if travels_s <= measured.rate("period_s"):
        return None
    detail = (
        f"what each block makes takes {seconds_text(travels_s)} over this path, and the next block comes after "
        f"{seconds_text(measured.rate('period_s'))}"
    )
    return Hindrance("falls_behind", detail)


def _streaming(measured: Measured) -> Reckoning:
    final = _final(measured)
    before: tuple[Term, ...] = (base(measured), rows(measured))
    followed = _followed_bytes(measured)
    if followed:
        how = f"{size_text(followed)} of each block are computed there, and do not travel"
        before = (*before, Term(FOLLOW, final.follow_s, how))
    late = max(0.0, measured.rate("new_bytes") - followed - final.num_bytes)
    in_time = measured.rate("path_rate") * final.window_s
    made = late + max(float(final.last_bytes), final.num_bytes - in_time) + _behind(measured, followed)
    return Reckoning((*before, *_rest(measured, made)), _difference(measured, made))


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
    if final.follow_s and (measured.utilisation is None or final.follow_s >= _room_s(measured)):
        return 0
    return final.followed_bytes


def _final(measured: Measured) -> Final:
    if measured.final is None:
        raise ValueError("what is final was not measured")
    return measured.final


# replay


def _cannot_replay(measured: Measured) -> Hindrance | None:
    if measured.num_source_slots_free == 0:
        return Hindrance("no_slot", "the source has no place for a snapshot")
    aside_s = measured.num_bytes / measured.rate("copy_rate")
    if aside_s > measured.rate("horizon_s"):
        detail = (
            f"copying the state aside takes {seconds_text(aside_s)}, and the next block is due in "
            f"{seconds_text(measured.rate('horizon_s'))}"
        )
        return Hindrance("aside", detail)
    block_s, room_s = measured.rate("block_s"), _room_s(measured)
    if room_s - block_s > HARDLY * measured.rate("period_s"):
        return None
    detail = (
        f"a block takes {seconds_text(block_s)} there, and its own worlds leave {seconds_text(room_s)} for another one "
        f"in the {seconds_text(measured.rate('period_s'))} between two blocks, so it would never catch up"
    )
    return Hindrance("falls_behind", detail, before=_until_it_follows(measured))


def _room_s(measured: Measured) -> float:
    """Return the time that a destination has for another session in each period: (1 - U) T."""
    return max(0.0, 1.0 - measured.rate("utilisation")) * measured.rate("period_s")


def _replay(measured: Measured) -> Reckoning:
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
    turn_s = period_s - _room_s(measured)
    turn = Term("turn", turn_s, "until the blocks of the worlds there let it be installed")
    return boundary, aside, snapshot, check, turn


def _catch_up(measured: Measured, lag_s: float) -> Term:
    """Return what a follower takes that begins so long after its boundary.

    Its first block waits for those of the worlds there. Of what was played meanwhile the last period's has not left.
    The rest it makes up for, and while it does, more is played: a series whose sum is lag * G / ((1 - U) T - G).
    """
    block_s, period_s, room_s = measured.rate("block_s"), measured.rate("period_s"), _room_s(measured)
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


_HASHES = ("source_hash_rate", "destination_hash_rate", "horizon_s")
_DIFFERENCE = ("path_rate", *_HASHES, "row_rate", "copy_rate", "dirty_bytes", "new_bytes", "period_s")

RECKONERS: Mapping[Strategy, Reckoner] = MappingProxyType(
    {
        Strategy.BOUNDARY_COPY: Reckoner(("path_rate", *_HASHES), _never, _boundary_copy),
        Strategy.PRE_COPY: Reckoner(_DIFFERENCE, _never, _pre_copy),
        Strategy.STREAMING: Reckoner((*_DIFFERENCE, "final"), _cannot_stream, _streaming),
        Strategy.REPLAY: Reckoner(
            ("path_rate", *_HASHES, "copy_rate", "period_s", "block_s", "utilisation"), _cannot_replay, _replay
        ),
    }
)
"""Every strategy's, wired or not: the reckoning may be asked of one that is not built."""
