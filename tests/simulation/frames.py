"""Frames, read once: the watch and every tab look at the same bytes."""

from functools import lru_cache

from worldmove.serve.frames import FrameHeader, unpack


@lru_cache(maxsize=256)
def read(message: bytes) -> tuple[FrameHeader, bytes]:
    """Return a frame's header and its pixels. Raises MessageError."""
    return unpack(message)
