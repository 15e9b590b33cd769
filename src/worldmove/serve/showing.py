"""Shows a session's blocks as they arrive, and notes what comes of each: record, counts, checks, block times."""

import asyncio
from collections import deque
from collections.abc import Callable

import structlog

from worldmove.serve.journal import Journal
from worldmove.serve.metrics import Metrics
from worldmove.serve.screen import Screen, Shown
from worldmove.serve.sequencer import Sequencer
from worldmove.serve.standstill import Standstill
from worldmove.serve.tally import Tally
from worldmove.serve.witness import Witness
from worldmove.worker.messages import BlockDone, StateDone

RECENT_BLOCKS = 16

log = structlog.get_logger()


class Showing:
    """One session's blocks, in the order in which they came."""

    def __init__(
        self,
        session: str,
        *,
        screen: Screen,
        sequencer: Sequencer,
        journal: Journal,
        tally: Tally,
        standstill: Standstill,
        metrics: Metrics,
        witness: Witness,
        on_shown: Callable[[], None],
    ) -> None:
        self._session = session
        self._screen = screen
        self._sequencer = sequencer
        self._journal = journal
        self._tally = tally
        self._standstill = standstill
        self._metrics = metrics
        self._witness = witness
        self._on_shown = on_shown
        self._arrived: asyncio.Queue[tuple[str, BlockDone | StateDone, float]] = asyncio.Queue()
        self._compute_s: deque[float] = deque(maxlen=RECENT_BLOCKS)
        self._came: tuple[int, int] | None = None

    @property
    def compute_s(self) -> tuple[float, ...]:
        """What the newest blocks that were shown took to compute, seconds."""
        return tuple(self._compute_s)

    def has_come(self, epoch: int, block: int) -> bool:
        """Whether an epoch's owner has sent a block, or a later one, that may yet be shown."""
        return self._came is not None and self._came[0] == epoch and self._came[1] >= block

    def take(self, worker: str, message: BlockDone | StateDone) -> None:
        """A block has arrived, or an account of the state after one."""
        if isinstance(message, BlockDone):
            self._came = message.epoch, message.block
        self._arrived.put_nowait((worker, message, asyncio.get_running_loop().time()))

    async def run(self) -> None:
        """Show blocks until cancelled."""
        while True:
            worker, block, arrived = await self._arrived.get()
            if isinstance(block, StateDone):  # in turn, so that it follows the block that it speaks of
                self._journal.state(worker, block)
                continue
            shown = await self._screen.take(worker, block, arrived)
            if isinstance(shown, Shown):
                if self._journal.begun:  # else it is an earlier server's session, whose lists may not be here
                    self._journal.block(worker, block, self._sequencer.closed(block.block))
                self._after(shown)
            else:
                if self._came == (block.epoch, block.block):
                    self._came = None  # it is still to come
                self._metrics.block_dropped(shown)
                log.info("block not shown", session=self._session, worker=worker, block=block.block, why=shown.value)

    def _after(self, shown: Shown) -> None:
        self._compute_s.append(shown.block.compute_s)
        self._witness.shown(shown.block.block, shown.block.frame_sha256)
        self._metrics.block_shown(shown.late_s, shown.block.compute_s)
        self._standstill.shown(shown)
        if shown.late_s:
            self._tally.late()
        self._tally.shown(shown.block)
        self._standstill.look_again()
        self._on_shown()
