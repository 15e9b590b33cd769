"""*Recover without state*: a throw-away copy, begun from the last picture alone, walks back the way the player came.

It shows what a move carries: the place it walks back to is another one. The session is untouched; the copy has
a name, inputs and frames of its own, is in no ledger, and is closed at its end.
"""

import asyncio
from collections.abc import Iterable

import structlog

from worldmove.errors import UserError, WorldMoveError
from worldmove.fleet.ports import Fleet
from worldmove.serve.frames import Kind
from worldmove.serve.live import Live
from worldmove.serve.play_messages import Error, Recover
from worldmove.serve.receipts import NO_RECEIPT
from worldmove.serve.screen import malformed, pack_block
from worldmove.worker.messages import Acknowledge, BlockDone, Change, Inputs

OPPOSITE = {"up": "down", "down": "up", "left": "right", "right": "left"}
"""Keys that undo each other's step. One that has no opposite is left out of the way back."""
BLOCK_WITHIN_S = 20.0
LOOK_S = 2.0
"""How long the last picture stays before the copy is closed."""

log = structlog.get_logger()


def way_back(walked: Iterable[str], steps_per_block: int) -> list[tuple[Change, ...]]:
    """Return the lists that undo these steps, newest first: one tap for a step, so that each acts exactly once."""
    steps = [OPPOSITE[action] for action in reversed(tuple(walked)) if action in OPPOSITE]
    changes = [
        Change(number=2 * index + (1 if down else 2), key=key, down=down)
        for index, key in enumerate(steps)
        for down in (True, False)
    ]
    size = 2 * steps_per_block
    return [tuple(changes[start : start + size]) for start in range(0, len(changes), size)]


class Recovery:
    """One throw-away copy, from its opening to its closing."""

    def __init__(self, live: Live, *, fleet: Fleet, seed: int) -> None:
        self._live = live
        self._fleet = fleet
        self._seed = seed
        self._lists = way_back(live.screen.walked, live.spec.frames_per_block)
        self._blocks: asyncio.Queue[BlockDone | None] = asyncio.Queue()
        self.name = ""
        self._worker = ""

    def take(self, block: BlockDone) -> None:
        """Take a block that the copy computed."""
        self._blocks.put_nowait(block)

    def lose(self) -> None:
        """The worker that ran the copy is gone."""
        self._blocks.put_nowait(None)

    async def open(self) -> str:
        """Begin the copy and return its name. Raises UserError where there is no way back to walk yet."""
        last = self._live.screen.last
        if last is None or not self._lists:
            raise UserError("Walk a little first: there is no way back to show yet.", code="walk_first", status=409)
        size = len(last.frames) // len(last.notes)
        view = await self._fleet.open_throwaway(self._live.name, last.frames[-size:], self._seed)
        self.name, self._worker = view.name, view.owner
        return self.name

    async def run(self) -> None:
        """Walk the way back, show it, and close the copy."""
        loop = asyncio.get_running_loop()
        begin = loop.time()
        self._say("opened", 0.0)
        try:
            await self._walk()
            await asyncio.sleep(LOOK_S)
        except (ConnectionError, TimeoutError) as error:
            why = str(error) or "it did not answer in time"
            self._live.audience.say(Error(code="recover", message=f"The throw-away copy has ended early: {why}."))
        finally:
            await self._close()
            self._say("closed", loop.time() - begin)

    async def _walk(self) -> None:
        loop = asyncio.get_running_loop()
        shown_until = loop.time()
        for index, changes in enumerate(self._lists):
            self._fleet.send(self._worker, Inputs(session=self.name, block=index, changes=changes))
            async with asyncio.timeout(BLOCK_WITHIN_S):
                block = await self._blocks.get()
            if block is None:
                raise ConnectionError("its worker is gone")
            if (why := malformed(block, self._live.spec)) is not None:
                raise ConnectionError(why)
            begin = max(shown_until, loop.time())
            await self._show(block, begin - loop.time())
            shown_until = begin + self._live.spec.period_s

    async def _show(self, block: BlockDone, wait_s: float) -> None:
        live = self._live
        frames = pack_block(
            block, live.spec, kind=Kind.RECOVERED, server_life=live.server_life, receipt=NO_RECEIPT, wait_s=0.0
        )
        await asyncio.sleep(wait_s)
        live.audience.show(frames, lambda: None)
        message = Acknowledge(session=self.name, epoch=block.epoch, block=block.block, server_life=live.server_life)
        self._fleet.send(self._worker, message)

    async def _close(self) -> None:
        try:
            await self._fleet.close(self.name)
        except WorldMoveError as error:
            log.warning("throw-away copy not closed", session=self.name, why=str(error))

    def _say(self, state: str, seconds: float) -> None:
        self._live.audience.say(Recover(name=self.name, state=state, seconds=round(seconds, 3)))
