"""Rows that are held on a device are found like those of host memory: the double stands in for a GPU."""

from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from worldmove.move.reconcile import at_once, ordered, reconcile
from worldmove.state.arena_rows import digests_in, held_in, look_at, move_in
from worldmove.state.device_arena import DeviceArena
from worldmove.state.device_held import _are_apart
from worldmove.state.held import Held, Moved
from worldmove.state.kit_double import DoubleKit
from worldmove.state.row_digests import row_digests
from worldmove.state.rows import Rows

KIT = DoubleKit()
SIZE = 4096


def _arena(data: Any) -> DeviceArena:
    arena = DeviceArena(SIZE, "rows", KIT)
    arena.write(0, data)
    return arena


def _rows(cuts: list[int], chosen: list[bool]) -> Rows:
    pairs = [(a, b - a) for (a, b), taken in zip(pairwise(cuts), chosen, strict=False) if taken]
    return Rows(
        offsets=np.array([at for at, _ in pairs], dtype=np.int64),
        lengths=np.array([length for _, length in pairs], dtype=np.int64),
    )


Cuts = st.sets(st.integers(0, 60), min_size=2, max_size=14).map(sorted)
Chosen = st.lists(st.booleans(), min_size=14, max_size=14)
Memory = st.lists(st.integers(0, 1), min_size=60, max_size=60)


@settings(max_examples=60)
@given(Memory, Memory, st.tuples(Cuts, Chosen), st.tuples(Cuts, Chosen), st.booleans())
def test_what_is_held_on_a_device_becomes_what_is_wanted(
    before: list[int], after: list[int], first: Any, second: Any, same_rows: bool
) -> None:
    """In as many bytes in place, moved and pulled as in host memory, whose finding has tests of its own."""
    held, wanted = (np.array(each, dtype=np.uint8) for each in (before, after))
    rows = _rows(*first)
    asked = rows if same_rows else _rows(*second)
    arena = _arena(held)
    there, here = held_in(arena, rows), Held(rows, row_digests(held, rows))
    assert there.digests.tolist() == here.digests.tolist()
    digests = row_digests(wanted, asked)
    assert there.lacks(digests).tolist() == here.lacks(digests).tolist()
    found, twin = (reconcile(each, asked, digests, arena.size) for each in (there, here))
    assert (found.in_place_bytes, found.moved_bytes, found.pulled_bytes) == (
        *(twin.in_place_bytes, twin.moved_bytes, twin.pulled_bytes),
    )
    move_in(arena, found.moves)
    for pull in found.pulls:
        arena.write(pull.offset, wanted[pull.offset : pull.end])
    assert digests_in(arena, asked).tolist() == digests.tolist()
    arena.close()


def test_what_has_come_since_is_found_in_place_and_what_was_there_before_nowhere() -> None:
    rows = _rows([0, 8, 16, 24], [True] * 3)
    for is_device in (True, False):
        memory = np.arange(24, dtype=np.uint8)
        old = row_digests(memory, rows)
        arena = _arena(memory) if is_device else None
        held = held_in(arena, rows) if arena else Held(rows, row_digests(memory, rows), memory)
        changed = np.full(8, 7, dtype=np.uint8)
        if arena:
            arena.write(8, changed)
        memory[8:16] = changed
        held.look_again(np.array([1]))
        new = row_digests(memory, rows)
        assert held.digests.tolist() == new.tolist()
        found = reconcile(held, rows, new, SIZE)
        assert (found.in_place_bytes, found.moved_bytes, found.pulled_bytes) == (24, 0, 0)
        found = reconcile(held, rows, old, SIZE)
        assert (found.in_place_bytes, found.moved_bytes, found.pulled_bytes) == (16, 0, 8)


