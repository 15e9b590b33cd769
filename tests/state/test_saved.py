"""A saved world: every state comes back with its digest and alignment, and no damaged file is taken."""

import hashlib
import os
import tempfile
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.state.equality import plain
from tests.state.trees import TYPES, state_of_every_kind, trees
from worldmove.errors import ArenaFull, FileRefused
from worldmove.limits import MAX_TEXT
from worldmove.state import Arena, Capture, Layout, Xxh3Digester, capture, materialise, saved_state, state_digest
from worldmove.state.checked_frame import checked
from worldmove.state.digest import state_digest_of_bytes
from worldmove.state.frame import frame
from worldmove.state.saved import SavedHeader, pack_header, read_header, read_manifest
from worldmove.state.saved_state import copy_aside, load, payload

DIGESTER = Xxh3Digester()


def saved(state: Capture, path: Path, **changes: Any) -> bytes:
    """Write a saved world as a worker and its server do; return its bytes."""
    aside = copy_aside(state)
    manifest = state.manifest.to_bytes()
    fields: dict[str, Any] = {
        "worldmove": "0",
        "engine": "none",
        "num_threads": 1,
        "session": "s-1",
        "worker": "w-1",
        "epoch": 1,
        "seed": 7,
        "block": 9,
        "number": 4,
        "down": ("up",),
        "environment": {"torch": "2"},
        "state_digest": state_digest(aside.capture, DIGESTER).text,
        "manifest_sha256": hashlib.sha256(manifest).digest(),
        "manifest_bytes": len(manifest),
        "num_bytes": state.num_bytes,
        "remainders": aside.remainders,
    }
    data = pack_header(SavedHeader(**{**fields, **changes})) + b"".join(payload(aside))
    path.write_bytes(data)
    return data


def read(path: Path, arena_bytes: int) -> tuple[Any, Capture]:
    """Return the tree that a file holds, and its capture."""
    arena = Arena(arena_bytes, "saved")
    arena.poison()
    with path.open("rb") as file:
        _, manifest, placement = load(file, arena, DIGESTER)
    tree = materialise(manifest, placement, arena, TYPES)
    return tree, capture(tree, TYPES)


@pytest.fixture(name="file")
def _file(tmp_path: Path) -> Path:
    return tmp_path / "world.saved"


@settings(max_examples=40)
@given(trees())
def test_any_state_comes_back_from_a_file_the_same(tree: Any) -> None:
    state = capture(tree, TYPES)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "world.saved"
        saved(state, path)
        again, copy = read(path, Layout.of(state.manifest).arena_bytes)
        with path.open("rb") as file:
            header = read_header(file, path.stat().st_size)
            digest = state_digest_of_bytes(read_manifest(file, header), file.read, DIGESTER)
    assert plain(again) == plain(tree)
    assert copy.manifest == state.manifest
    assert state_digest(copy, DIGESTER) == state_digest(state, DIGESTER) == digest
    assert [s.address % 256 for s in copy.storages] == [s.address % 256 for s in state.storages]


def test_a_state_is_written_and_read_in_pieces_and_each_is_told(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A state of some GB takes a slow disk a minute: whoever waits for it hears that it gets on."""
    monkeypatch.setattr(saved_state, "PIECE_BYTES", 1000)
    state = capture({"rows": torch.arange(3001, dtype=torch.int64), "few": torch.ones(3)}, TYPES)
    parts = list(payload(copy_aside(state)))[1:]
    assert sum(len(part) for part in parts) == state.num_bytes
    assert max(len(part) for part in parts) == 1000
    saved(state, file)
    told = list[int]()
    arena = Arena(Layout.of(state.manifest).arena_bytes, "saved")
    with file.open("rb") as stream:
        _, manifest, placement = load(stream, arena, DIGESTER, gets_on=lambda: told.append(stream.tell()))
    assert len(told) == len(parts)
    assert capture(materialise(manifest, placement, arena, TYPES), TYPES).manifest == state.manifest


@settings(max_examples=150)
@given(st.data())
def test_a_saved_session_that_is_cut_longer_or_flipped_anywhere_is_refused(data: st.DataObject) -> None:
    state = capture(state_of_every_kind(), TYPES)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "world.saved"
        whole = saved(state, path)
        at = data.draw(st.integers(0, len(whole) - 1))
        flipped = whole[:at] + bytes([whole[at] ^ 1 << data.draw(st.integers(0, 7))]) + whole[at + 1 :]
        for damaged in (whole[:at], whole + b"\0", flipped):
            path.write_bytes(damaged)
            with pytest.raises(FileRefused) as refused:
                read(path, 1 << 16)
            assert str(refused.value).startswith("This ")


def test_a_state_that_is_larger_than_the_arena_is_refused_before_it_is_read(file: Path) -> None:
    state = capture(state_of_every_kind(), TYPES)
    huge = capture({"x": b"0", "big": torch.zeros(1 << 16)}, TYPES)
    saved(huge, file)
    with pytest.raises(ArenaFull):
        read(file, 4096)
    saved(state, file)
    read(file, Layout.of(state.manifest).arena_bytes)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "This is no saved world of WorldMove: it begins with b''"),
        (b"WMRC\x01\x00", "it begins with b'WMRC', not b'WMSS'"),
        (b"WMSS\x01", "ends inside its header, after 5 bytes"),
        (checked(frame(b"WMSS", 2, b"")), "is of format 2, and this version of WorldMove reads 1"),
        (b"WMSS\x01\x00" + b"\xff" * 8 + bytes(99), "its header says 18,446,744,073,709,551,615 bytes"),
        (b"WMSS\x01\x00\x00\x01" + bytes(6) + bytes(99), "ends inside its header, after 113 bytes"),
        (checked(frame(b"WMSS", 1, b"\x80")), "its header does not decode"),
    ],
)
def test_each_way_in_which_a_file_is_none_is_said(file: Path, data: bytes, says: str) -> None:
    file.write_bytes(data)
    with file.open("rb") as stream, pytest.raises(FileRefused, match=says):
        read_header(stream, os.fstat(stream.fileno()).st_size)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"state_digest": "xxh3-128:" + "0" * 32}, "its state is xxh3-128:.*, not xxh3-128:000"),
        ({"manifest_sha256": bytes(32)}, "its manifest has not the digest that it says"),
        ({"remainders": b""}, "in 0 storages are announced"),
    ],
)
def test_a_header_that_does_not_tell_the_truth_is_found_out(file: Path, changes: dict[str, Any], says: str) -> None:
    saved(capture(state_of_every_kind(), TYPES), file, **changes)
    with pytest.raises(FileRefused, match=says):
        read(file, 1 << 16)


@pytest.mark.parametrize(
    "changes",
    [
        {"block": 1 << 40},
        {"block": -1},
        {"epoch": 1 << 62},
        {"number": -1},
        {"num_threads": 0},
        {"session": "s" * (MAX_TEXT + 1)},
        {"engine": "\ud800"},
        {"num_bytes": -1},
        {"manifest_bytes": 0},
        {"manifest_sha256": b""},
        {"environment": {f"{number}": "" for number in range(513)}},
        {"environment": {f"{number}": "e" * MAX_TEXT for number in range(512)}},
    ],
)
def test_no_file_is_written_that_could_not_be_read(changes: dict[str, Any], tmp_path: Path) -> None:
    state = capture({"few": torch.ones(3)}, TYPES)
    with pytest.raises(FileRefused, match="cannot be saved"):
        saved(state, tmp_path / "world", **changes)
