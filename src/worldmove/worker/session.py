"""One copy of a session in its slot: what phase it is in, what it may compute, what it still owes.

    shadow -promote-> live -freeze-> frozen -thaw-> live
                                     frozen -retire-> retired -replay-> live
                        live, frozen -supersede-> superseded -thaw | retire->
    shadow -follow-> following -verified-> shadow

Rules:

1. A step begins only in a phase that may compute, with the next block's list at hand. Whoever leaves such a
   phase waits for the step in hand (``step``), so a freeze is met exactly at a block boundary.
2. ``next_block`` changes only when a step has ended.
3. What was sent stays in the outbox until it is acknowledged, in every phase.
4. Only who orders a copy about frees it: its move's driver, or the worker when its session is closed.
5. Its slot is given back once nobody is at its memory any more: who opens, saves or freezes it says so (``users``).
"""

import asyncio
from collections.abc import Callable
from enum import Enum
from typing import Any

from worldmove.errors import ProtocolError
from worldmove.worker.accounts import Accounts
from worldmove.worker.early_word import EarlyWord
from worldmove.worker.inputs import InputLists
from worldmove.worker.outbox import Outbox
from worldmove.worker.slots import Slot
from worldmove.worker.step_in_hand import StepInHand
from worldmove.worker.users import Users


class CopyPhase(Enum):
    """Where a copy stands. FREEING: its step in hand ends, then the slot is given back."""

    SHADOW = "shadow"
    FOLLOWING = "following"
    """A shadow that steps what its session's owner has stepped before."""
    LIVE = "live"
    FROZEN = "frozen"
    SUPERSEDED = "superseded"
    RETIRED = "retired"
    THROWAWAY = "throwaway"
    FREEING = "freeing"


