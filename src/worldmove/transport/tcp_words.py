"""What the two ends of a TCP path say to each other, as bytes. ``docs/transports.md`` has it in words.

destination  hello      magic, token
source       welcome    the size of the arena          or the connection is closed
destination  request    how many runs, then each one's offset and length
source       answer     how many bytes follow, then these bytes, in the order of the runs
"""

import struct
from collections.abc import Iterator, Sequence

from worldmove.errors import TransportError
from worldmove.state.extent import Extent
from worldmove.transport.descriptors import TOKEN_BYTES

MAX_RUNS = 4096
"""In one request. It bounds what a source sets aside for somebody who asks: 64 KiB."""

_MAGIC = b"WMTCP\x00\x01\n"
_HELLO = struct.Struct(f"!{len(_MAGIC)}s{TOKEN_BYTES}s")
_NUMBER = struct.Struct("!Q")
_RUN = struct.Struct("!QQ")
HELLO_BYTES = _HELLO.size
NUMBER_BYTES = _NUMBER.size
RUN_BYTES = _RUN.size
AT_LIMIT = (1 << 64) - 1
"""Instead of an arena's size: the source may open no more files."""


def hello(token: bytes) -> bytes:
    """Return the destination's first words."""
    return _HELLO.pack(_MAGIC, token)


def token_of(words: bytes) -> bytes:
    """Return the token of a hello. Raises TransportError."""
    magic, token = _HELLO.unpack(words)
    if magic != _MAGIC:
        raise TransportError("not the beginning of a path of ours")
    return bytes(token)


def number(value: int) -> bytes:
    """Return a size or a count as it travels."""
    return _NUMBER.pack(value)


def number_of(words: bytes) -> int:
    """Return a size or a count."""
    (value,) = _NUMBER.unpack(words)
    return int(value)


def requests(extents: Sequence[Extent]) -> Iterator[tuple[bytes, Sequence[Extent]]]:
    """Cut what is wanted into requests; each with the extents that it asks for, none of them empty."""
    wanted = [extent for extent in extents if extent.length]
    for begin in range(0, len(wanted), MAX_RUNS):
        part = wanted[begin : begin + MAX_RUNS]
        yield number(len(part)) + b"".join(_RUN.pack(run.offset, run.length) for run in part), part


def num_runs_of(words: bytes) -> int:
    """Return how many runs a request has. Raises TransportError beyond the limit."""
    num_runs = number_of(words)
    if not 0 < num_runs <= MAX_RUNS:
        raise TransportError(f"a request has 1 to {MAX_RUNS} runs, not {num_runs}")
    return num_runs


def runs_of(words: bytes, size: int) -> list[Extent]:
    """Return the runs of a request. Raises TransportError if one is empty, or not inside ``size`` bytes."""
    runs = [Extent(offset=offset, length=length) for offset, length in _RUN.iter_unpack(words)]
    if any(not run.length or run.end > size for run in runs):
        raise TransportError(f"a run is asked for that is not inside {size} bytes")
    return runs
