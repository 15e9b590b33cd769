"""The binary half of the play wire: one frame of a world, as a watcher gets it. See docs/play-wire.md.

104 bytes of header, little endian, then the raw RGB8 bytes. The digest is the worker's, taken before any
codec; whoever receives the frame can take it again over what follows the header. The receipt is the server's.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

from worldmove.errors import MessageError
from worldmove.serve.receipts import RECEIPT_BYTES

MAGIC = b"WMPF"
VERSION = 2
HEADER_BYTES = 104
SHA256_BYTES = 32
STAY = 0
"""Action index of a frame that no key moved."""

_LAYOUT = struct.Struct("<4sBBBBHHIQQQQiiQ32s8s")
MAX_SHOW_AFTER_MS = 0xFFFF_FFFF


class Kind(IntEnum):
    """What a frame is a picture of."""

    LIVE = 0
    RECOVERED = 1
    """A throw-away copy, rebuilt from one picture."""


_KINDS = {kind.value: kind for kind in Kind}


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameHeader:
    """The header's fields. ``pose`` is (y, x) in tiles; ``number`` is the newest key change the frame has used."""

    kind: Kind
    action: int
    index: int
    width: int
    height: int
    show_after_ms: int
    epoch: int
    block: int
    frame: int
    number: int
    pose: tuple[int, int]
    server_life: int
    sha256: bytes
    receipt: bytes
    """What a client shows when it says that it has this block (``serve.receipts``)."""


def action_index(action: str, keys: Sequence[str]) -> int:
    """Number an action as the header does: 0 is no key, 1 is ``keys[0]``."""
    return 1 + keys.index(action) if action in keys else STAY


def pack(header: FrameHeader, pixels: bytes | memoryview) -> bytes:
    """Return one message. Raises MessageError if the picture has not the size that the header says."""
    sizes = (len(pixels), len(header.sha256), len(header.receipt))
    if sizes != (header.width * header.height * 3, SHA256_BYTES, RECEIPT_BYTES):
        raise MessageError(f"a frame of {header.width}x{header.height} came with {len(pixels)} bytes")
    packed = _LAYOUT.pack(
        MAGIC,
        VERSION,
        header.kind,
        header.action,
        header.index,
        header.width,
        header.height,
        min(header.show_after_ms, MAX_SHOW_AFTER_MS),
        header.epoch,
        header.block,
        header.frame,
        header.number,
        header.pose[0],
        header.pose[1],
        header.server_life,
        header.sha256,
        header.receipt,
    )
    return b"".join((packed, pixels))


def unpack(message: bytes) -> tuple[FrameHeader, bytes]:
    """Read one message. Raises MessageError for anything that ``pack`` does not make."""
    if len(message) < HEADER_BYTES:
        raise MessageError(f"a frame's header has {HEADER_BYTES} bytes, not {len(message)}")
    magic, version, kind, action, index, width, height, after, *rest = _LAYOUT.unpack_from(message)
    epoch, block, frame, number, y, x, life, sha256, receipt = rest
    if magic != MAGIC or version != VERSION or kind not in _KINDS:
        raise MessageError(f"not a frame of version {VERSION}")
    if len(message) != HEADER_BYTES + width * height * 3:
        raise MessageError(f"a frame of {width}x{height} came with {len(message) - HEADER_BYTES} bytes")
    header = FrameHeader(
        kind=_KINDS[kind],
        action=action,
        index=index,
        width=width,
        height=height,
        show_after_ms=after,
        epoch=epoch,
        block=block,
        frame=frame,
        number=number,
        pose=(y, x),
        server_life=life,
        sha256=sha256,
        receipt=receipt,
    )
    return header, message[HEADER_BYTES:]
