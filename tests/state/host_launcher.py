"""The device programs in numpy, over host memory: word for word what ``programs.cu`` does with its tables.

It is stricter than a device: an address that is not aligned, a share without bytes or a group that gets too many rows
is an error here.
"""

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from worldmove.state.row_digests import A, B, row_digests
from worldmove.state.rows import Rows
from worldmove.state.wmf1 import ROW_BYTES, Table, finalised, row_terms


class HostCall:
    """One program with its arguments."""

    def __init__(self, program: str, num_programs: int, arguments: Sequence[int]) -> None:
        assert program in {"fingerprint", "fingerprint_and_copy", "copy_pieces", "digest_rows"}
        self._program = program
        self._num_programs = num_programs
        self._arguments = arguments

    def start(self, stream: int) -> None:
        """Run it."""
        assert stream == 0
        if self._program == "copy_pieces":
            _copy(self._num_programs, self._arguments)
        elif self._program == "digest_rows":
            _digest_rows(self._arguments)
        else:
            _fingerprint(self._num_programs, self._arguments, copying=self._program == "fingerprint_and_copy")


class HostLauncher:
    """A device of two processors."""

    num_processors = 2

    def call(self, program: str, *, blocks: int, threads: int, shared_bytes: int, arguments: Sequence[int]) -> HostCall:
        """Prepare a program."""
        assert shared_bytes % ROW_BYTES == 0
        return HostCall(program, blocks if program == "copy_pieces" else blocks * threads // 32, arguments)


def _at(address: int, count: int, kind: Any = ctypes.c_int64) -> np.ndarray:
    return np.frombuffer((kind * count).from_address(address), dtype=np.dtype(kind)) if count else np.empty(0, np.uint8)


def _shares(num_programs: int, shares: int, bounds: int, width: int) -> np.ndarray:
    limits = _at(bounds, num_programs + 1)
    assert limits[0] == 0
    assert (np.diff(limits) >= 0).all()
    return _at(shares, width * int(limits[-1])).reshape(-1, width) if limits[-1] else np.empty((0, width), np.int64)


def _fingerprint(num_programs: int, arguments: Sequence[int], *, copying: bool) -> None:
    shares, bounds, table, sums, digests = arguments
    numbers = _at(table, 2051, ctypes.c_uint64)
    coefficients = Table(key=b"", a=numbers[:1024], b=numbers[1024:2048], k=numbers[2048:], _limbs=np.empty(0))
    for line in _shares(num_programs, shares, bounds, 8).tolist():
        source, target, group, number, num_bytes, rows, length, _ = line
        assert num_bytes > 0
        assert source % 16 == 0
        data = _at(source, num_bytes, ctypes.c_uint8)
        if copying:
            assert target % 16 == 0
            _at(target, num_bytes, ctypes.c_uint8)[:] = data
        terms = row_terms(coefficients, row_sums(coefficients, data.tobytes()), number)
        total = _at(sums + 24 * group, 3, ctypes.c_uint64)
        total[:2] += terms.sum(axis=0)
        total[2] += len(terms)
        assert total[2] <= rows
        if total[2] == rows:
            found = finalised(coefficients, total[None, :2], np.array([length], dtype=np.uint64))
            _at(digests + 16 * group, 2, ctypes.c_uint64)[:] = found[0]
            total[:] = 0


def row_sums(table: Table, data: bytes) -> np.ndarray:
    """x and y of each row, by the definition."""
    words = np.frombuffer(data + bytes(-len(data) % ROW_BYTES), dtype="<u4").reshape(-1, 1024)
    turned = words << np.uint32(16) | words >> np.uint32(16)
    lanes = [
        (part.astype(np.uint64) * by).sum(axis=1, dtype=np.uint64) for part, by in ((words, table.a), (turned, table.b))
    ]
    return np.stack(lanes, axis=1)


def _copy(num_programs: int, arguments: Sequence[int]) -> None:
    shares, bounds = arguments
    for line in _shares(num_programs, shares, bounds, 8).tolist():
        source, target, count, unit, inside, width, source_step, target_step = line
        assert count > 0
        assert 0 <= inside < width
        if inside + count > width:
            assert (source_step | target_step) % unit == 0
        for number in range(inside, inside + count):
            row, column = divmod(number, width)
            begin, to = source + row * source_step + column * unit, target + row * target_step + column * unit
            assert begin % unit == 0
            assert to % unit == 0
            if inside + count <= width:  # one run: at once
                _at(to, count * unit, ctypes.c_uint8)[:] = _at(begin, count * unit, ctypes.c_uint8)
                break
            _at(to, unit, ctypes.c_uint8)[:] = _at(begin, unit, ctypes.c_uint8)


def _digest_rows(arguments: Sequence[int]) -> None:
    lines, firsts, factors, digests, num_lines, _ = arguments
    shares = _at(firsts, num_lines + 1)
    table = _at(lines, 8 * num_lines).reshape(-1, 8)
    words = _at(factors, 1024, ctypes.c_uint64)
    assert (words == np.concatenate((A, B))).all()
    for (address, length, count, step, first, per_share, _, _), share in zip(
        table.tolist(), np.diff(shares).tolist(), strict=True
    ):
        assert share == -(-count // per_share)
        for row in range(count):
            data = _at(address + row * step, length, ctypes.c_uint8)
            rows = Rows(offsets=np.zeros(1, dtype=np.int64), lengths=np.array([length]))
            _at(digests + 8 * (first + row), 1, ctypes.c_uint64)[:] = row_digests(data, rows)
