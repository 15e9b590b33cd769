"""The blocks that a copy has sent: those that the gateway has not acknowledged, and the newest of those it has."""

import asyncio
from collections.abc import Callable

import msgspec

from worldmove.worker.messages import BlockDone

MAX_LEFT = 8
MAX_LEFT_BYTES = 8 << 20


class Outbox:
    """Keeps each block until it is acknowledged, and sends them again as the owner of a later epoch.

    Some stay a while longer. What has left the gateway may not have reached a client whose server was killed.
    """

    def __init__(self, send: Callable[[BlockDone], None]) -> None:
        self._send = send
        self._unacknowledged: dict[int, BlockDone] = {}
        self._promised: dict[int, None] = {}
        """Computed, and not sent yet: as good as sent and not acknowledged to whoever waits for that."""
        self._left: dict[int, BlockDone] = {}
        self.replayed: dict[int, tuple[bytes, ...]] = {}
        """Of blocks that were shown before: their frames' digests as they were computed anew, until a new one has left.

        Who showed them compares, and must have them before a new one. Of the newest they stay longer: by them a later
        server knows that it may send a client what a replaced owner has of them.
        """
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []

    def put(self, done: BlockDone) -> None:
        """Keep a block without sending it (a check block: it may have to stand in for the owner's)."""
        self._unacknowledged[done.block] = done

    def promise(self, block: int) -> None:
        """A block is computed and will be sent (``fulfil``)."""
        self._promised[block] = None

    def fulfil(self, done: BlockDone) -> None:
        """Send a promised block and keep it, unless it has been shown or dropped since, another's in its place."""
        if done.block in self._promised:
            del self._promised[done.block]
            self.send(done)

    def send(self, done: BlockDone) -> None:
        """Send a block and keep it."""
        self.put(done)
        self._send(done)

    def send_again(self, epoch: int, first: int = 0) -> None:
        """Send every block from ``first`` on that is kept, in order, in the name of ``epoch``; drop earlier ones."""
        kept = {block: self._unacknowledged[block] for block in sorted(self._unacknowledged) if block >= first}
        self._unacknowledged.clear()
        for block in [block for block in self._promised if block < first]:
            del self._promised[block]
        for done in kept.values():
            self.send(msgspec.structs.replace(done, epoch=epoch))

    def forget_replayed(self, left: int) -> None:
        """A new block has left: forget the digests of what was shown so long before it that nobody is sent it again."""
        for old in [block for block in self.replayed if block <= left - MAX_LEFT]:
            del self.replayed[old]

    def acknowledge(self, block: int) -> None:
        """The gateway has taken every block up to this one."""
        for old in sorted(number for number in self._unacknowledged if number <= block):
            self._leave(self._unacknowledged.pop(old))
        for promised in [number for number in self._promised if number <= block]:
            del self._promised[promised]
        still = []
        for before, done in self._waiting:
            if self.first_kept(before) >= before:
                _finish(done)
            else:
                still.append((before, done))
        self._waiting = still

    @property
    def left(self) -> tuple[BlockDone, ...]:
        """The newest acknowledged blocks, oldest first: at most 8, and no more than 8 MiB where one fits."""
        return tuple(self._left.values())

    def kept(self, before: int) -> tuple[BlockDone, ...]:
        """Every block before this one that is still here, acknowledged or not, oldest first."""
        here = self._left | self._unacknowledged
        return tuple(here[block] for block in sorted(here) if block < before)

    def _leave(self, done: BlockDone) -> None:
        self._left[done.block] = done
        while len(self._left) > 1 and self._is_too_much():
            del self._left[min(self._left)]

    def _is_too_much(self) -> bool:
        return len(self._left) > MAX_LEFT or sum(len(done.frames) for done in self._left.values()) > MAX_LEFT_BYTES

    def first_kept(self, otherwise: int) -> int:
        """Return the first block that is not acknowledged; ``otherwise`` if all are."""
        return min([*self._unacknowledged, *self._promised], default=otherwise)

    async def acknowledged(self, before: int) -> None:
        """Return once no block before this one is kept."""
        if self.first_kept(before) >= before:
            return
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((before, done))
        await done


def _finish(done: asyncio.Future[None]) -> None:
    if not done.done():
        done.set_result(None)
