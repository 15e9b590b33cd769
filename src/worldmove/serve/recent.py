"""The newest blocks of a session that were shown, for whoever comes back and lacks them."""

from collections.abc import Sequence

from worldmove.worker.messages import BlockDone

MAX_BLOCKS = 8
MAX_BYTES = 8 << 20


class Recent:
    """At most 8 blocks in a row, and no more than 8 MiB where one fits."""

    def __init__(self) -> None:
        self._blocks: dict[int, BlockDone] = {}

    @property
    def newest(self) -> BlockDone | None:
        """The newest block."""
        return self._blocks[max(self._blocks)] if self._blocks else None

    def put(self, block: BlockDone) -> None:
        """Keep a block; older ones make room."""
        self._blocks[block.block] = block
        while len(self._blocks) > 1 and self._is_too_much():
            del self._blocks[min(self._blocks)]

    def after(self, received: int | None, most: int) -> Sequence[BlockDone]:
        """Return what a client lacks that has every block up to ``received``, in order, at most so many blocks.

        Where that is not here or is too much, and where it has nothing: the newest one alone.
        """
        newest = self.newest
        if newest is None or (received is not None and received >= newest.block):
            return ()
        first = newest.block if received is None else received + 1
        wanted = range(first, newest.block + 1) if newest.block - first < most else ()
        complete = bool(wanted) and all(block in self._blocks for block in wanted)
        return [self._blocks[block] for block in wanted] if complete else [newest]

    def _is_too_much(self) -> bool:
        return len(self._blocks) > MAX_BLOCKS or sum(len(block.frames) for block in self._blocks.values()) > MAX_BYTES
