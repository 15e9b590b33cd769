"""A worker's slots: a fixed number of places for sessions, each one arena that is made at the start and kept.

free -> bound -> free              an opened session
free -> shadow -> bound            a move that was committed
free -> shadow -> quarantined -> free      one that was not: nobody gets the slot before its path is released
free -> shadow -> bound -> quarantined     one that was, and whose driver failed before it had let go of the path
free -> snapshot -> free            a state copied aside, while its session plays on in another slot
free -> kept -> free | bound       a snapshot of another worker's session; bound where the session goes on from it
free -> kept -> quarantined -> free        one that did not arrive
"""

from collections.abc import Sequence
from enum import Enum

from worldmove.errors import MoveRefused, ProtocolError
from worldmove.state.arena import AnyArena


class SlotState(Enum):
    """What a slot is used for. QUARANTINED is counted as taken."""

    FREE = "free"
    BOUND = "bound"
    SHADOW = "shadow"
    QUARANTINED = "quarantined"
    SNAPSHOT = "snapshot"
    KEPT = "kept"


_STEPS = {
    SlotState.FREE: (SlotState.BOUND, SlotState.SHADOW, SlotState.SNAPSHOT, SlotState.KEPT),
    SlotState.BOUND: (SlotState.FREE, SlotState.QUARANTINED),
    SlotState.SHADOW: (SlotState.BOUND, SlotState.QUARANTINED),
    SlotState.QUARANTINED: (SlotState.FREE,),
    # Whoever still reads it reads something else then, which the snapshot's proof shows.
    SlotState.SNAPSHOT: (SlotState.FREE,),
    SlotState.KEPT: (SlotState.FREE, SlotState.BOUND, SlotState.QUARANTINED),
}


class Slot:
    """One place: its arena, and what it is used for now."""

    def __init__(self, number: int, arena: AnyArena) -> None:
        self.number = number
        self.arena = arena
        self.state = SlotState.FREE

    def enter(self, state: SlotState) -> None:
        """Change the use. Raises ProtocolError for a change that is not in the picture above."""
        if state not in _STEPS[self.state]:
            raise ProtocolError(f"slot {self.number} cannot become {state.value} while {self.state.value}")
        self.state = state


class SlotPool:
    """All slots of a worker."""

    def __init__(self, arenas: Sequence[AnyArena]) -> None:
        self._slots = tuple(Slot(number, arena) for number, arena in enumerate(arenas))

    def __len__(self) -> int:
        return len(self._slots)

    @property
    def arena_bytes(self) -> int:
        """The size of the smallest arena: what any slot can hold."""
        return min(slot.arena.size for slot in self._slots)

    def count(self, state: SlotState) -> int:
        """Return how many slots are in a state."""
        return sum(slot.state is state for slot in self._slots)

    def take(self, state: SlotState, needed_bytes: int) -> Slot:
        """Take a free slot of at least ``needed_bytes``. Raises MoveRefused('no_slot' | 'state_too_large')."""
        if needed_bytes > self.arena_bytes:
            detail = f"the state needs {needed_bytes:,} bytes, and a slot here has {self.arena_bytes:,}"
            raise MoveRefused("state_too_large", detail)
        for slot in self._slots:
            if slot.state is SlotState.FREE:
                slot.enter(state)
                return slot
        quarantined = self.count(SlotState.QUARANTINED)
        aside = f", {quarantined} of them in quarantine" if quarantined else ""
        raise MoveRefused("no_slot", f"all {len(self._slots)} slots are taken{aside}")
