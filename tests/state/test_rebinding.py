"""Engines rebind: what was a view of the slot yesterday is another tensor today. Leaves are found by path each time."""

from typing import Any

import pytest
import torch

from tests.state.equality import plain
from worldmove.errors import ArenaFull
from worldmove.state import Arena, Xxh3Digester, adopt, capture, gather, landed, materialise, state_digest

DIGESTER = Xxh3Digester()


class Rebinding:
    """A session that rebinds every way that engines do: windows by ``cat``, None that fills, caches that swap."""

    def __init__(self, state: dict[str, Any]) -> None:
        self.state = state

    @classmethod
    def open(cls) -> "Rebinding":
        state: dict[str, Any] = {
            "window": torch.arange(4096, dtype=torch.float32),
            "near": torch.full((512,), 1.0),
            "far": torch.full((512,), 2.0),
            "cross": None,
            "static": torch.ones(300),
            "block": 0,
        }
        return cls(state)

    def step(self) -> None:
        state, block = self.state, self.state["block"]
        state["window"] = torch.cat([state["window"][256:], torch.full((256,), float(block))])
        state["near"], state["far"] = state["far"], state["near"]
        state["near"].add_(1)
        if state["cross"] is None:
            state["cross"] = torch.full((128,), 7.0)
        state["block"] = block + 1


def _freeze_and_land(session: Rebinding, source: Arena) -> dict[str, Any]:
    frozen = capture(session.state)
    placement = gather(frozen, source)
    destination = Arena(source.size, "destination")
    destination.poison()
    inside = landed(frozen.manifest, placement, source)
    for storage, at in zip(inside.storages, placement, strict=True):
        for extent in storage.used:
            destination.buffer[at + extent.offset : at + extent.end] = storage.view(extent)
    state = materialise(frozen.manifest, placement, destination)
    assert state_digest(capture(state), DIGESTER) == state_digest(capture(session.state), DIGESTER)
    return dict(state)


def test_a_session_that_rebinds_its_tensors_is_frozen_as_it_is_now() -> None:
    session, arena = Rebinding.open(), Arena(1 << 16, "source")
    opened = capture(session.state)
    session = Rebinding(materialise(opened.manifest, adopt(opened, arena), arena))
    for _ in range(8):
        session.step()
        assert plain(_freeze_and_land(session, arena)) == plain(session.state)


def test_leaves_that_swapped_places_are_told_apart() -> None:
    session, arena = Rebinding.open(), Arena(1 << 16, "source")
    opened = capture(session.state)
    placement = adopt(opened, arena)
    state = materialise(opened.manifest, placement, arena)
    state["near"], state["far"] = state["far"], state["near"]
    swapped = gather(capture(state), arena)
    paths = [leaf.path for leaf in opened.manifest.leaves if leaf.path in ("near", "far")]
    assert len(paths) == 2
    assert sorted(swapped) == sorted(placement)
    assert swapped != placement
    moved = materialise(capture(state).manifest, swapped, arena)
    assert (float(moved["near"][0]), float(moved["far"][0])) == (2.0, 1.0)


def test_what_stays_in_the_arena_is_not_copied_and_what_left_it_overwrites_nothing_live() -> None:
    session, arena = Rebinding.open(), Arena(1 << 16, "source")
    opened = capture(session.state)
    state = materialise(opened.manifest, adopt(opened, arena), arena)
    before = dict(zip(capture(state).manifest.paths(), capture(state).storages, strict=False))
    state["window"] = state["window"].clone()
    frozen = capture(state)
    wanted = plain(state)
    placement = gather(frozen, arena)
    assert plain(state) == wanted
    kept = [
        storage for storage, at in zip(frozen.storages, placement, strict=True) if storage.address == arena.address + at
    ]
    assert len(kept) == len(frozen.storages) - 1
    assert before["near"].address in [storage.address for storage in kept]
    assert plain(materialise(frozen.manifest, placement, arena)) == wanted


def test_gathering_again_and_again_never_runs_out_of_room() -> None:
    session, arena = Rebinding.open(), Arena(40_960, "tight")
    opened = capture(session.state)
    session = Rebinding(materialise(opened.manifest, adopt(opened, arena), arena))
    for _ in range(50):
        session.step()
        gather(capture(session.state), arena)


def test_a_state_that_outgrew_its_slot_is_refused() -> None:
    arena = Arena(8192, "outgrown")
    opened = capture({"x": torch.zeros(1024)})
    state = materialise(opened.manifest, adopt(opened, arena), arena)
    state["y"] = torch.zeros(2048)
    with pytest.raises(ArenaFull):
        gather(capture(state), arena)


def test_a_state_that_lies_in_another_arena_is_gathered_whole() -> None:
    here, there = Arena(1 << 16, "here"), Arena(1 << 16, "there")
    opened = capture(Rebinding.open().state)
    state = materialise(opened.manifest, adopt(opened, here), here)
    moved = materialise(opened.manifest, gather(capture(state), there), there)
    here.poison()
    assert plain(moved) == plain(Rebinding.open().state)


def test_an_arena_tensor_that_an_array_aliases_beyond_its_storage_stays_exact() -> None:
    arena = Arena(8192, "alias")
    opened = capture({"x": torch.arange(16)})
    state = materialise(opened.manifest, adopt(opened, arena), arena)
    state["array"] = state["x"].numpy()[4:]
    frozen = capture(state)
    assert len(frozen.storages) == 1
    again = materialise(frozen.manifest, gather(frozen, arena), arena)
    again["x"][15] = -1
    assert again["array"][11] == -1
