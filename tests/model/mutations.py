"""Changes of single rules that look harmless, and what each of them breaks.

Each is tried within the smallest bounds in which it still does its harm, some from a situation that many steps lead
to; none of them was counted within the large bounds, which ``large`` explores under the rules as they are shipped.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from tests.model.book import NAMES
from tests.model.bounds import (
    CALM,
    CALM_3_BLOCKS,
    CALM_AGAIN,
    CRASH,
    CRASH_1_BLOCK,
    KEPT_1_BLOCK,
    KEPT_2_BLOCKS,
    RESTART_1_BLOCK,
    RESTART_AND_CRASH,
    RESTART_AND_CRASH_2,
    SUSPICION,
    SUSPICION_1_BLOCK,
    T_1_BLOCK,
    THREE,
    Bounds,
)
from tests.model.invariants import Broken
from tests.model.rules import SHIPPED, Rules, Steps
from tests.model.situations import (
    OLD_WORD_OF_EMPTINESS,
    SHADOW_OUTLIVES_ITS_ATTEMPT,
    SHOWN_IN_DOUBT,
    TAKEN_OVER_TWICE,
    TAKES_OVER,
    Situation,
)
from worldmove.fleet.orphans import num_current
from worldmove.fleet.ports import Owner
from worldmove.move.ledger_messages import (
    Answer,
    CloseAttempt,
    Closed,
    CommitAttempt,
    Lose,
    Operation,
    Reclaim,
    Theirs,
)
from worldmove.move.ledger_row import Facts, OpenedFor, Row
from worldmove.move.ledger_rules import decide
from worldmove.move.protocol import (
    DESTINATION_STEPS,
    SOURCE_STEPS,
    DestinationEffect,
    DestinationEvent,
    DestinationPhase,
    SourceEffect,
    SourceEvent,
    SourcePhase,
)
from worldmove.serve.show import Fence, Verdict, judge
from worldmove.worker.messages import KEPT, Copy

Decision = tuple[Row, Answer | None]
_S, _E, _F = SourcePhase, SourceEvent, SourceEffect
_D, _G, _H = DestinationPhase, DestinationEvent, DestinationEffect


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutation:
    """One changed rule. Redundant guards break nothing."""

    name: str
    rules: Rules
    bounds: Bounds
    """The smallest in which it does harm."""
    breaks: frozenset[Broken] = frozenset()
    sticks: bool = False
    """Whether there are states that no step leads out of."""
    start: Situation | None = None
    """Where the exploration begins, if not at the beginning."""


def _source(changed: Mapping[tuple[Any, Any], tuple[Any, Any]]) -> Steps:
    return {**SOURCE_STEPS, **changed}


def _destination(changed: Mapping[tuple[Any, Any], tuple[Any, Any]]) -> Steps:
    return {**DESTINATION_STEPS, **changed}


# The ledger's rules, changed: each asks the shipped ones for the rest.


def only_reports(row: Row, asked: Operation, facts: Facts) -> Decision:
    """An inquiry reports, and closes nothing."""
    after, answer = decide(row, asked, facts)
    return (row, answer) if isinstance(asked, CloseAttempt) else (after, answer)


def keyed_on_the_epoch(row: Row, asked: Operation, facts: Facts) -> Decision:
    """A commit is granted for the epoch alone, whatever attempt is open."""
    if isinstance(asked, CommitAttempt) and asked.epoch == row.epoch:
        shadow = OpenedFor(attempt=asked.attempt, destination=asked.worker, incarnation=asked.incarnation)
        return decide(replace(row, attempt=shadow), asked, facts)
    return decide(row, asked, facts)


def without_the_boundary(row: Row, asked: Operation, facts: Facts) -> Decision:
    """A reclaim is granted whatever the next block is."""
    if isinstance(asked, Reclaim) and facts.next_block is not None:
        return decide(row, asked, replace(facts, next_block=asked.computed))
    return decide(row, asked, facts)


def without_arbitration(row: Row, asked: Operation, facts: Facts) -> Decision:
    """A reclaim asks neither for the record nor for the boundary."""
    if isinstance(asked, Reclaim) and facts.next_block is not None:
        unshown = replace(row, shown=False)
        after, answer = decide(unshown, asked, replace(facts, next_block=asked.computed))
        return (row if after == unshown else after), answer
    return decide(row, asked, facts)


def passed_by_the_record_alone(row: Row, asked: Operation, facts: Facts) -> Decision:
    """A holder retires only once the present epoch is recorded as shown; and a reclaim ignores the boundary."""
    after, answer = without_the_boundary(row, asked, facts)
    if isinstance(answer, Theirs):
        answer = Theirs(session=answer.session, epoch=answer.epoch, passed=after.shown)
    return after, answer


def passed_by_the_block_alone(row: Row, asked: Operation, facts: Facts) -> Decision:
    """A holder retires only once a block past its boundary has left."""
    return decide(row, asked, facts) if not row.shown else _unshown_answer(row, asked, facts)


def _unshown_answer(row: Row, asked: Operation, facts: Facts) -> Decision:
    after, answer = decide(row, asked, facts)
    if isinstance(answer, Theirs):
        _, answer = decide(replace(row, shown=False), replace_operation(asked), facts)
    return after, answer


def replace_operation(asked: Operation) -> Operation:
    """Return a question that changes nothing, and asks whose the session is, for a reclaim or a commit."""
    if isinstance(asked, Reclaim | CommitAttempt):
        boundary = asked.computed if isinstance(asked, Reclaim) else asked.boundary
        return CloseAttempt(
            session=asked.session,
            attempt="0",
            epoch=asked.epoch,
            worker=asked.worker,
            incarnation=asked.incarnation,
            boundary=boundary,
        )
    return asked


def no_grant_after_a_close(row: Row, asked: Operation, facts: Facts) -> Decision:
    """A commit of a closed attempt is answered *closed*, though its owner is dead."""
    if isinstance(asked, CommitAttempt) and asked.epoch == row.epoch:
        shadow = OpenedFor(attempt=asked.attempt, destination=asked.worker, incarnation=asked.incarnation)
        if row.attempt != shadow:
            return row, Closed(session=row.session, attempt=asked.attempt)
    return decide(row, asked, facts)


def lost_without_a_poll(row: Row, asked: Operation, facts: Facts) -> Decision:
    """Whoever's owner is dead is lost, whatever was found."""
    if isinstance(asked, Lose):
        asked = Lose(session=asked.session, epoch=asked.epoch, poll=asked.poll, copies_found=0)
    return decide(row, asked, facts)


