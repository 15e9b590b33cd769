import hashlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.state.wmf1_reference import reference_digest
from worldmove.state.wmf1 import (
    GROUP_ROWS,
    KEY_BYTES,
    ROW_BYTES,
    ROW_WORDS,
    STATE_KEY,
    Table,
    bytes_digest,
    group_digest,
    proof_key,
    row_terms,
)

TABLE = Table.of(bytes(range(32)))
NOISE = np.random.default_rng(11)


def _noise(length: int) -> bytes:
    return NOISE.integers(0, 256, length, dtype=np.uint8).tobytes()


def _flipped(data: bytes, *bits: int) -> bytes:
    changed = bytearray(data)
    for bit in bits:
        changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def _sum_deltas(table: Table, bits: np.ndarray, row: bytes) -> tuple[np.ndarray, np.ndarray]:
    """By how much flipping one bit changes x and y of its row, modulo 2^64."""
    words = np.frombuffer(row, dtype="<u4").astype(np.uint64)[bits // 32]
    place = (bits % 32).astype(np.uint64)
    sign = np.where(words >> place & np.uint64(1), np.uint64(2**64 - 1), np.uint64(1))
    turned = place + np.uint64(16) & np.uint64(31)
    return sign * table.a[bits // 32] << place, sign * table.b[bits // 32] << turned


@pytest.mark.parametrize("length", [0, 1, 3, 4, 4095, 4096, 4097, 5 * 4096, 33 * 4096 + 5])
@pytest.mark.parametrize("fill", ["noise", "ones", "zeros"])
def test_the_twin_is_the_definition(length: int, fill: str) -> None:
    data = {"noise": _noise(length), "ones": b"\xff" * length, "zeros": bytes(length)}[fill]
    assert bytes_digest(TABLE, data) == reference_digest(TABLE, data, 0)
    assert group_digest(TABLE, data, 7) == reference_digest(TABLE, data, 7 * GROUP_ROWS)


def test_the_values_are_those_on_file() -> None:
    assert STATE_KEY.hex() == "d3882f9aa593c06cbaab18c8f35d0245c6b70f18c3ee66b0da6c0bf816af72a4"
    assert (
        hashlib.sha256(TABLE.a.tobytes() + TABLE.b.tobytes() + TABLE.k.tobytes()).hexdigest()
        == "7ded1579771648b154e88f8eb51fd8f9efda91d9ea405f6181480262736e12b2"
    )
    data = hashlib.shake_256(b"wmf1").digest(10_000)
    assert bytes_digest(TABLE, data).hex() == "318187eb1e351e096166ffe761dc239c"
    assert group_digest(TABLE, data, 3).hex() == "178e20bf9b78cb590f2a612eea26d568"
    assert bytes_digest(TABLE, b"").hex() == "335df0a3a12b6695335df0a3a12b6695"
    assert proof_key(b"n" * 32, b"l" * 32).hex() == "8229390b19d25e4c5aeb002637dbebfcbbc5fd3a97febeec942f27b53ce6d121"


def test_coefficients_are_one_modulo_four_and_differ_modulo_two_to_the_33() -> None:
    for number in range(8):
        table = Table.of(hashlib.sha256(bytes([number])).digest())
        for lane in (table.a, table.b):
            assert set((lane & np.uint64(3)).tolist()) == {1}
            assert len(np.unique(lane & np.uint64(2**33 - 1))) == ROW_WORDS
        assert not np.array_equal(table.a, table.b)


def test_a_table_is_drawn_again_until_its_coefficients_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = []

    def first_two_alike(key: bytes, lane: int, draw: int, count: int) -> np.ndarray:
        drawn.append((lane, draw))
        found = np.arange(count, dtype=np.uint64) * np.uint64(4)
        if draw < 2:
            found[0] = found[1] ^ np.uint64(1 << 40)
        return found

    monkeypatch.setattr("worldmove.state.wmf1._words", first_two_alike)
    Table.of(b"a key that no other test draws..")
    assert drawn == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2), (2, 0)]


def test_a_key_of_another_length_is_refused() -> None:
    with pytest.raises(ValueError, match="32 bytes, not 31"):
        Table.of(bytes(KEY_BYTES - 1))


def test_a_table_cannot_be_written_to() -> None:
    with pytest.raises(ValueError, match="read-only"):
        TABLE.a[0] = 1


def test_every_flip_of_one_bit_of_a_row_changes_both_sums_of_it() -> None:
    row = _noise(ROW_BYTES)
    x, y = _sum_deltas(TABLE, np.arange(8 * ROW_BYTES), row)
    assert x.all()
    assert y.all()


def test_flipped_bits_change_the_sums_by_what_the_other_tests_say() -> None:
    row = _noise(ROW_BYTES)
    before = reference_digest(TABLE, row, 0)
    for bits in ([0], [31], [32 * 1023 + 31], [17, 32 * 512 + 3]):
        x, y = _sum_deltas(TABLE, np.array(bits), row)
        sums = _sums(row) + np.array([x.sum(), y.sum()], dtype=np.uint64)
        assert (sums == _sums(_flipped(row, *bits))).all()
        assert bytes_digest(TABLE, _flipped(row, *bits)) != before


