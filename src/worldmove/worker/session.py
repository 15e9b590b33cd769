"""One copy of a session in its slot: what phase it is in, what it may compute, what it still owes.

    shadow -promote-> live -freeze-> frozen -thaw-> live
                                     frozen -retire-> retired -take over-> live
                        live, frozen -supersede-> superseded -thaw | retire->

Rules:

1. A step begins only in a phase that may compute, with the next block's list at hand. Whoever leaves such a
   phase waits for the step in hand (``still``), so a freeze is met exactly at a block boundary.
2. ``next_block`` changes only when a step has ended.
3. What was sent stays in the outbox until it is acknowledged, in every phase.
4. A retired copy gives its slot back when its check blocks are done and a block past its boundary has left
   the gateway; never before, since until then it may be the last copy that can go on.
"""

import asyncio
from collections.abc import Callable
from enum import Enum
from typing import Any

from worldmove.errors import ProtocolError
from worldmove.worker.inputs import InputLists
from worldmove.worker.outbox import Outbox
from worldmove.worker.slots import Slot


class CopyPhase(Enum):
    """Where a copy stands. FREEING: its step in hand ends, then the slot is given back."""

    SHADOW = "shadow"
    LIVE = "live"
    FROZEN = "frozen"
    SUPERSEDED = "superseded"
    RETIRED = "retired"
    THROWAWAY = "throwaway"
    FREEING = "freeing"


class SessionCopy:
    """A copy's book-keeping. It computes nothing itself: ``worker.loop`` steps it."""

    def __init__(self, name: str, slot: Slot, outbox: Outbox, on_change: Callable[[], None]) -> None:
        self.name = name
        self.slot = slot
        self.inputs = InputLists()
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
        self.boundary = 0
        """Of a retired copy: the first block that another end owns."""
        self.passed = False
        """A block past the retired copy's boundary has left the gateway."""
        self.skip_before = 0
        """Blocks before this one are computed and not sent (a replay)."""
        self.ended_at = float("-inf")
        """Loop time at which the last step ended."""
        self.wake = asyncio.Event()
        self._still = asyncio.Event()
        self._still.set()
        self._ended = asyncio.Event()
        self._on_change = on_change

    def changed(self) -> None:
        """Let the worker say that this copy, or its slot, is another."""
        self._on_change()

    def enter(self, phase: CopyPhase) -> None:
        """Change the phase, wake the loop, and let the worker say so."""
        if self.phase is CopyPhase.FREEING:
            raise ProtocolError(f"{self.name} is being freed and cannot become {phase.value}")
        self.phase = phase
        self.wake.set()
        self.changed()

    @property
    def may_compute(self) -> bool:
        """Whether this phase steps blocks: an owner, a throw-away copy, a retired copy with checks to do."""
        if self.phase is CopyPhase.RETIRED:
            return self.num_checks_owed > 0
        return self.phase in (CopyPhase.LIVE, CopyPhase.THROWAWAY)

    @property
    def can_step(self) -> bool:
        """Whether a step may begin now."""
        return self.may_compute and self.inputs.get(self.next_block) is not None

    @property
    def may_be_freed(self) -> bool:
        """Whether this retired copy is needed no longer."""
        return self.phase is CopyPhase.RETIRED and self.passed and self.num_checks_owed == 0

    @property
    def stepping(self) -> bool:
        """Whether a step is in hand."""
        return not self._still.is_set()

    def begin_step(self) -> None:
        """A step takes its turn."""
        self._still.clear()

    def end_step(self) -> None:
        """The step has ended, or gave its turn back."""
        self._still.set()
        self._ended.set()

    async def step_ended(self) -> None:
        """Return at the end of the step in hand, or of the next one."""
        self._ended.clear()
        await self._ended.wait()

    async def still(self) -> None:
        """Return once no step is in hand."""
        await self._still.wait()

    def acknowledge(self, block: int) -> None:
        """Every block up to this one has left the gateway."""
        self.outbox.acknowledge(block)
        self.inputs.forget_before(min(self.next_block, self.outbox.first_kept(block + 1)))
        if self.phase is CopyPhase.RETIRED and block >= self.boundary:
            self.passed = True
            self.wake.set()

    def promote(self, epoch: int, block: int, num_digests: int) -> None:
        """Play from ``block`` on, as the owner in ``epoch``."""
        self.epoch, self.next_block, self.num_digests_owed = epoch, block, num_digests
        self.inputs.forget_before(block)
        self.enter(CopyPhase.LIVE)

    def thaw(self, epoch: int) -> None:
        """Go on as the owner in ``epoch``, and send again what nobody acknowledged."""
        self.epoch = epoch
        self.enter(CopyPhase.LIVE)
        self.outbox.send_again(epoch)

    def retire(self, attempt: str, num_checks: int) -> None:
        """Own nothing more; step ``num_checks`` blocks from the input lists alone."""
        self.attempt, self.boundary, self.num_checks_owed = attempt, self.next_block, num_checks
        self.enter(CopyPhase.RETIRED)

    def take_over(self, epoch: int, block: int) -> None:
        """Replay up to ``block``, then play from it on, as the owner in ``epoch``."""
        self.epoch, self.num_checks_owed, self.skip_before = epoch, 0, block
        self.enter(CopyPhase.LIVE)
        self.outbox.send_again(epoch, block)