ROW = 16
NAMES = np.random.default_rng(1).integers(0, 256, (400, ROW), dtype=np.uint8)
OLD, LINES = np.arange(96), np.arange(96).reshape(12, 8)
KINDS = {
    "as it was": OLD,
    "rolled": np.concatenate((OLD[7:], np.arange(200, 207))),
    "rolled in each line": np.concatenate((LINES[:, 3:], 200 + LINES[:, :3]), axis=1).reshape(-1),
    "a window of one that grows": np.concatenate((OLD[40:], OLD[:3], np.arange(200, 237))),
    "bound anew": np.concatenate((OLD[48:], OLD[:48])),
    "swapped": OLD.reshape(-1, 2)[:, ::-1].reshape(-1),
    "backwards": OLD[::-1],
    "all equal": np.zeros(96, dtype=np.int64),
    "few names": np.random.default_rng(2).integers(0, 3, 96),
    "drawn": np.random.default_rng(3).integers(0, 400, 96),
    "all new": 200 + OLD,
}
"""Names of the rows that come after those of ``OLD``."""


@pytest.mark.parametrize("before", ["as it was", "few names", "drawn"])
@pytest.mark.parametrize("after", KINDS)
def test_a_device_finds_the_very_runs_that_are_found_in_host_memory(before: str, after: str) -> None:
    held, wanted = (NAMES[KINDS[kind]].reshape(-1) for kind in (before, after))
    rows = Rows(offsets=np.arange(0, len(held), ROW), lengths=np.full(len(held) // ROW, ROW))
    other = Rows(offsets=rows.offsets.copy(), lengths=rows.lengths)
    arena, digests = _arena(held), row_digests(wanted, rows)
    there, here = held_in(arena, rows), Held(rows, row_digests(held, rows))
    differs = here.unlike(digests)
    assert there.unlike(digests).tolist() == differs.tolist()
    for asked, which in ((rows, None), (other, None), (rows, differs), (rows, OLD)):
        found, twin = (each.look_for(asked, digests, which=which) for each in (there, here))
        assert [each.tolist() for each in found.elsewhere] == [each.tolist() for each in twin.elsewhere]
        assert found.nowhere == twin.nowhere
        assert found.in_place_bytes == twin.in_place_bytes
        assert found.in_place_bytes == ROW * (96 - len(differs))
    arena.close()


@pytest.mark.parametrize("is_device", [True, False])
def test_a_look_says_what_has_changed_since(is_device: bool) -> None:
    memory = np.arange(48, dtype=np.uint8)
    rows = _rows([0, 8, 16, 24, 40, 48], [True, True, False, True, True])
    arena: Any = _arena(memory) if is_device else SimpleNamespace(memory=memory)
    look = look_at(arena, rows)
    assert look.digests().tolist() == row_digests(memory, rows).tolist()
    assert [len(each) for each in look.changes()] == [0, 0]
    memory[9], memory[20], memory[47] = 0, 0, 0  # the second lies in no row
    if is_device:
        arena.write(0, memory)
    which, digests = look.changes()
    assert which.tolist() == [1, 3]
    assert digests.tolist() == row_digests(memory, rows)[[1, 3]].tolist()


RUNS = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 6), st.integers(1, 5)), max_size=8)


@given(RUNS)
def test_runs_are_apart_for_a_device_where_they_are_for_the_host(drawn: list[tuple[int, int, int]]) -> None:
    """Each run: where from, how far its destination is from the end of the one before, how long."""
    sources, gaps, lengths = (
        np.array(each, dtype=np.int64) for each in (zip(*drawn, strict=True) if drawn else ((),) * 3)
    )
    destinations = np.cumsum(gaps) + np.cumsum(lengths) - lengths
    apart = bool(_are_apart(*(torch.from_numpy(each.copy()) for each in (sources, destinations, lengths))))
    runs = [(range(s, s + n), range(d, d + n)) for s, d, n in zip(sources, destinations, lengths, strict=True)]
    meets = any(
        max(read.start, written.start) < min(read.stop, written.stop)
        for at, (read, _) in enumerate(runs)
        for other, (_, written) in enumerate(runs)
        if at != other
    )
    assert apart is not meets
    moved = Moved(sources, destinations, lengths)
    waves, dropped = ordered(moved, 1000, 1 << 20)
    assert apart is (len(dropped) == 0 and len(waves) == len(moved.sources) and not waves.waves.any())
    if apart:
        assert np.array_equal(at_once(moved, 1000).sources, waves.sources)
