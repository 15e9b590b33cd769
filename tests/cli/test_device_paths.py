"""What ``doctor`` finds of paths between devices: the double stands in for one, in two processes."""

import re
from contextlib import AbstractContextManager

import pytest

from tests.own_path import own_path
from worldmove.cli import device_paths
from worldmove.cli.device_paths import KEPT_S, notes_of, probe, probe_all
from worldmove.cli.device_source import TILE_BYTES, held, tile
from worldmove.state.double_copying import Done
from worldmove.state.extent import Extent
from worldmove.state.kits import kit_of
from worldmove.state.memory import Piece

SIZES = (4096, TILE_BYTES + 8192)


@pytest.fixture(autouse=True)
def _importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", own_path())


def test_each_whole_path_is_measured_in_each_size() -> None:
    both = probe_all(["double"], SIZES)
    assert [found.transport for found in both] == ["peer", "staged"]
    for found, note in zip(both, notes_of(both, 100.0), strict=True):
        assert (found.source, found.destination, found.why) == ("double", "double", "")
        assert list(found.rates) == list(SIZES)
        assert all(rate > 0 for rate in found.rates.values())
        assert (note.source, note.why, note.until) == (kit_of("double").device_id, "", 100.0 + KEPT_S)  # type: ignore[union-attr]
        assert (note.transport, note.rates) == (found.transport, {str(size): found.rates[size] for size in SIZES})


def held_here(device: str, num_bytes: int, seed: int, name: str, folder: str) -> AbstractContextManager[bytes]:
    return held(device, num_bytes, seed, name, f"{folder}/there")


@pytest.mark.parametrize(("transport", "call"), [("peer", "start_copy"), ("staged", "start_copy_in")])
def test_a_path_that_reports_success_and_brings_nothing_or_something_else_is_found_out(
    monkeypatch: pytest.MonkeyPatch, transport: str, call: str
) -> None:
    """The pattern lies in this process: that one of another is read, and by which calls, is the test above."""
    monkeypatch.setattr(device_paths, "_held", held_here)
    kit = kit_of("double")
    assert kit is not None
    real = getattr(kit, call)
    monkeypatch.setattr(kit, call, lambda pieces: Done())
    why = probe("double", "double", [4096], transport).why
    assert re.search(r"byte \d is another one", why), why  # the first may be the poison by chance
    monkeypatch.setattr(
        kit, call, lambda pieces: real([Piece(*map(int, piece))._replace(length=int(piece[2]) - 1) for piece in pieces])
    )
    found = probe("double", "double", [4096], transport)
    assert "byte 4,095 is another one" in found.why
    assert [note.why for note in notes_of([found], 0.0)] == [found.why]


def test_a_device_that_no_process_can_use_is_a_finding_and_no_crash() -> None:
    found = probe("cpu", "double", [4096], "peer")
    assert "no process could hold" in found.why
    assert notes_of([found], 0.0) == []


def test_no_two_parts_of_the_pattern_are_alike_and_none_depends_on_the_process() -> None:
    assert tile(1, 5).tobytes() != tile(2, 5).tobytes()
    assert tile(1, 5).tobytes() != tile(1, 6).tobytes()
    assert tile(1, 5).tobytes() == tile(1, 5).tobytes()
    assert Extent(offset=0, length=len(tile(0, 5))).end == TILE_BYTES
    assert device_paths.SIZES[-1] == 1 << 30
