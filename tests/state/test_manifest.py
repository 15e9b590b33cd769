import struct
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.state.trees import TYPES, state_of_every_kind, trees
from worldmove.errors import ManifestError
from worldmove.state import Manifest, capture
from worldmove.state.frame import frame, peek
from worldmove.state.manifest import MANIFEST_MAGIC, MAX_MANIFEST_BYTES, VERSION

MANIFEST = capture(state_of_every_kind(), TYPES).manifest
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
    other = frame(MANIFEST_MAGIC, VERSION + 2, b"not msgpack")
    assert peek(other)[1] == VERSION + 2
    with pytest.raises(ManifestError, match=f"version {VERSION + 2}"):
        Manifest.from_bytes(other)
    with pytest.raises(ManifestError, match="begins with"):
        Manifest.from_bytes(b"WMLY" + ENCODED[4:])


def test_a_length_beyond_the_limit_is_refused_before_it_is_read() -> None:
    with pytest.raises(ManifestError, match="more than"):
        Manifest.from_bytes(struct.pack("<4sHQ", MANIFEST_MAGIC, VERSION, MAX_MANIFEST_BYTES + 1))


@settings(max_examples=80)
@given(st.binary(max_size=60))
def test_noise_is_refused(noise: bytes) -> None:
    for data in (noise, frame(MANIFEST_MAGIC, VERSION, noise)):
        assert _decode_or_none(data) is None


@settings(max_examples=20)
@given(trees(), st.data())
def test_a_damaged_manifest_never_breaks_the_reader(tree: Any, data: st.DataObject) -> None:
    encoded = capture(tree, TYPES).manifest.to_bytes()
    for _ in range(20):
        index = data.draw(st.integers(0, len(encoded) - 1))
        changed = encoded[:index] + bytes([data.draw(st.integers(0, 255))]) + encoded[index + 1 :]
        read = _decode_or_none(changed)
        assert read is None or read.to_bytes() == changed


def test_a_difference_names_the_path_and_both_sides() -> None:
    changed = state_of_every_kind()
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


@settings(max_examples=15)
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
