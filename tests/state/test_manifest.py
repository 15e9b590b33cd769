import random
import struct
from typing import Any

import msgspec
import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.state.trees import TYPES, Cache, Pair, Season, trees
from worldmove.errors import ManifestError
from worldmove.state import Arena, Extent, Layout, Manifest, adopt, capture, materialise
from worldmove.state.frame import frame, peek
from worldmove.state.manifest import MANIFEST_MAGIC, MAX_MANIFEST_BYTES, VERSION


def _tree() -> dict[Any, Any]:
    base = torch.arange(60, dtype=torch.float32).view(6, 10)
    return {
        "caches": [Cache(k=base[1:3], v=base[2:, 1]), Cache(k=torch.zeros(3, dtype=torch.complex64).conj(), v=None)],
        "odd key": Pair(Season.SUMMER, np.arange(6)[::-2]),
        3: (True, 7, -2.5, 1j, "text", b"bytes", np.float32(3)),
        "rng": random.Random(1),
        "numpy": np.random.default_rng(4),
    }


MANIFEST = capture(_tree(), TYPES).manifest
ENCODED = MANIFEST.to_bytes()


def _decode_or_none(data: bytes) -> Manifest | None:
    try:
        return Manifest.from_bytes(data)
    except ManifestError:
        return None


def test_a_manifest_is_read_as_it_was_written() -> None:
    again = Manifest.from_bytes(ENCODED)
    assert again == MANIFEST
    assert (again.paths(), again.storages, again.leaves) == (MANIFEST.paths(), MANIFEST.storages, MANIFEST.leaves)


def test_every_byte_changed_is_refused_or_means_another_state() -> None:
    """Random states' generators are long; of them every 16th byte is tried, of all else every one, with 4 changes."""
    for index in range(len(ENCODED)):
        for change in (1, 0x80, 0xFF, 0x55) if index < 900 or index % 16 == 0 else ():
            data = ENCODED[:index] + bytes([ENCODED[index] ^ change]) + ENCODED[index + 1 :]
            read = _decode_or_none(data)
            assert read is None or (read != MANIFEST and read.to_bytes() == data), (index, change)


def test_a_manifest_cut_anywhere_is_refused() -> None:
    for end in range(0, len(ENCODED), 7):
        assert _decode_or_none(ENCODED[:end]) is None, end


def test_a_manifest_with_bytes_behind_it_is_refused() -> None:
    assert _decode_or_none(ENCODED + b"\0") is None
    body = ENCODED[14:] + b"\xc0"
    assert _decode_or_none(frame(MANIFEST_MAGIC, VERSION, body)) is None


def test_magic_and_version_can_be_read_though_the_rest_cannot() -> None:
    assert peek(ENCODED[:14]) == (MANIFEST_MAGIC, VERSION)
    other = frame(MANIFEST_MAGIC, VERSION + 1, b"not msgpack")
    assert peek(other)[1] == VERSION + 1
    with pytest.raises(ManifestError, match=f"version {VERSION + 1}"):
        Manifest.from_bytes(other)
    with pytest.raises(ManifestError, match="begins with"):
        Manifest.from_bytes(b"WMLY" + ENCODED[4:])


def test_a_length_beyond_the_limit_is_refused_before_it_is_read() -> None:
    with pytest.raises(ManifestError, match="more than"):
        Manifest.from_bytes(struct.pack("<4sHQ", MANIFEST_MAGIC, VERSION, MAX_MANIFEST_BYTES + 1))


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.binary(max_size=60))
def test_noise_is_refused(noise: bytes) -> None:
    for data in (noise, frame(MANIFEST_MAGIC, VERSION, noise)):
        assert _decode_or_none(data) is None


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(trees(), st.data())
def test_a_damaged_manifest_never_breaks_the_reader(tree: Any, data: st.DataObject) -> None:
    encoded = capture(tree, TYPES).manifest.to_bytes()
    for _ in range(20):
        index = data.draw(st.integers(0, len(encoded) - 1))
        changed = encoded[:index] + bytes([data.draw(st.integers(0, 255))]) + encoded[index + 1 :]
        read = _decode_or_none(changed)
        assert read is None or read.to_bytes() == changed


SCALAR = ["scalar", "int", b"\1"]
ROW = ["tensor", "float32", [4], [1], 0, 0, 0, 16, False, False]


def _tensor(**changes: Any) -> list[Any]:
    names = ("leaf", "dtype", "shape", "stride", "offset", "storage", "window_offset", "window_length", "conj", "neg")
    return [changes.get(name, value) for name, value in zip(names, ROW, strict=True)]