class SessionCopy:
    """A copy's book-keeping. It computes nothing itself: ``worker.loop`` steps it."""

    stays = False
    """Once it has retired it stays, checks done or not, until another worker keeps the session (``let_pass``)."""

    def __init__(self, name: str, slot: Slot, outbox: Outbox, on_change: Callable[["SessionCopy"], None]) -> None:
        self.name = name
        self.slot = slot
        self.inputs = InputLists()
        self.accounts = Accounts()
        self.early = EarlyWord()
        self.outbox = outbox
        self.phase = CopyPhase.SHADOW
        self.epoch = 0
        self.next_block = 0
        self.attempt = ""
        self.engine_session: Any = None
        self.num_digests_owed = 0
        """How many of the next blocks carry a state digest."""
        self.num_checks_owed = 0
        """How many more blocks a retired copy steps."""
        self._checks_end = 0
        self.left_gateway = 0
        """Blocks before this one have left the gateway."""
        self.skip_before = 0
        """Blocks before this one are computed and not sent (a replay)."""
        self.stops_before: int | None = None
        """This block and later ones are not computed, for the sake of a move."""
        self.follows = ""
        """The attempt for which it follows its session's owner."""
        self.failure = ""
        """What its engine raised; empty where it has not."""
        self.ended_at = float("-inf")
        """Loop time at which the last step ended."""
        self.wake = asyncio.Event()
        self.ended = asyncio.Event()
        """Set once its slot is given back, or is in quarantine."""
        self.step = StepInHand(self._turn)
        self.users = Users()
        self._turning: list[asyncio.Future[None]] = []
        self._passing: list[tuple[int, asyncio.Future[None]]] = []
        self._on_change = on_change

    def changed(self) -> None:
        """Let the worker say that this copy, or its slot, is another."""
        self._on_change(self)

    def enter(self, phase: CopyPhase) -> None:
        """Change the phase, wake the loop, and let the worker say so."""
        if self.phase is CopyPhase.FREEING:
            raise ProtocolError(f"{self.name} is being freed and cannot become {phase.value}")
        self.phase = phase
        self.wake.set()
        self._turn()
        self.changed()

    def end(self) -> None:
        """Let the slot be given back as soon as that can be."""
        if self.phase is not CopyPhase.FREEING:
            self.enter(CopyPhase.FREEING)

    @property
    def may_compute(self) -> bool:
        """Whether this phase steps blocks: an owner, a throw-away copy, a retired copy with checks to do.

        A check begins once the owner's block has left the gateway: beside the owner's own step it would slow that
        down on a machine with few cores, and nobody waits for it.
        """
        if self.phase is CopyPhase.RETIRED:
            return self.num_checks_owed > 0 and self.next_block < self.left_gateway
        if self.phase is CopyPhase.FOLLOWING and self.stops_before is None:
            return self.next_block < self.left_gateway
        is_before_its_end = self.stops_before is None or self.next_block < self.stops_before
        return is_before_its_end and (self.plays or self.phase is CopyPhase.FOLLOWING)

    @property
    def is_freeing(self) -> bool:
        """Whether its slot is about to be given back."""
        return self.phase is CopyPhase.FREEING

    @property
    def plays(self) -> bool:
        """Whether this copy's blocks are shown to somebody."""
        return self.phase in (CopyPhase.LIVE, CopyPhase.THROWAWAY)

    @property
    def is_spare(self) -> bool:
        """Whether nobody who owns a session waits for this copy's blocks."""
        if self.phase is CopyPhase.FOLLOWING:
            return self.stops_before is None
        return self.phase in (CopyPhase.RETIRED, CopyPhase.THROWAWAY)

    @property
    def can_step(self) -> bool:
        """Whether a step may begin now."""
        return self.may_compute and self.inputs.get(self.next_block) is not None

    @property
    def owes_digest(self) -> bool:
        """Whether the next block carries a state digest: none does that was shown already."""
        return self.num_digests_owed > 0 and not self.replays

    @property
    def replays(self) -> bool:
        """Whether it computes blocks that were shown already."""
        return self.next_block < self.skip_before

    @property
    def left(self) -> int:
        """Every block before this one has left the gateway, as far as this copy can know.

        What it computed and does not keep was acknowledged; what was computed before it was verified had to be
        acknowledged before its source's proof was sent.
        """
        if self.phase in (CopyPhase.FREEING, CopyPhase.FOLLOWING):
            return self.left_gateway
        if self.phase is CopyPhase.SHADOW:
            return max(self.left_gateway, self.next_block)
        return max(self.left_gateway, self.skip_before, self.outbox.first_kept(self.next_block))

    @property
    def is_let_go(self) -> bool:
        """Whether its slot, once bound, is given back: whoever has it now has another session in it."""
        return self.ended.is_set()

    async def turned(self) -> None:
        """Return once something has happened here: a step's end, another phase, a list, a block that has left."""
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._turning.append(turn)
        await turn

    def look_again(self) -> None:
        """Something has come that a step may wait for."""
        if self.phase is CopyPhase.RETIRED and self.inputs.is_too_long:
            self.let_pass()
        self.wake.set()
        self._turn()

    def _turn(self) -> None:
        turning, self._turning = self._turning, []
        for turn in turning:
            if not turn.done():
                turn.set_result(None)

    def acknowledge(self, block: int) -> None:
        """Every block up to this one has left the gateway."""
        self.left_gateway = max(self.left_gateway, block + 1)
        if block >= self.skip_before:
            self.outbox.forget_replayed(block)
        self.outbox.acknowledge(block)
        self.inputs.forget_before(min(self.next_block, self.outbox.first_kept(block + 1)))
        self.look_again()
        self._tell_passed()

    async def passed(self, block: int) -> None:
        """Return once ``block`` has left the gateway, no check is owed, and the owner's own such blocks have left too.

        Until then this copy could still take over from the block that its owner failed at.
        """
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._passing.append((block, done))
        self._tell_passed()
        await done

    def let_pass(self) -> None:
        """It need not stay for whatever may become of its owner."""
        self.stays = False
        self._tell_passed()

    def check_stepped(self) -> None:
        """One check block is done."""
        self.num_checks_owed = max(0, self.num_checks_owed - 1)
        self._tell_passed()

    def stand_at(self, block: int) -> None:
        """A shadow is complete: say which block is its next one. It may own the session before it hears of that."""
        self.next_block, self.stops_before = block, None
        if self.phase is CopyPhase.FOLLOWING:
            self.phase = CopyPhase.SHADOW
        self.changed()

    def follow(self, block: int, attempt: str) -> None:
        """Step what its session's owner steps, from ``block`` on, once it has left the gateway."""
        self.next_block, self.follows = block, attempt
        self.inputs.forget_before(block)
        self.enter(CopyPhase.FOLLOWING)

    def stop_before(self, block: int) -> None:
        """Compute up to a block, and no further; where a later one was said before, it counts no more."""
        self.stops_before = block if self.stops_before is None else min(block, self.stops_before)
        self.look_again()

    def play_on(self) -> None:
        """Compute past the block that it was to stop before."""
        self.stops_before = None
        self.look_again()

    def promote(self, epoch: int, block: int, num_digests: int) -> None:
        """Play from ``block`` on, as the owner in ``epoch``."""
        self.epoch, self.next_block, self.num_digests_owed = epoch, block, num_digests
        self.inputs.forget_before(block)
        self.accounts.forget_before(block)
        self.enter(CopyPhase.LIVE)

    def thaw(self, epoch: int) -> None:
        """Go on as the owner in ``epoch``, and send again what nobody acknowledged."""
        self.epoch, self.num_checks_owed, self.stops_before = epoch, 0, None
        self.enter(CopyPhase.LIVE)
        self.outbox.send_again(epoch)

    def retire(self, attempt: str, num_checks: int) -> None:
        """Own nothing more; step ``num_checks`` blocks from the input lists alone."""
        self.attempt, self.num_checks_owed, self._checks_end = attempt, num_checks, self.next_block + num_checks
        self.stops_before = None
        self.enter(CopyPhase.RETIRED)

    def replay(self, epoch: int, block: int, num_digests: int = 0) -> None:
        """Compute up to ``block`` in silence, then play from it on, as the owner in ``epoch``.

        A source that was in doubt by then may check what comes: ``num_digests`` blocks carry a state digest.
        """
        self.epoch, self.num_checks_owed, self.skip_before, self.stops_before = epoch, 0, block, None
        self.num_digests_owed = num_digests
        self.enter(CopyPhase.LIVE)
        self.outbox.send_again(epoch, block)

    def _tell_passed(self) -> None:
        if self.stays or (self.num_checks_owed and not self.inputs.skips(self.next_block)):
            return
        waiting, self._passing = self._passing, []
        for block, done in waiting:
            if self.left_gateway < max(block + 1, self._checks_end):
                self._passing.append((block, done))
            elif not done.done():
                done.set_result(None)
