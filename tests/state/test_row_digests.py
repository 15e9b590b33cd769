from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from worldmove.state.row_digests import A, B, Bytes, row_digests
from worldmove.state.rows import Rows

MASK = 2**64 - 1


def _rows(pairs: list[tuple[int, int]]) -> Rows:
    return Rows(
        offsets=np.array([offset for offset, _ in pairs], dtype=np.int64),
        lengths=np.array([length for _, length in pairs], dtype=np.int64),
    )


def _mixed(z: int) -> int:
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def _by_hand(row: bytes) -> int:
    """The definition, one number at a time."""
    padded = row + bytes(-len(row) % 8)
    words = [int.from_bytes(padded[i : i + 8], "little") for i in range(0, len(padded), 8)]
    odd = [int.from_bytes(padded[i : i + 8], "little") for i in range(4, len(padded) - 4, 8)]
    a = sum(word * int(c) for word, c in zip(words, A, strict=False)) & MASK
    b = sum(word * int(c) for word, c in zip(odd, B, strict=False)) & MASK
    return _mixed((a + _mixed((b + len(row) * 0x9E3779B97F4A7C15) & MASK)) & MASK)


@settings(max_examples=25)
@given(st.data())
def test_a_digest_is_what_its_definition_says_wherever_the_row_lies(data: Any) -> None:
    memory: Bytes = np.frombuffer(data.draw(st.binary(min_size=600, max_size=600)), dtype=np.uint8)
    pairs: list[tuple[int, int]] = []
    at = data.draw(st.integers(0, 9))
    while len(pairs) < 40:
        length = data.draw(st.sampled_from([1, 3, 8, 16, 16, 16, 24, 33]))
        if at + length > len(memory):
            break
        pairs.append((at, length))
        at += length + data.draw(st.sampled_from([0, 0, 0, 0, 1, 8]))
    found = row_digests(memory, _rows(pairs))
    assert found.tolist() == [_by_hand(memory[begin : begin + length].tobytes()) for begin, length in pairs]


@pytest.mark.parametrize("length", [512, 3072, 4096])
def test_rows_side_by_side_and_rows_apart_have_the_same_digests(length: int) -> None:
    memory: Bytes = np.random.default_rng(0).integers(0, 256, 600 * length, dtype=np.uint8)
    together = row_digests(memory, _rows([(length * i, length) for i in range(600)]))
    apart = np.zeros((600, length + 24), dtype=np.uint8)
    apart[:, 5 : 5 + length] = memory.reshape(600, length)
    scattered = row_digests(apart.reshape(-1), _rows([((length + 24) * i + 5, length) for i in range(600)]))
    assert together.tolist() == scattered.tolist()
    assert together[7] == _by_hand(memory[7 * length : 8 * length].tobytes())


def _digest(row: Bytes) -> int:
    return int(row_digests(row, _rows([(0, len(row))]))[0])


def test_no_bit_and_no_two_bits_of_a_row_can_change_unseen() -> None:
    row: Bytes = np.random.default_rng(1).integers(0, 256, 24, dtype=np.uint8)
    first, second = np.triu_indices(8 * len(row))
    changed = np.tile(np.unpackbits(row), (len(first) + 1, 1))
    changed[np.arange(len(first)), first] ^= 1
    changed[np.flatnonzero(first != second), second[first != second]] ^= 1
    rows = np.packbits(changed, axis=1)
    found = row_digests(rows.reshape(-1), _rows([(24 * i, 24) for i in range(len(rows))]))
    assert len(set(found.tolist())) == len(rows)


def test_zeros_of_another_length_and_words_in_another_order_are_other_rows() -> None:
    zeros = [_digest(np.zeros(length, dtype=np.uint8)) for length in range(1, 100)]
    assert len(set(zeros)) == 99
    words = np.arange(8, dtype="<u8")
    assert _digest(words.view(np.uint8)) != _digest(words[::-1].copy().view(np.uint8))


def test_no_rows_have_no_digests() -> None:
    assert len(row_digests(np.zeros(9, dtype=np.uint8), _rows([]))) == 0