def lost_by_a_lapsed_lease(row: Row, asked: Operation, facts: Facts) -> Decision:
    """A lapsed lease is taken for a death."""
    if isinstance(asked, Lose) and facts.owner_suspected:
        return lost_without_a_poll(row, asked, replace(facts, owner_gone=True))
    return decide(row, asked, facts)


# What the controller makes of snapshots, changed.


def without_kept_ones(copies: Iterable[Copy]) -> int:
    """Count no snapshot that is kept when a session is to be lost."""
    return num_current(copy for copy in copies if copy.phase != KEPT)


def revives_nothing(_held: Any, _next_block: int) -> None:
    """Have no snapshot installed."""


# The gateway's rule, changed.


def fences_nothing(fence: Fence, _row: Owner | None, *, worker: str, epoch: int, block: int) -> Verdict:
    """Show whatever is next, whoever sent it."""
    verdict = judge(replace(fence, closed_epoch=None), _sender(worker, epoch), worker=worker, epoch=epoch, block=block)
    return Verdict.SHOW if verdict is Verdict.RECORD_FIRST else verdict


def fences_by_memory(fence: Fence, _row: Owner | None, *, worker: str, epoch: int, block: int) -> Verdict:
    """Show what the newest epoch that was shown here sends, and not ask the row."""
    if epoch < (fence.shown_epoch or 0):
        return Verdict.OTHER_EPOCH
    return judge(fence, _sender(worker, epoch), worker=worker, epoch=epoch, block=block)


def _sender(worker: str, epoch: int) -> Owner:
    return Owner(worker=worker, incarnation=1, epoch=epoch)


