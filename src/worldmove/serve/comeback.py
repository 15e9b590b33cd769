"""How a session of an earlier server goes on at this one: first its blocks are shown again, then its lists closed."""

import asyncio
from collections.abc import Callable

import structlog

from worldmove.errors import LedgerError
from worldmove.fleet.ports import Fleet
from worldmove.serve.resuming import Resuming
from worldmove.serve.screen import Screen
from worldmove.serve.sequencer import Sequencer
from worldmove.serve.witness import Witness
from worldmove.worker.messages import BlockDone, Replayed

log = structlog.get_logger()
AGAIN_S = 0.25
"""Until what could not be put on file is tried again."""


class Comeback:
    """One session's. ``Resuming`` says how far it may go."""

    def __init__(
        self,
        session: str,
        *,
        resuming: Resuming,
        fleet: Fleet,
        screen: Screen,
        sequencer: Sequencer,
        witness: Witness,
        compare: Callable[[Replayed], None],
    ) -> None:
        """``compare`` hears of a block that was computed anew once it is known how it was shown."""
        self._session = session
        self._resuming = resuming
        self._fleet = fleet
        self._screen = screen
        self._sequencer = sequencer
        self._witness = witness
        self._compare = compare
        self._uncompared: dict[int, Replayed] = {}

    async def show(self, keys: tuple[str, ...], server_life: int) -> None:
        """Wait until the next block is known, and let in who has come back."""
        next_block = await self._resuming.showable()
        if (fork := self._resuming.reports.forks_at) is not None:
            await self._fork(fork)
        for block in self._resuming.sent.values():
            if block.block < next_block and self._witness.was_replayed(block.block, block.frame_sha256):
                self._resuming.blocks.setdefault(block.block, block)  # whoever made it was replaced before it heard
        recalled = [self._resuming.blocks[block] for block in sorted(self._resuming.blocks)]
        self._screen.resume(next_block, recalled, shown_before=self._resuming.reports.shown_before)
        for block in recalled:
            self._seen(block)
        self._sequencer.begin_again(self._resuming.newest_number, keys, life=server_life)
        log.info("resumed", session=self._session, block=next_block)
        self._resuming.let_in()

    async def close(self) -> None:
        """Wait until every holder has reported, and take up their lists."""
        await self._resuming.closable()
        self._sequencer.resume(self._screen.next_block, self._resuming.reports.lists)

    def recall(self, block: BlockDone) -> None:
        """A block that an earlier server has shown is here again: who comes back may lack it."""
        self._resuming.recalled(block)
        if self._resuming.is_over:
            self._screen.recall(block)
            self._seen(block)

    def sent(self, block: BlockDone) -> None:
        """A worker sends a block of which it has not heard that it has left: an earlier server may have shown it."""
        self._resuming.sent[block.block] = block
        self._recall_if_replayed(block)

    def compare_later(self, message: Replayed) -> None:
        """A block was computed anew, and it is not known yet how it was shown."""
        self._uncompared[message.block] = message
        if (sent := self._resuming.sent.get(message.block)) is not None:
            self._recall_if_replayed(sent)

    def _recall_if_replayed(self, block: BlockDone) -> None:
        """Who made it may have been replaced before it heard that it had left: what its successor made is equal."""
        if not self._resuming.is_over and self._witness.was_replayed(block.block, block.frame_sha256):
            self._resuming.recalled(block)

    async def _fork(self, block: int) -> None:
        """Have it on file, before anything is shown, that receipts of this block and of later ones count no more."""
        while True:
            try:
                self._fleet.fork(self._session, block)
            except LedgerError:
                await asyncio.sleep(AGAIN_S)
            else:
                self._screen.forks = (*self._screen.forks, block)
                return

    def _seen(self, block: BlockDone) -> None:
        if block.block < self._screen.next_block:
            self._witness.shown(block.block, block.frame_sha256)
            if message := self._uncompared.pop(block.block, None):
                self._compare(message)
