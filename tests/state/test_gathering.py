"""States that are brought into an arena, and what lies there then."""

import re

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
    assert (full.value.needed, full.value.available) == (6000, 4096)
    assert str(full.value) == "the state needs 6,000 bytes of arena, and 4,096 are there"


def test_a_state_whose_pieces_do_not_fit_though_there_are_bytes_enough_says_which_one_and_what_would() -> None:
    arena = Arena(8192, "in pieces")
    lying = capture([torch.zeros(200, dtype=torch.uint8), torch.zeros(200, dtype=torch.uint8)])
    there = materialise(lying.manifest, (0, 4096), arena)
    with pytest.raises(ArenaFull) as full:
        adopt(capture([*there, aligned(4100, 0)]), arena)
    whole, piece = str(full.value).split(", but in no place of it ")
    assert whole == "the state needs 4,500 bytes of arena, and 8,192 are there"
    assert piece == "4,100 in a row: at most 3,840"


def aligned(num_bytes: int, remainder: int) -> torch.Tensor:
    memory = torch.zeros(num_bytes + 256, dtype=torch.uint8)
    begin = (remainder - memory.data_ptr()) % 256
    return torch.from_numpy(memory.numpy()[begin : begin + num_bytes])


@pytest.mark.parametrize("seed", range(60))
def test_what_is_said_of_a_state_that_does_not_fit_is_never_less_than_what_is_there(seed: int) -> None:
    rng, num = np.random.default_rng(seed), 0
    while num < 3:
        leaves = [torch.zeros(int(size), dtype=torch.uint8) for size in rng.integers(1, 5000, size=6)]
        try:
            adopt(capture(leaves), Arena(int(rng.integers(4096, 16384)), "any"))
        except ArenaFull as full:
            num += 1
            needed, available, *piece = [int(n) for n in re.findall(r"\d+", str(full).replace(",", ""))]
            assert needed == sum(leaf.numel() for leaf in leaves)
            assert (needed > available) == (not piece)
            assert not piece or piece[0] > piece[1]


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
