"""WMF1, the fingerprint of device memory: its definition, and a twin of the device kernels that reads host memory.

Bytes are cut into rows of 4 KiB (the last one padded with zeros). A row has two sums of its 1,024 words, each modulo
2^64: one of the words times the table's ``a``, one of the words turned by 16 bits times ``b``. Sums and row number go
through a bijection, and a digest is the sum of its rows, finalised with the number of bytes. ``docs/state.md`` has the
formulas and what they guarantee.
"""

import hashlib
import struct
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

NAME = "wmf1"
"""What stands before the colon of a digest."""

KEY_BYTES = 32
ROW_WORDS = 1024
ROW_BYTES = 4 * ROW_WORDS
GROUP_ROWS = 256
"""How many row numbers each group has for itself, used or not."""

STATE_KEY = hashlib.sha256(b"worldmove wmf1 state 1\0").digest()
"""The published key of every state digest."""

Words = NDArray[np.uint64]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_LIMB_BITS = 22
_LIMBS = 3
_TILE_ROWS = 32
"""Small enough that no BLAS starts threads for it."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Table:
    """What a key stands for: the coefficients of both sums, u64[1024], and three numbers for mixing."""

    key: bytes
    a: Words
    b: Words
    k: Words
    _limbs: NDArray[np.float64] = field(repr=False)

    @staticmethod
    def of(key: bytes) -> "Table":
        """Return the table of a key of 32 bytes; the last few stay ready."""
        return _table(bytes(key))


def proof_key(nonce: bytes, layout_digest: bytes) -> bytes:
    """Return the key of one attempt's proof."""
    return hashlib.sha256(b"worldmove wmf1 proof 1\0" + _sized(nonce) + _sized(layout_digest)).digest()


def group_digest(table: Table, data: memoryview | bytes, index: int) -> bytes:
    """Return the 16 bytes of group ``index`` of used bytes ``data``: both sums, least significant byte first."""
    return _digest(table, data, index * GROUP_ROWS)


def bytes_digest(table: Table, data: memoryview | bytes) -> bytes:
    """Return the 16 bytes of a leaf: the same function over its bytes in row-major order, with rows from 0."""
    return _digest(table, data, 0)


def _digest(table: Table, data: memoryview | bytes, first_row: int) -> bytes:
    view = memoryview(data).cast("B")
    total = np.zeros(2, dtype=np.uint64)
    step = _TILE_ROWS * ROW_BYTES
    for begin in range(0, len(view), step):
        sums = _row_sums(table, _padded(view[begin : begin + step]))
        total += row_terms(table, sums, first_row + begin // ROW_BYTES).sum(axis=0)
    found = finalised(table, total[None], np.array([len(view)], dtype=np.uint64))
    return bytes(found.astype("<u8").tobytes())


def _padded(data: memoryview) -> NDArray[np.uint16]:
    """Return whole rows as half-words; not copied where nothing is missing."""
    missing = -len(data) % ROW_BYTES
    source = bytes(data) + bytes(missing) if missing else data
    return np.frombuffer(source, dtype="<u2").reshape(-1, 2 * ROW_WORDS)


def _row_sums(table: Table, halves: NDArray[np.uint16]) -> Words:
    """Return x and y of each row, [rows, 2].

    A half-word is less than 2^16, a limb of a coefficient less than 2^22, and a row has 2^11 products: every partial
    sum is an integer below 2^49, so a matrix product of doubles is exact in whatever order it adds.
    """
    limbs = (halves.astype(np.float64) @ table._limbs).astype(np.uint64).reshape(-1, 2, _LIMBS)
    shifts = np.arange(_LIMBS, dtype=np.uint64) * np.uint64(_LIMB_BITS)
    sums: Words = (limbs << shifts).sum(axis=2, dtype=np.uint64)
    return sums


def row_terms(table: Table, sums: Words, first_row: int) -> Words:
    """Return what each row adds to a digest, [rows, 2], from its sums; ``first_row`` is the first one's number."""
    numbers = np.arange(first_row + 1, first_row + 1 + len(sums), dtype=np.uint64)
    y = _mixed(sums[:, 1] + numbers * _GOLDEN + table.k[0])
    x = _mixed(sums[:, 0] + y + table.k[1])
    return np.stack((x, y + _mixed(x + table.k[2])), axis=1)


def finalised(table: Table, totals: Words, lengths: Words) -> Words:
    """Return digests, [n, 2], from the sums of their rows' terms and from how many bytes each has."""
    return _mixed(totals + _mixed(lengths + table.k[0])[:, None])


def _mixed(z: Words) -> Words:
    """Return the finaliser of splitmix64, a bijection."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@lru_cache(maxsize=16)
def _table(key: bytes) -> Table:
    if len(key) != KEY_BYTES:
        raise ValueError(f"a key has {KEY_BYTES} bytes, not {len(key)}")
    a, b = _coefficients(key, 0), _coefficients(key, 1)
    k = _words(key, 2, 0, 3)
    for part in (a, b, k):
        part.flags.writeable = False
    return Table(key=key, a=a, b=b, k=k, _limbs=np.concatenate((_limbs_of(a), _limbs_of(b, turned=True)), axis=1))


def _coefficients(key: bytes, lane: int) -> Words:
    """Draw 1,024 numbers that are 1 modulo 4, again until all differ modulo 2^33."""
    draw = 0
    while True:
        found = _words(key, lane, draw, ROW_WORDS) & ~np.uint64(3) | np.uint64(1)
        low = np.sort(found & np.uint64((1 << 33) - 1))
        if (low[1:] != low[:-1]).all():
            return found
        draw += 1


def _words(key: bytes, lane: int, draw: int, count: int) -> Words:
    stream = hashlib.shake_256(key + struct.pack("<BI", lane, draw)).digest(8 * count)
    return np.frombuffer(stream, dtype="<u8").astype(np.uint64)


def _limbs_of(coefficients: Words, *, turned: bool = False) -> NDArray[np.float64]:
    """Return [half-words, limbs]: what a low and a high half-word are multiplied with, in pieces of 22 bits.

    A word turned by 16 bits is the same word with its halves exchanged.
    """
    halves = [coefficients, coefficients << np.uint64(16)]
    whole = np.stack(halves[::-1] if turned else halves, axis=1).reshape(-1, 1)
    shifts = np.arange(_LIMBS, dtype=np.uint64) * np.uint64(_LIMB_BITS)
    limbs: NDArray[np.float64] = (whole >> shifts & np.uint64((1 << _LIMB_BITS) - 1)).astype(np.float64)
    return limbs


def _sized(data: bytes) -> bytes:
    return struct.pack("<Q", len(data)) + data
