"""States that are brought into an arena, and what lies there then."""

import numpy as np
import pytest
import torch

from tests.state.trees import overlapping_views
from worldmove.errors import ArenaFull
from worldmove.state import (
    Arena,
    Layout,
    Xxh3Digester,
    adopt,
    capture,
    gather,
    gathering,
    landed,
    materialise,
    state_digest,
)


def test_bytes_between_the_used_ones_are_not_copied() -> None:
    state = capture(overlapping_views())
    arena = Arena(16384, "between")
    arena.poison()
    before = bytes(arena.buffer)
    at = adopt(state, arena)[0]
    assert arena.buffer[at : at + 400] == before[at : at + 400]
    assert arena.buffer[at + 1200 : at + 3600] == before[at + 1200 : at + 3600]


@pytest.mark.parametrize("shift", [0, 1, 64, 100, 255])
def test_every_storages_address_modulo_256_is_kept(shift: int) -> None:
    memory = np.zeros(5000, dtype=np.uint8)
    skip = (shift - memory.ctypes.data) % 256
    state = capture([torch.from_numpy(memory[skip : skip + 1000]), torch.ones(5)])
    arena = Arena(16384, "alignment")
    placement = adopt(state, arena)
    assert placement[0] % 256 == shift
    copy = capture(materialise(state.manifest, placement, arena))
    assert [s.address % 256 for s in copy.storages] == [s.address % 256 for s in state.storages]


def test_a_state_that_does_not_fit_is_refused_with_its_numbers() -> None:
    state = capture([torch.zeros(3000, dtype=torch.uint8), torch.zeros(3000, dtype=torch.uint8)])
    with pytest.raises(ArenaFull) as full:
        adopt(state, Arena(4096, "small"))
    assert full.value.needed == 3000
    assert full.value.available < 3000


def test_what_landed_can_be_read_before_a_tree_is_made() -> None:
    state = capture(overlapping_views())
    arena = Arena(Layout.of(state.manifest).arena_bytes, "landed")
    placement = adopt(state, arena)
    inside = landed(state.manifest, placement, arena)
    for here, there in zip(state.storages, inside.storages, strict=True):
        assert [bytes(here.view(extent)) for extent in here.used] == [
            bytes(there.view(extent)) for extent in there.used
        ]
    assert gather(inside, arena) == placement


@pytest.mark.parametrize("num_pieces", [1, 2, 5])
def test_a_large_state_is_copied_piece_by_piece_and_whoever_waits_hears_of_each(
    monkeypatch: pytest.MonkeyPatch, num_pieces: int
) -> None:
    state = capture([torch.arange(4000, dtype=torch.int16), torch.ones(3)])
    monkeypatch.setattr(gathering, "PIECE_BYTES", -(-8000 // num_pieces))
    arena, told = Arena(Layout.of(state.manifest).arena_bytes, "pieces"), list[None]()
    placement = adopt(state, arena, lambda: told.append(None))
    assert len(told) == num_pieces + 1
    assert state_digest(landed(state.manifest, placement, arena), Xxh3Digester()) == state_digest(state, Xxh3Digester())
