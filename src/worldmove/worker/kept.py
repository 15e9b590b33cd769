"""Snapshots that a worker keeps of sessions which another one plays, and the lists that bring them up to date.

Rules:

1. A session's lists are held from before its first snapshot is taken, and forgotten only up to the boundary of one that
   is here and proven. So whoever is installed from it can be replayed, also where a server died with the owner.
2. A newer snapshot takes the older one's place when it is proven, and not before.
3. What is kept is no copy of a move: it answers no ledger, plays nothing, and lies beside any copy of its session.
4. One that no newer one has replaced for ``inputs.MAX_LISTS`` blocks is let go, and reported no more: so nobody counts
   on what could not be brought up to date.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from worldmove.engine.base import KeyChange
from worldmove.state.manifest import Manifest
from worldmove.state.placement import Placement
from worldmove.state.proof import MoveProof
from worldmove.worker.inputs import InputLists
from worldmove.worker.messages import KEPT, Copy
from worldmove.worker.slots import Slot, SlotState


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptState:
    """A state before ``block``, proven equal to its owner's, in a slot of its own."""

    epoch: int
    block: int
    slot: Slot
    manifest: Manifest
    placement: Placement
    proof: MoveProof
    nonce: bytes


class Keeping:
    """One session's: its lists, and its newest proven snapshot, once there is one."""

    def __init__(self, session: str) -> None:
        self.session = session
        self.inputs = InputLists()
        self.state: KeptState | None = None
        self.left_gateway = 0
        """Blocks before this one have left the gateway, as this worker was told."""
        self.is_revived = False
        """It is being installed: nothing else may take it."""
        self.is_needless = False
        """Meanwhile somebody has said that it may go: the copy that is made of it need not stay."""

    def hold(self, state: KeptState) -> None:
        """Keep a newer snapshot in the place of the older one."""
        self.let_go()
        self.state = state
        self.left_gateway = max(self.left_gateway, state.block)
        self.inputs.forget_before(state.block)

    def let_go(self) -> None:
        """Give the snapshot's slot back."""
        state, self.state = self.state, None
        if state is not None:
            state.slot.enter(SlotState.FREE)


class KeptTable:
    """All that one worker keeps for others."""

    def __init__(self, on_change: Callable[[Keeping], None]) -> None:
        """``on_change`` hears of every change of what is kept."""
        self._keepings: dict[str, Keeping] = {}
        self._on_change = on_change

    def get(self, session: str) -> Keeping | None:
        return self._keepings.get(session)

    def expect(self, session: str) -> None:
        """Hold a session's lists from now on. Those of an earlier expectation may have a gap, and go."""
        keeping = self._keepings.get(session)
        if keeping is None or keeping.state is None:
            self._keepings[session] = Keeping(session)

    def put(self, session: str, block: int, changes: Sequence[KeyChange]) -> None:
        """A list of a session has come."""
        keeping = self._keepings.get(session)
        if keeping is None:
            return
        keeping.inputs.put(block, changes)
        if keeping.inputs.is_too_long and not keeping.is_revived:
            self.drop(keeping)

    def acknowledge(self, session: str, block: int) -> None:
        """Every block up to this one has left the gateway."""
        if (keeping := self._keepings.get(session)) is not None:
            keeping.left_gateway = max(keeping.left_gateway, block + 1)

    def hold(self, keeping: Keeping, state: KeptState) -> bool:
        """Keep a snapshot; False where nobody expects it any more, or the older one is being installed, or is newer.

        One that was begun over an earlier link may come late: the lists that it needs are forgotten by then.
        """
        if self._keepings.get(keeping.session) is not keeping or keeping.is_revived:
            return False
        if keeping.state is not None and state.block < keeping.state.block:
            return False
        keeping.hold(state)
        self._on_change(keeping)
        return True

    def let_go(self, session: str) -> None:
        """Keep nothing of a session any more. Idempotent."""
        keeping = self._keepings.get(session)
        if keeping is None:
            return
        if keeping.is_revived:
            keeping.is_needless = True
        else:
            self.drop(keeping)

    def drop(self, keeping: Keeping) -> None:
        """The same, of what was being installed too."""
        keeping.let_go()
        self.hand_on(keeping)

    def hand_on(self, keeping: Keeping) -> None:
        """What was kept is a copy now, in the slot that it lay in."""
        if self._keepings.get(keeping.session) is keeping:
            del self._keepings[keeping.session]
        self._on_change(keeping)

    def forget_unfinished(self) -> None:
        """There is a new link: lists may have been lost with the old one, and nobody waits for what was begun."""
        for session in [session for session, keeping in self._keepings.items() if keeping.state is None]:
            del self._keepings[session]

    def all(self) -> tuple[Keeping, ...]:
        return tuple(self._keepings.values())

    def held(self) -> tuple[Copy, ...]:
        """Return what is reported of it, beside the copies."""
        return tuple(
            Copy(
                session=keeping.session,
                phase=KEPT,
                epoch=keeping.state.epoch,
                block=keeping.state.block,
                left=keeping.left_gateway,
            )
            for keeping in self._keepings.values()
            if keeping.state is not None
        )
