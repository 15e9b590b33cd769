"""Manifests that nobody honest wrote, made by hand: each is refused for the one thing that is wrong with it."""

import tracemalloc
from typing import Any

import msgspec
import pytest

from worldmove.errors import ManifestError
from worldmove.state import Extent, Manifest
from worldmove.state.frame import frame
from worldmove.state.manifest import MANIFEST_MAGIC, MAX_GENERATORS_BYTES, VERSION
from worldmove.state.structure import MAX_ALL_CHARACTERS

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


def test_a_small_manifest_whose_paths_are_long_takes_little_memory_to_be_refused() -> None:
    long = ["str", b"k" * 490]
    num = 131_000
    data = _encode(["dict", [[*long, ["dict", [[*long, ["list", [None] * num]]]]]]], [["scalar", "none", b""]] * num)
    assert len(data) < 3 << 20
    tracemalloc.start()
    try:
        with pytest.raises(ManifestError, match="characters together"):
            Manifest.from_bytes(data)
        assert tracemalloc.get_traced_memory()[1] < 4 * MAX_ALL_CHARACTERS
    finally:
        tracemalloc.stop()


def test_what_is_like_a_known_manifest_has_no_larger_generators_than_any_other() -> None:
    def of(state: bytes) -> bytes:
        return _encode(["list", [None]], [["generator", 0]], [["torch", state]])

    known = Manifest.from_bytes(of(b"1"))
    assert Manifest.from_bytes(of(b"2"), known).generators[0].state == b"2"
    with pytest.raises(ManifestError, match="its generators have"):
        Manifest.from_bytes(of(bytes(MAX_GENERATORS_BYTES + 1)), known)