def _sums(row: bytes) -> np.ndarray:
    words = np.frombuffer(row, dtype="<u4")
    turned = words << np.uint32(16) | words >> np.uint32(16)
    x = (words.astype(np.uint64) * TABLE.a).sum(dtype=np.uint64)
    return np.array([x, (turned.astype(np.uint64) * TABLE.b).sum(dtype=np.uint64)], dtype=np.uint64)


def test_every_pair_of_sign_bits_and_200000_random_pairs_change_the_sums() -> None:
    row = _noise(ROW_BYTES)
    tops = np.arange(31, 8 * ROW_BYTES, 32)
    first, second = np.triu_indices(ROW_WORDS, 1)
    some = NOISE.integers(0, 8 * ROW_BYTES, (200_000, 2))
    some = some[some[:, 0] != some[:, 1]]
    for one, other in ((tops[first], tops[second]), (some[:, 0], some[:, 1])):
        x, y = (a + b for a, b in zip(_sum_deltas(TABLE, one, row), _sum_deltas(TABLE, other, row), strict=True))
        assert x.all()
        assert y.all()


def test_top_bits_at_the_corners_of_a_power_of_two_cube_are_seen() -> None:
    """What cancels in a polynomial modulo 2^64 for every odd base."""
    data = bytearray(_noise(64 * ROW_BYTES))
    corners = [i * 2**11 + j * 2**12 + k * 2**13 for i in (0, 1) for j in (0, 1) for k in (0, 1)]
    for corner in corners:
        data[4 * corner + 3] = (data[4 * corner + 3] & 0x7F) | (corner.bit_count() % 2 << 7)
    changed = _flipped(bytes(data), *(32 * corner + 31 for corner in corners))
    assert bytes_digest(TABLE, changed) != bytes_digest(TABLE, bytes(data))


def test_rows_that_changed_places_are_seen() -> None:
    first, second, rest = _noise(ROW_BYTES), _noise(ROW_BYTES), _noise(3 * ROW_BYTES)
    assert group_digest(TABLE, first + second + rest, 0) != group_digest(TABLE, second + first + rest, 0)
    assert group_digest(TABLE, first + rest + second, 0) != group_digest(TABLE, second + rest + first, 0)


def test_the_same_bytes_in_another_group_differ() -> None:
    data = _noise(2 * ROW_BYTES)
    assert len({group_digest(TABLE, data, index) for index in range(50)}) == 50


def test_a_tail_of_zeros_that_was_dropped_or_added_is_seen() -> None:
    data = _noise(5000) + bytes(1000)
    assert len({bytes_digest(TABLE, data[:length]) for length in range(5000, 6001, 5)}) == 201
    assert len({bytes_digest(TABLE, bytes(length)) for length in range(0, 9000, 9)}) == 1000


def test_another_key_gives_another_digest() -> None:
    data = _noise(5000)
    keys = [proof_key(nonce, layout) for nonce in (b"a", b"ab", b"b") for layout in (b"c", b"bc", b"d")]
    assert len({bytes_digest(Table.of(key), data) for key in (*keys, STATE_KEY)}) == len(keys) + 1


def test_a_row_term_is_one_to_one_in_the_sums() -> None:
    sums = NOISE.integers(0, 2**64, (1000, 2), dtype=np.uint64)
    sums[1:500, 0] = sums[0, 0]
    sums[500:, 1] = sums[0, 1]
    terms = np.concatenate([row_terms(TABLE, pair[None], 4) for pair in sums])
    assert len(np.unique(terms, axis=0)) == len(np.unique(sums, axis=0))


def test_what_the_bytes_are_held_in_does_not_matter() -> None:
    data = _noise(2 * ROW_BYTES + 7)
    want = bytes_digest(TABLE, data)
    padded = np.frombuffer(b"\0\0\0" + data, dtype=np.uint8)[3:]
    assert bytes_digest(TABLE, memoryview(bytearray(data))) == want
    assert bytes_digest(TABLE, memoryview(data)) == want
    assert bytes_digest(TABLE, padded.data) == want


@settings(max_examples=40)
@given(data=st.binary(max_size=3 * ROW_BYTES), index=st.integers(0, 1 << 30), key=st.binary(min_size=32, max_size=32))
def test_twin_and_definition_agree_on_anything(data: bytes, index: int, key: bytes) -> None:
    table = Table.of(key)
    assert group_digest(table, data, index) == reference_digest(table, data, index * GROUP_ROWS)


@settings(max_examples=100)
@given(data=st.data(), length=st.integers(1, 3 * ROW_BYTES))
def test_any_damage_is_seen(data: st.DataObject, length: int) -> None:
    before = _noise(length)
    begin = data.draw(st.integers(0, length - 1))
    damage = data.draw(st.binary(min_size=1, max_size=length - begin))
    after = before[:begin] + damage + before[begin + len(damage) :]
    assert (bytes_digest(TABLE, after) == bytes_digest(TABLE, before)) == (after == before)
