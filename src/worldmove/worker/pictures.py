"""A block's pictures on their way out: a copy that nobody writes any more, and the SHA-256 of each frame."""

import hashlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Digests = tuple[bytes, ...]
"""Of each frame of a block, in their order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pictures:
    """A block's raw bytes, and each frame's digest: known, or on the way."""

    frames: bytes
    frame_sha256: Digests = ()
    coming: Callable[[], Awaitable[Digests]] | None = None
    """Waits for the digests, where others are still at it: nothing that writes the engine's pictures again has to."""

    async def hashed(self) -> Digests:
        """Return the digests."""
        return self.frame_sha256 if self.coming is None else await self.coming()


Taking = Callable[[NDArray[np.uint8]], Pictures]


def taken(frames: NDArray[np.uint8]) -> Pictures:
    """Copy and hash a block's pictures here."""
    digests = tuple(hashlib.sha256(frame.data).digest() for frame in frames)
    return Pictures(frames=frames.tobytes(), frame_sha256=digests)
