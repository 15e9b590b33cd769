"""One session as it should be: what was closed, made, shown and received of it, and who owned it."""

from dataclasses import dataclass, field

from tests.simulation.engine import World, begin
from tests.simulation.returning import Returning
from worldmove.engine.base import KeyChange
from worldmove.move.ledger_row import Row
from worldmove.serve.live import Live

FIRST_SEED = 1000


def seed_of(session: str) -> int:
    """Return a world's seed: sessions are named s-1, s-2, ..."""
    return FIRST_SEED + int(session.removeprefix("s-"))


@dataclass(slots=True, kw_only=True)
class Played:
    """One session as it should be."""

    name: str
    live: Live
    former: list[Live] = field(default_factory=list)
    """Of servers that have died, newest first."""
    world: World
    """The world that was never moved."""
    next_block: int = 0
    epoch: int = 0
    is_resumed: bool = False
    """Whether another server has it, and has shown nothing of it yet."""
    lists: list[tuple[KeyChange, ...]] = field(default_factory=list)
    """Of each block shown."""
    frames: dict[int, bytes] = field(default_factory=dict)
    """Of each block shown: its pixels."""
    left_before: int = 0
    """Blocks before this one have left, by what a worker has said to a server."""
    shown_here: dict[int, None] = field(default_factory=dict)
    """Blocks that the present server has shown."""
    received: dict[str, dict[int, None]] = field(default_factory=dict)
    """By tab: blocks of which it has frames. They are never made anew."""
    returning: Returning = field(default_factory=Returning)
    """Who has come back since the present server has it."""
    row: Row | None = None
    owners: dict[int, tuple[str, int]] = field(default_factory=dict)
    granted: dict[str, int] = field(default_factory=dict)
    """By attempt: the epoch that it made."""
    reclaimed: dict[int, None] = field(default_factory=dict)
    """Epochs in which a source has its session back: the owner before had shown nothing, and was dead."""
    not_moved: list[str] = field(default_factory=list)
    """Attempts that were reported as refused or aborted."""
    told: dict[str, None] = field(default_factory=dict)
    """Attempts that were reported."""
    pressed: dict[int, list[tuple[str, bool]]] = field(default_factory=dict)
    """By number: the key changes that players have made."""
    taken: dict[int, tuple[str, bool]] = field(default_factory=dict)
    """By number: those that a server has said to have taken."""
    is_closing: bool = False
    """Whether it is being ended, as somebody has asked."""
    is_closed: bool = False
    """Whether who asked for that was told that it is done."""
    protect_every: int | None = None
    """What was asked for last, of its protection; None: nothing since it was opened."""
    has_rivals: bool = False
    """Whether several tabs want the controls: of their changes of one number one counts at most."""

    def is_with_a_player(self, block: int) -> bool:
        """Whether a tab has frames of a block."""
        return any(block in blocks for blocks in self.received.values())

    @property
    def is_over(self) -> bool:
        """Whether nobody plays it any more."""
        return self.is_closed or (self.row is not None and self.row.lost)

    @property
    def newest_received(self) -> int:
        """The newest block of which a tab has frames; -1 for none."""
        return max((block for blocks in self.received.values() for block in blocks), default=-1)

    def disregard(self, after: int) -> None:
        """What tabs have after this block does not count any more."""
        for tab, blocks in self.received.items():
            self.received[tab] = {block: None for block in blocks if block <= after}

    def list_of(self, block: int) -> tuple[KeyChange, ...] | None:
        """Return the list that was closed for a block, by this server or an earlier one; None if none was."""
        for live in (self.live, *self.former):
            sequencer = live.sequencer
            if sequencer.first <= block < sequencer.reaches:
                return sequencer.closed(block)
        return None

    def go_back(self, block: int) -> None:
        """Forget blocks that nobody has received, from this one on: they are made anew."""
        del self.lists[block:]
        decodes = self.world.cache is not None
        self.next_block, self.world = block, begin(seed_of(self.name), decodes=decodes)
        for closed in self.lists:
            self.world.advance(closed)
