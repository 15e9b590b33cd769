"""The edge at which a block's pictures are copied and hashed by several threads at once: both let go of Python's lock.

They are copied while their block waits for it, since an engine may write them again with its next step; and hashed
beside that step.
Small frames are done in place, sooner than another thread would have woken.
"""

import asyncio
import os
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from hashlib import sha256
from threading import Barrier
from typing import cast

import numpy as np
from numpy.typing import NDArray

from worldmove.worker.config import LARGE_FRAME_BYTES
from worldmove.worker.pictures import Digests, Pictures, taken

MAX_THREADS = 12
"""As many as a block of the largest engine has frames."""


def picture_threads() -> int:
    """Return how many threads this process may use for pictures: a core stays for its event loop, one for others."""
    return min(MAX_THREADS, len(os.sched_getaffinity(0)) - 2)


class PictureThreads:
    """A ``Taking`` that has large frames done by threads."""

    def __init__(self, num_threads: int, large_frame_bytes: int = LARGE_FRAME_BYTES) -> None:
        """Its caller's thread is one of them: with fewer than two there is no other."""
        self._large_frame_bytes = large_frame_bytes
        self._num_threads = max(1, num_threads)
        num_others = self._num_threads - 1
        self._executor = ThreadPoolExecutor(max_workers=max(1, num_others), thread_name_prefix="pictures")
        # Begun now: at a limit of threads they could not be later, in the middle of somebody's block.
        together = Barrier(num_others) if num_others else None
        for begun in [self._executor.submit(together.wait) for _ in range(num_others) if together is not None]:
            begun.result()

    def __call__(self, frames: NDArray[np.uint8]) -> Pictures:
        """Return once they are copied: they are hashed beside whatever the caller does then."""
        if self._num_threads < 2 or not len(frames) or frames[0].nbytes < self._large_frame_bytes:
            return taken(frames)
        copy = self.copied(frames)
        hashing = [self._executor.submit(_digest, frame) for frame in copy]
        # To whoever sends, slices or compares it, it is as good as bytes, and those would be a second copy.
        raw = cast(bytes, copy.reshape(-1).data.toreadonly())
        return Pictures(frames=raw, coming=partial(_all, hashing))

    def copied(self, frames: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Return a copy of theirs, of as much by each thread."""
        num_parts = min(self._num_threads, len(frames))
        copy = np.empty_like(frames, order="C")

        def take(part: int) -> None:
            for number in range(part, len(frames), num_parts):
                copy[number] = frames[number]

        others = [self._executor.submit(take, part) for part in range(1, num_parts)]
        take(0)
        for other in others:
            other.result()
        return copy

    def close(self) -> None:
        """End the threads."""
        self._executor.shutdown(wait=True)


def _digest(frame: NDArray[np.uint8]) -> bytes:
    return sha256(frame.data).digest()


async def _all(hashing: Sequence["Future[bytes]"]) -> Digests:
    """Wait in the loop; where one fails, the others are waited for, too."""
    found = await asyncio.gather(*map(asyncio.wrap_future, hashing), return_exceptions=True)
    for digest in found:
        if isinstance(digest, BaseException):
            raise digest
    return tuple(cast(Sequence[bytes], found))