# A ledger that has lost its last write: what it makes of its row, and of what the workers report.

Reports = tuple[tuple[int, int, int], ...]


def as_it_is(row: Row, _reports: Reports) -> Row:
    """Answer from the old row before anybody has reported."""
    return row


def highest_wins(row: Row, reports: Reports) -> Row:
    """Wait for every report, and take the owner of the highest epoch."""
    newest = max(reports, default=(0, 0, 0))
    if newest[0] <= row.epoch:
        return row
    return replace(row, owner=NAMES[newest[1]], incarnation=newest[2], epoch=newest[0], shown=False, attempt=None)


def highest_wins_and_closes(row: Row, reports: Reports) -> Row:
    """The same, and an open attempt is closed."""
    return replace(highest_wins(row, reports), attempt=None)


def highest_wins_and_shown(row: Row, reports: Reports) -> Row:
    """The same, and the owner is taken as shown."""
    return replace(highest_wins_and_closes(row, reports), shown=True)


I1, I2, I4, I5, I6, I6B, I7, I8, I9 = (
    *(Broken.I1, Broken.I2, Broken.I4, Broken.I5, Broken.I6, Broken.I6B, Broken.I7, Broken.I8, Broken.I9),
)


def _mutation(
    name: str,
    bounds: Bounds,
    *breaks: Broken,
    sticks: bool = False,
    start: Situation | None = None,
    **rules: Any,
) -> Mutation:
    return Mutation(
        name=name,
        rules=replace(SHIPPED, **rules),
        bounds=bounds,
        breaks=frozenset(breaks),
        sticks=sticks,
        start=start,
    )