def _array(**changes: Any) -> list[Any]:
    row = {"leaf": "array", "dtype": "<f", "shape": [4], "strides": [4], "offset": 0, "storage": 0, "writeable": True}
    return list((row | changes).values())


def _encode(structure: Any, leaves: list[Any], generators: list[Any] | None = None) -> bytes:
    return frame(MANIFEST_MAGIC, VERSION, msgspec.msgpack.encode([structure, leaves, generators or []]))


def _list(*leaves: Any) -> bytes:
    return _encode(["list", [None] * len(leaves)], list(leaves))


def test_the_hand_made_manifests_below_are_refused_for_what_was_done_to_them() -> None:
    assert Manifest.from_bytes(_list(SCALAR, _tensor())).storages[0].used == (Extent(offset=0, length=16),)
    assert Manifest.from_bytes(_list(_array())).num_bytes == 16


NESTED: Any = None
for _ in range(100):
    NESTED = ["list", [NESTED]]
VERY_DEEP = b"\x92\xa4list\x91" * 100_000


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (_list(_tensor(offset=1)), "ends at byte 20"),
        (_list(_tensor(stride=[2])), "ends at byte 28"),
        (_list(_tensor(offset=-1)), "out of range"),
        (_list(_tensor(shape=[-1])), "out of range"),
        (_list(_tensor(shape=[1 << 62], stride=[1 << 62])), "out of range"),
        (_list(_tensor(shape=[2, 2])), "strides"),
        (_list(_tensor(shape=[1] * 65, stride=[1] * 65)), "65 dimensions"),
        (_list(_tensor(window_offset=4)), "gap at byte 0"),
        (_list(_tensor(), _tensor(window_offset=16)), "gap at byte 16"),
        (_list(_tensor(), _tensor(window_offset=32)), "gap at byte 16"),
        (_list(_tensor(storage=1)), "storage is 1"),
        (_list(_tensor(storage=-1)), "from 0"),
        (_list(_tensor(storage=None)), "if, and only if"),
        (_list(_tensor(shape=[0], window_length=0)), "if, and only if"),
        (_list(_tensor(window_length=1 << 47)), "more than"),
        (_list(_tensor(conj=True)), "conjugate"),
        (_list(_tensor(dtype="float33")), "dtype"),
        (_list(_tensor(dtype="qint8")), "dtype"),
        (_list(_tensor(shape=[1 << 12, 1 << 12], stride=[1 << 20, 2], window_length=1 << 40)), "too many pieces"),
        (_list(_tensor(shape=[1 << 17], stride=[2], window_length=1 << 20)), "131072 pieces"),
        (_list([*_tensor(), 0]), "decode"),
        (_list(_tensor()[:-1]), "decode"),
        (_list(_array(storage=None)), "if, and only if"),
        (_list(_array(shape=[0])), "if, and only if"),
        (_list(_array(offset=4)), "gap at byte 0"),
        (_list(_array(strides=[-4])), "before its storage"),
        (_list(_array(offset=1 << 60)), "out of range"),
        (_list(_array(dtype="O")), "dtype"),
        (_list(_array(dtype="<f4,<f4")), "dtype"),
        (_list(_array(dtype="|V999999999999")), "dtype"),
        (_list(_array(dtype="<S3")), "dtype"),
        (_list(_array(dtype="<f4")), "dtype"),
        (_list(_array(dtype="<b")), "dtype"),
        (_list(_array(dtype="|f")), "dtype"),
        (_list(["number", "<f", b"123"]), "numpy scalar"),
        (_list(["number", "|S3", b"123"]), "numpy scalar"),
        (_list(["scalar", "int", b"\1\0"]), "canonical"),
        (_list(["scalar", "str", b"x" * (1 << 21)]), "more than"),
        (_list(["mystery"]), "decode"),
        (_list(["generator", 0]), "0 generators"),
        (_encode(None, [["generator", 1]], [["random", b""], ["random", b""]]), "after 0"),
        (_encode(None, [["generator", -1]], []), "after 0"),
        (_encode(None, [SCALAR], [["random", b""]]), "1 generators"),
        (_encode(["list", [None]], []), "places for 1"),
        (_encode(["list", []], [SCALAR]), "places for 0"),
        (_encode(["set", [None]], [SCALAR]), "decode"),
        (_encode(["dict", [["str", b"a", None], ["str", b"a", None]]], [SCALAR] * 2), "twice"),
        (_encode(["dict", [["int", b"\1", None], ["bool", b"\1", None]]], [SCALAR] * 2), "twice"),
        (_encode(["dict", [["float", b"\0" * 8, None]]], [SCALAR]), "key"),
        (_encode(["dict", [["int", b"\7" * 3000, None]]], [SCALAR]), "key"),
        (_encode(["record", "R", [["a", None], ["a", None]]], [SCALAR] * 2), "fields"),
        (_encode(["record", "R", [["a.b", None]]], [SCALAR]), "fields"),
        (_encode(NESTED, [SCALAR]), "deeper"),
        (frame(MANIFEST_MAGIC, VERSION, b"\x93" + VERY_DEEP), "decode"),
        (_encode(["list", [None] * (1 << 17)], []), "more than"),
        (_encode(["list", [["list", []]] * (1 << 17)], []), "more than"),
        (frame(MANIFEST_MAGIC, VERSION, b"\x93\xc0\x91\x93\xa6scalar\xa3int\xc5\x00\x01\x01\x90"), "canonical"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_hostile_manifest_is_refused(data: bytes, why: str) -> None:
    with pytest.raises(ManifestError, match=why):
        Manifest.from_bytes(data)


def test_a_difference_names_the_path_and_both_sides() -> None:
    changed = _tree()
    changed["caches"][0].v = torch.zeros(4)
    changed[3] = (True, 8, -2.5, 1j, "text", b"bytes", np.float32(3), "more")
    changed["rng"].random()
    del changed["odd key"]
    texts = MANIFEST.difference(capture(changed, TYPES).manifest)
    assert [text.split(" ")[0] for text in texts] == [
        "['odd",
        "['odd",
        "[3][7]",
        "caches[0].v",
        "caches[1].k",
        "[3][1]",
        "rng",
    ]
    assert "[3][1] is 7 here and 8 there" in texts
    assert "rng is a generator in another state" in texts


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(trees(), trees())
def test_manifests_differ_if_and_only_if_a_sentence_says_so(one: Any, other: Any) -> None:
    a, b = (capture(tree, TYPES).manifest for tree in (one, other))
    assert (a == b) == (a.to_bytes() == b.to_bytes()) == (a.difference(b) == ())
    assert a.difference(a) == ()


def test_the_order_of_keys_alone_is_a_difference() -> None:
    one, other = capture({"a": 1, "b": 2}).manifest, capture({"b": 2, "a": 1}).manifest
    assert "order of their keys" in one.difference(other)[0]


def test_a_giant_integer_can_be_spoken_of() -> None:
    one, other = capture({"n": 10**5000}).manifest, capture({"n": 1}).manifest
    assert one.difference(other) == ("n is int of 2077 bytes here and 1 there",)


def test_a_layout_says_what_is_known_before_the_freeze_and_nothing_of_values() -> None:
    layout = Layout.of(MANIFEST)
    later = _tree()
    later["rng"].random()
    later[3] = (False, 70, -3.5, 2j, "other", b"b", np.float32(4))
    assert Layout.of(capture(later, TYPES).manifest) == layout
    assert Layout.from_bytes(layout.to_bytes()) == layout
    assert [leaf.kind for leaf in layout.leaves[:5]] == [
        "tensor float32",
        "tensor float32",
        "tensor complex64",
        "none",
        "enum Season",
    ]


def test_the_layouts_digest_changes_with_each_of_its_parts() -> None:
    digests = {
        Layout.of(capture(tree).manifest, arena_bytes=size).digest
        for tree in (
            {"a": torch.zeros(2)},
            {"b": torch.zeros(2)},
            {"a": torch.zeros(1, 2)},
            {"a": torch.zeros(2).int()},
        )
        for size in (1 << 20, 1 << 21)
    }
    assert len(digests) == 8


def test_the_arena_that_a_layout_asks_for_holds_the_state_at_any_alignment() -> None:
    for shift in range(0, 256, 36):
        tree = [torch.zeros(400, dtype=torch.uint8)[0:] for _ in range(5)]
        views = [torch.from_numpy(np.zeros(1000, dtype=np.uint8)[shift + i : shift + i + 300]) for i in range(5)]
        state = capture([*tree, *views])
        arena = Arena(Layout.of(state.manifest).arena_bytes, "layout")
        assert len(materialise(state.manifest, adopt(state, arena), arena)) == 10


@pytest.mark.parametrize("change", [lambda d: d[:-1], lambda d: d + b"\0", lambda d: b"WMMF" + d[4:], lambda d: d[:20]])
def test_bytes_that_are_no_layout_are_refused(change: Any) -> None:
    with pytest.raises(ManifestError):
        Layout.from_bytes(change(Layout.of(MANIFEST).to_bytes()))
