"""A framed header with a check behind it: how our files begin. ``docs/records.md`` has it byte by byte."""

import struct
from typing import BinaryIO

import xxhash

from worldmove.errors import FileRefused

MAX_HEADER_BYTES = 1 << 18
FRAME = struct.Struct("<4sHQ")
CHECK = struct.Struct("<Q")


def checked(framed: bytes) -> bytes:
    """Append the check of a framed header."""
    return framed + CHECK.pack(xxhash.xxh3_64_intdigest(framed))


def require_short(length: int, what: str) -> None:
    """Raise FileRefused where a header is longer than one may be."""
    if length > MAX_HEADER_BYTES:
        raise FileRefused(f"This {what} is damaged: its header says {length:,} bytes, more than {MAX_HEADER_BYTES:,}.")


def read_checked(stream: BinaryIO, size: int, *, magic: bytes, version: int, what: str) -> bytes:
    """Read a framed and checked header from the start of a file of ``size`` bytes; return its body.

    ``what`` names the file in the sentence of the FileRefused that it raises for anything else.
    """
    start = stream.read(FRAME.size)
    if not start or start[:4] != magic[: len(start)]:
        raise FileRefused(f"This is no {what} of WorldMove: it begins with {start[:4]!r}, not {magic!r}.")
    if len(start) < FRAME.size:
        raise FileRefused(f"This {what} ends inside its header, after {len(start)} bytes.")
    _, found, length = FRAME.unpack(start)
    if found != version:
        raise FileRefused(f"This {what} is of format {found}, and this version of WorldMove reads {version}.")
    require_short(length, what)
    if FRAME.size + length + CHECK.size > size:
        raise FileRefused(f"This {what} ends inside its header, after {size:,} bytes.")
    body, check = stream.read(length), stream.read(CHECK.size)
    if checked(start + body)[-CHECK.size :] != check:
        raise FileRefused(f"This {what} is damaged: its header has not the check that it says.")
    return body