HARMFUL = (
    _mutation(
        "a lost commit is an abort, at both ends",
        CALM,
        I6B,
        I8,
        I9,
        source_steps=_source({(_S.DOUBT, _E.TIME_OUT): (_S.LIVE, _F.THAW_UNASKED)}),
        destination_steps=_destination({(_D.DOUBT, _G.TIME_OUT): (_D.QUARANTINE, _H.GIVE_UP)}),
    ),
    _mutation(
        "the source thaws on silence after its proof",
        CALM,
        I8,
        I9,
        sticks=True,
        source_steps=_source({(_S.DOUBT, _E.SILENCE): (_S.LIVE, _F.THAW_UNASKED)}),
    ),
    _mutation("an inquiry only reports", CALM, I8, I9, sticks=True, decide=only_reports),
    _mutation("a commit is keyed on the epoch alone", CALM, I8, I9, sticks=True, decide=keyed_on_the_epoch),
    _mutation("a reclaim is not arbitrated", SUSPICION_1_BLOCK, I9, sticks=True, decide=without_arbitration),
    _mutation(
        "the source frees at the grant",
        CALM,
        I6,
        source_steps=_source(
            {
                (_S.DOUBT, _E.THEIRS): (_S.NONE, _F.FREE),
                (_S.DOUBT, _E.PASSED): (_S.NONE, _F.FREE),
            }
        ),
    ),
    _mutation("the source frees at the record of shown", CALM, I6, frees_when_passed=False),
    _mutation("the gateway does not fence", CRASH, I2, judge=fences_nothing, old_frames_matter=True),
    _mutation("the gateway fences by a remembered epoch", CRASH, I2, judge=fences_by_memory, old_frames_matter=True),
    _mutation("a restarted server shows before reports", RESTART_AND_CRASH, I1, I9, restart_shows_at_once=True),
    _mutation("a restarted server asks the owner only", RESTART_1_BLOCK, I1, restart_asks_owner_only=True),
    _mutation(
        "shown is not durable, and a reclaim has no boundary",
        RESTART_AND_CRASH,
        I9,
        sticks=True,
        shown_survives_restart=False,
        decide=without_the_boundary,
        start=SHOWN_IN_DOUBT,
    ),
    _mutation("a ledger lost a write, and answers before reports", T_1_BLOCK, I8, after_lost_write=as_it_is),
    _mutation("a ledger lost a write, and the highest epoch wins", T_1_BLOCK, I8, after_lost_write=highest_wins),
    _mutation(
        "a ledger lost a write, the highest epoch wins, and attempts are closed",
        T_1_BLOCK,
        I8,
        after_lost_write=highest_wins_and_closes,
    ),
    _mutation(
        "a ledger lost a write, the highest epoch wins, attempts are closed, and the owner counts as shown",
        T_1_BLOCK,
        I8,
        after_lost_write=highest_wins_and_shown,
    ),
    _mutation(
        "a destination in doubt inquires",
        CRASH,
        I7,
        destination_steps=_destination({(_D.DOUBT, _G.TIME_OUT): (_D.DOUBT, _F.INQUIRE)}),
    ),
    _mutation("no grant after a close, though the owner is dead", CRASH, I7, decide=no_grant_after_a_close),
    _mutation(
        "the controller reclaims for a source unasked",
        CRASH_1_BLOCK,
        sticks=True,
        reclaims_unasked=True,
        reads_reports=False,
    ),
    _mutation(
        "a holder retires by the record alone, and a reclaim has no boundary",
        THREE,
        I9,
        decide=passed_by_the_record_alone,
        start=SHADOW_OUTLIVES_ITS_ATTEMPT,
    ),
    _mutation(
        "a lease frees a shadow in doubt",
        CALM,
        I6B,
        destination_steps=_destination({(_D.DOUBT, _G.TIME_OUT): (_D.QUARANTINE, _H.DISCARD)}),
    ),
    _mutation("a lapsed lease is a loss", SUSPICION, I5, decide=lost_by_a_lapsed_lease, suspicion_is_death=True),
    _mutation("a dead owner is a loss, without a poll", CRASH, I5, decide=lost_without_a_poll),
    _mutation("a snapshot that is kept is no copy", KEPT_1_BLOCK, I5, num_current=without_kept_ones),
    _mutation("a snapshot that is kept is not installed", KEPT_1_BLOCK, sticks=True, to_revive=revives_nothing),
    _mutation("a snapshot is kept before its blocks have left", KEPT_1_BLOCK, sticks=True, keeps_what_has_left=False),
    _mutation(
        "a copy made of a snapshot takes any grant for its own", KEPT_2_BLOCKS, I9, revived_waits_for_failover=False
    ),
    _mutation("no quarantine", CALM_AGAIN, I4, quarantines=False),
    _mutation("the window stays open after the verifying pass", CALM, I4, closes_window=False),
    _mutation(
        "the proof is sent before the frames are acknowledged", CALM, sticks=True, proves_when_acknowledged=False
    ),
    _mutation(
        "a worker's word that it is empty needs no incarnation",
        CALM_AGAIN,
        I8,
        gone_needs_incarnation=False,
        start=OLD_WORD_OF_EMPTINESS,
    ),
    _mutation("a holder retires by the block alone", CRASH_1_BLOCK, sticks=True, decide=passed_by_the_block_alone),
    _mutation("an owner that holds nothing is not noticed", CRASH_1_BLOCK, sticks=True, reads_reports=False),
    _mutation(
        "a copy that takes over is frozen before it has replayed",
        CALM_AGAIN,
        I9,
        freezes_when_replayed=False,
        start=TAKES_OVER,
    ),
    _mutation(
        "a superseded copy that a failover was given to waits on",
        CALM_3_BLOCKS,
        sticks=True,
        start=TAKEN_OVER_TWICE,
        source_steps=_source({(_S.SUPERSEDED, _E.FAILOVER): (_S.SUPERSEDED, _F.HOLD)}),
    ),
)

REDUNDANT = (
    _mutation(
        "shown is not durable, and a reclaim keeps its boundary",
        RESTART_AND_CRASH_2,
        start=SHOWN_IN_DOUBT,
        shown_survives_restart=False,
    ),
    _mutation(
        "a reclaim has no boundary, and passed is kept",
        THREE,
        decide=without_the_boundary,
        start=SHADOW_OUTLIVES_ITS_ATTEMPT,
    ),
)
"""Guards of which one of two is enough."""
