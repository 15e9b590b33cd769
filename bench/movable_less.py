"""What a part of a worker's work on pictures takes of its loop: the same blocks with that part left out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from worldmove.worker.picture_threads import PictureThreads
from worldmove.worker.pictures import Digests, Pictures


@dataclass(frozen=True, slots=True, kw_only=True)
class Less:
    """What is done with a block's pictures."""

    name: str
    is_hashed: bool = True
    is_sent: bool = True
    is_copied: bool = True


ALL = Less(name="all of it")
WAYS = (
    ALL,
    Less(name="not hashed", is_hashed=False),
    Less(name="not sent", is_sent=False),
    Less(name="neither hashed nor sent", is_hashed=False, is_sent=False),
    Less(name="nothing done with pictures", is_hashed=False, is_sent=False, is_copied=False),
)


class Lessened:
    """A ``Taking`` that leaves out what ``less`` says: its digests are zeros then, on the way as real ones are."""

    def __init__(self, threads: PictureThreads, less: Less) -> None:
        self._threads = threads
        self.less = less

    def __call__(self, frames: NDArray[np.uint8]) -> Pictures:
        if self.less.is_hashed:
            return self._threads(frames)
        found = self._threads.copied(frames) if self.less.is_copied else frames

        async def zeros() -> Digests:
            return (bytes(32),) * len(frames)

        return Pictures(frames=cast(bytes, found.reshape(-1).data.toreadonly()), coming=zeros)

    def close(self) -> None:
        """End the threads."""
        self._threads.close()


def less_of(less: Mapping[str, Sequence[Sequence[float]]], num_blocks: int) -> dict[str, Any]:
    """Say what each way takes for a block more than the bare loop beside it, ms, and how many times as long."""
    return {
        name: {
            "runs": len(runs),
            "ratio": round(median(worker_ms / bare_ms for bare_ms, worker_ms in runs), 4),
            "more_ms_a_block": round(median(worker_ms - bare_ms for bare_ms, worker_ms in runs) / num_blocks, 3),
        }
        for name, runs in less.items()
    }
