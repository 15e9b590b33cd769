"""States that a path of many steps leads to, from which a harm is near: where the small bounds would be too wide.

A test says of those that need no fault that the protocol comes to them as it is shipped.
"""

from dataclasses import dataclass
from typing import Any

from tests.model.book import NAMES, SESSION, attempt_name
from tests.model.ends import GOOD, End, Message, Plan
from tests.model.world import Gate, Luck, State, World
from worldmove.move.ledger_row import BY_FAILOVER, Row
from worldmove.move.protocol import DestinationPhase, SourcePhase


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """A state in words; what is left out is as at the beginning."""

    row: Row
    ends: tuple[End, ...]
    plans: tuple[Plan, ...]
    shown: int = 0
    shown_epoch: int = 0
    flight: tuple[Message, ...] = ()
    closed: int = 0
    suspected: int = 0
    """A bit for each worker that is taken for dead from time to time."""

    def state(self, world: World) -> State:
        """Return it as a state of a world, with that world's faults still to come."""
        bounds = world.bounds
        luck = Luck(
            bounds.num_crashes,
            bounds.num_suspicions,
            bounds.num_restarts,
            suspected=self.suspected,
            snapshots=bounds.num_snapshots,
        )
        gate = Gate(next=self.shown, shown=self.shown_epoch, closed=self.closed)
        numbers = (world.book.rows.of(self.row), world.gates.of(gate), world.plans.of(self.plans), world.lucks.of(luck))
        return (*numbers, world.wire.mask(self.flight), self.shown, *(world.ends.of(end) for end in self.ends))


def _plays(epoch: int, block: int, **fields: int) -> End:
    place: dict[str, Any] = {"epoch": epoch, "row_epoch": epoch, "acked": block, "next": block}
    return End(phase=SourcePhase.LIVE, content=GOOD, verified=True, **(place | fields))


_FIRST = Plan(source=0, source_incarnation=1, destination=1, destination_incarnation=1, epoch=1)
_ROW = Row(session=SESSION, owner=NAMES[0], incarnation=1, epoch=1, last_attempt=attempt_name(1))

SHADOW_OUTLIVES_ITS_ATTEMPT = Situation(
    row=Row(session=SESSION, owner=NAMES[0], incarnation=1, epoch=1, shown=True, last_attempt=attempt_name(1)),
    ends=(
        _plays(1, 1, attempt=1),
        End(
            phase=DestinationPhase.DOUBT,
            attempt=1,
            epoch=1,
            row_epoch=1,
            boundary=0,
            content=GOOD,
            verified=True,
        ),
        End(),
    ),
    plans=(_FIRST,),
    shown=1,
    shown_epoch=1,
)
"""The first attempt was closed; its verified shadow at B waits on; A has thawed, and its first block was shown."""

SHOWN_IN_DOUBT = Situation(
    row=Row(
        session=SESSION,
        owner=NAMES[1],
        incarnation=1,
        epoch=2,
        shown=True,
        last_attempt=attempt_name(1),
        granted_by=attempt_name(1),
    ),
    ends=(
        End(
            phase=SourcePhase.DOUBT,
            attempt=1,
            epoch=1,
            row_epoch=1,
            content=GOOD,
            verified=True,
        ),
        _plays(2, 1),
    ),
    plans=(_FIRST,),
    shown=1,
    shown_epoch=2,
)
"""B was granted the session and has shown a block; A has not heard of it, and asks."""

GRANTED_IN_SILENCE = Situation(
    row=Row(
        session=SESSION,
        owner=NAMES[1],
        incarnation=1,
        epoch=2,
        last_attempt=attempt_name(1),
        granted_by=attempt_name(1),
    ),
    ends=(
        End(incarnation=2),
        End(
            phase=DestinationPhase.DOUBT,
            attempt=1,
            epoch=1,
            row_epoch=1,
            boundary=0,
            content=GOOD,
            verified=True,
        ),
        End(kept=0, kept_epoch=1),
    ),
    plans=(_FIRST,),
    suspected=0b010,
)
"""B was granted the session, is silent, and has not heard of it; A has died; C keeps a snapshot."""

TAKES_OVER = Situation(
    row=Row(
        session=SESSION,
        owner=NAMES[0],
        incarnation=1,
        epoch=3,
        last_attempt=attempt_name(1),
        granted_by=BY_FAILOVER,
    ),
    ends=(_plays(3, 0, attempt=1, replays_to=1), End(incarnation=2)),
    plans=(_FIRST,),
    shown=1,
    shown_epoch=2,
    closed=2,
)
"""B had shown a block and died; A's retired copy took over, and has not yet replayed that block."""

TAKEN_OVER_TWICE = Situation(
    row=Row(
        session=SESSION,
        owner=NAMES[1],
        incarnation=1,
        epoch=5,
        last_attempt=attempt_name(1),
        granted_by=BY_FAILOVER,
    ),
    ends=(End(incarnation=2), _plays(4, 1, attempt=1, replays_to=2)),
    plans=(_FIRST,),
    shown=2,
    shown_epoch=3,
    closed=4,
)
"""A died; B's copy took over, and was given the session again: late word said that a copy before it was gone."""

OLD_WORD_OF_EMPTINESS = Situation(
    row=_ROW, ends=(_plays(1, 0, attempt=1), End(incarnation=2)), plans=(_FIRST,), flight=(("empty", 1),)
)
"""B died in an attempt that was closed, and is back; what it said of its emptiness is still on its way."""
