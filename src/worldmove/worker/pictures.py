"""A block's pictures on their way out: a copy that nobody writes any more, and the SHA-256 of each frame."""

import hashlib
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Pictures = tuple[bytes, tuple[bytes, ...]]
"""A block's raw bytes, and each frame's digest."""
Taking = Callable[[NDArray[np.uint8]], Pictures]


def taken(frames: NDArray[np.uint8]) -> Pictures:
    """Copy and hash a block's pictures here."""
    return frames.tobytes(), tuple(hashlib.sha256(frame.data).digest() for frame in frames)
