"""Eight bytes for a row's content, wherever the row lies: so that a row is known again in another place.

A row is padded with zeros to whole words of 64 bits. It has two sums modulo 2^64: one of its words times ``a``, one of
its *odd words* times ``b``, which begin four bytes later and end four bytes earlier: the highest bit of a word is
nothing but a parity in a sum, and each of these is a middle bit of an odd word. Sums and length go through bijections.

The coefficients are published: nobody is kept from making two rows of one digest. It would gain nothing: what is
installed is proven under an attempt's secret nonce, and rows taken for each other end the attempt there. Rows that
differ by chance meet once in 2^64 pairs: 2 in 10^8 for two states of 650,000 rows.
"""

import hashlib
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from worldmove.state.rows import MAX_ROW_BYTES, Numbers, Rows
from worldmove.units import MIB

Digests = NDArray[np.uint64]
Bytes = NDArray[np.uint8]

WORD_BYTES = 8
HALF_BYTES = 4
_TILE_BYTES = MIB
_FEWEST = 8
"""Rows that lie side by side, below which they are rather collected with others of their length."""


def _words(name: bytes) -> Digests:
    stream = hashlib.shake_256(b"worldmove rows 1\0" + name).digest(MAX_ROW_BYTES)
    words: Digests = np.frombuffer(stream, dtype="<u8").astype(np.uint64) | np.uint64(1)
    words.flags.writeable = False
    return words


A = _words(b"a")
"""Of the words of a row, u64[512]; odd."""
B = _words(b"b")
"""Of its odd words."""


def row_digests(memory: Bytes, rows: Rows) -> Digests:
    """Return the digest of each row of an arena, u64[rows]. Lets nobody else write meanwhile, or it is of neither."""
    found = np.empty(len(rows), dtype=np.uint64)
    done = np.zeros(len(rows), dtype=bool)
    for first, last in side_by_side(rows):
        begin, length = int(rows.offsets[first]), int(rows.lengths[first])
        lines = memory[begin : begin + (last - first) * length].reshape(-1, length)
        done[first:last] = True
        for at, tile in _tiles(last - first, length):
            found[first + at : first + tile] = _digests(lines[at:tile], length)
    _collect(memory, rows, np.flatnonzero(~done), found)
    return found


def finished(a: Digests, b: Digests, lengths: Numbers) -> Digests:
    """Return digests from both sums and the lengths: what a device's kernel leaves to the host, or does itself."""
    return _mixed(a + _mixed(b + lengths.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)))


def side_by_side(rows: Rows) -> Iterator[tuple[int, int]]:
    """Yield runs of whole words whose rows have one length and no gap, as first row and first row after."""
    if not len(rows):
        return
    fits = (rows.offsets % WORD_BYTES == 0) & (rows.lengths % WORD_BYTES == 0)
    goes_on = (rows.offsets[1:] == rows.ends[:-1]) & (rows.lengths[1:] == rows.lengths[:-1]) & fits[1:] & fits[:-1]
    cuts = np.concatenate(([0], np.flatnonzero(~goes_on) + 1, [len(rows)]))
    long = np.flatnonzero(np.diff(cuts) >= _FEWEST)
    yield from zip(cuts[long].tolist(), cuts[long + 1].tolist(), strict=True)


def _collect(memory: Bytes, rows: Rows, left: Numbers, found: Digests) -> None:
    """Digest rows that lie anywhere: those of one length together, copied side by side and padded."""
    lengths = rows.lengths[left]
    for length in np.unique(lengths).tolist():
        mine = left[lengths == length]
        inside = np.arange(length, dtype=np.int64)
        for at, tile in _tiles(len(mine), length):
            some = mine[at:tile]
            lines = np.zeros((len(some), -(-length // WORD_BYTES) * WORD_BYTES), dtype=np.uint8)
            lines[:, :length] = memory[rows.offsets[some, None] + inside]
            found[some] = _digests(lines, length)


def _tiles(count: int, length: int) -> Iterator[tuple[int, int]]:
    step = max(1, _TILE_BYTES // length)
    for begin in range(0, count, step):
        yield begin, min(begin + step, count)


def _digests(lines: Bytes, length: int) -> Digests:
    """Digest rows of one length, given padded, uint8 [rows, whole words], in one piece of memory."""
    num_words = lines.shape[1] // WORD_BYTES
    a: Digests = np.einsum("ij,j->i", lines.view("<u8"), A[:num_words])
    # Copied to where words begin: over words at odd addresses numpy is slower than the copy.
    odd = np.ascontiguousarray(lines[:, HALF_BYTES : lines.shape[1] - HALF_BYTES])
    b = np.einsum("ij,j->i", odd.view("<u8"), B[: num_words - 1]) if num_words > 1 else np.zeros_like(a)
    return finished(a, b, np.full(len(lines), length, dtype=np.int64))


def _mixed(z: Digests) -> Digests:
    """Return the finaliser of splitmix64, a bijection."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))
