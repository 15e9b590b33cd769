"""A session of an earlier server at the gateway: its reports as they come, and who waits at the door meanwhile."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress

from worldmove.engine.base import KeyChange
from worldmove.serve.attendance import Attendance
from worldmove.serve.player import CloseCode, Player
from worldmove.serve.resumption import Resumption, ResumptionConfig
from worldmove.worker.messages import BlockDone, Change

LOOK_S = 0.25
"""Between two looks at what only time decides."""
NOT_SHOWN = "the server was started again, and the world's owner and player have not reported yet"
NOT_CLOSED = "the server was started again, and a worker that holds a copy has not reported yet"


class Resuming:
    """Waits for what ``Resumption`` says, and keeps players until they can be let in."""

    def __init__(self, config: ResumptionConfig) -> None:
        self.reports = Resumption(config)
        self._attendance = Attendance()
        """Who cannot come back while this server does not run has not stayed away."""
        self.owner: str | None = None
        """The owner's name, as the row has it by now."""
        self.holders: Sequence[str] = ()
        self.blocks: dict[int, BlockDone] = {}
        """Those that an earlier server has shown and that are here again."""
        self.sent: dict[int, BlockDone] = {}
        """Those that a worker has computed and not heard to have left: an earlier server may have shown them too."""
        self.newest_number = 0
        """The newest number of a key change that anybody has reported."""
        self.is_over = False
        """Whether the next block is known and players are let in at once."""
        self._changed = asyncio.Event()
        self._waiting: dict[Player, Callable[[], None]] = {}

    @property
    def watched(self) -> bool:
        """Whether a player waits."""
        return bool(self._waiting)

    @property
    def why(self) -> str:
        """Why the world does not go on yet."""
        return NOT_CLOSED if self.is_over else NOT_SHOWN

    def held(self, block: int, changes: Sequence[Change]) -> None:
        """A holder has a list."""
        self.reports.hold(block, [KeyChange(number=c.number, key=c.key, down=c.down) for c in changes])
        self.number(max((change.number for change in changes), default=0))

    def number(self, number: int) -> None:
        """A key change of this number was taken by an earlier server."""
        self.newest_number = max(self.newest_number, number)

    def recalled(self, block: BlockDone) -> None:
        """A block that an earlier server has shown is here again."""
        self.blocks[block.block] = block
        self.reports.recall(block.block)
        self.number(max((note.number for note in block.notes), default=0))
        self._changed.set()

    def owner_known(self, *, lives: bool) -> None:
        """The owner has reported, or is dead."""
        self.reports.owner(lives=lives, now=self._attendance.now())
        self._changed.set()

    def log_known(self) -> None:
        """Every holder has reported, or is dead."""
        self.reports.may_close = True
        self._changed.set()

    def join(self, player: Player, received: int | None, let_in: Callable[[], None]) -> None:
        """Keep a player until the next block is known, and note what it says it has."""
        self._waiting[player] = let_in
        self.reports.client(received, self._attendance.now())
        self._changed.set()

    def leave(self, player: Player) -> None:
        """A player that waits is gone."""
        self._waiting.pop(player, None)

    def let_in(self) -> None:
        """Let in who waits, in the order in which they came, and whoever comes from now on at once."""
        self.is_over = True
        waiting, self._waiting = self._waiting, {}
        for let_in in waiting.values():
            let_in()

    def dismiss(self, code: CloseCode, reason: str) -> None:
        """Close the connections of those who wait."""
        for player in self._waiting:
            player.finish(code, reason)

    async def showable(self) -> int:
        """Return the next block to be shown, once it is known."""
        while not self.reports.may_show(self._attendance.look(LOOK_S)):
            await self._look_again()
        return self.reports.next_block

    async def closable(self) -> None:
        """Return once lists may be closed."""
        while not self.reports.may_close:
            await self._look_again()

    async def _look_again(self) -> None:
        self._changed.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(LOOK_S):
                await self._changed.wait()
