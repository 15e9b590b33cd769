"""The caches have the leaves and bytes of the full geometry, and roll as a plain list of rows would."""

import random

import pytest
import torch

from worldmove.engine.matrix.caches import CROSS, ROLLING, Cache, Place, empty_caches, mark, place_of, store
from worldmove.engine.matrix.config import MatrixConfig
from worldmove.engine.matrix.decoder_weights import slot_shapes
from worldmove.engine.matrix.presets import matrix_game_2, tiny
from worldmove.engine.matrix.sizes import num_bytes
from worldmove.engine.matrix.transformer import places_of
from worldmove.engine.matrix.workspace import load, make_workspace, save
from worldmove.state.tree import flatten

FULL = matrix_game_2().config


def test_the_full_geometry_has_450_leaves_and_these_bytes() -> None:
    caches = empty_caches(FULL, torch.device("meta"))
    leaves = flatten(caches, {}).values
    tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
    keys_and_values = [tensor for tensor in tensors if tensor.dtype == torch.bfloat16]
    indices = [tensor for tensor in tensors if tensor.dtype == torch.int64]
    assert len(leaves) == 450
    assert [type(leaf) for leaf in leaves].count(bool) == 30
    assert (len(tensors), len(keys_and_values), len(indices)) == (420, 240, 180)
    assert num_bytes(keys_and_values) == 1_670_123_520
    assert num_bytes(indices) == 1_440
    assert {tuple(index.shape) for index in indices} == {(1,)}


@pytest.mark.parametrize(
    ("kind", "shape", "num_bytes_of_kind"),
    [
        ("self", (1, 5280, 12, 128), 973_209_600),
        ("mouse", (880, 6, 16, 64), 648_806_400),
        ("keyboard", (1, 6, 16, 64), 737_280),
        ("cross", (1, 257, 12, 128), 47_370_240),
    ],
)
def test_each_kind_of_cache_has_its_shape_and_bytes(kind: str, shape: tuple[int, ...], num_bytes_of_kind: int) -> None:
    caches = empty_caches(FULL, torch.device("meta"))[kind]
    assert {tuple(cache[name].shape) for cache in caches for name in ("k", "v")} == {shape}
    assert num_bytes([[cache["k"], cache["v"]] for cache in caches]) == num_bytes_of_kind


def test_the_feature_cache_of_the_full_geometry_has_32_slots_and_these_bytes() -> None:
    slots = [torch.empty(shape, dtype=FULL.decoder_dtype, device="meta") for shape in slot_shapes(FULL)]
    assert len(slots) == 32
    assert sum(slot.numel() for slot in slots) == 532_674_560
    assert num_bytes(slots) == 1_065_349_120


def test_the_full_geometry_shows_what_the_model_shows() -> None:
    assert (FULL.height, FULL.width, FULL.video_frames, FULL.frames_per_s) == (352, 640, 12, 25.0)
    assert (FULL.tokens_per_frame, FULL.tokens_per_block, FULL.patch_dim) == (880, 2640, 64)


def naive_store(rows: list[int], global_end: int, new: list[int], *, end: int, size: int) -> tuple[list[int], int]:
    """The rule in words: make room only when the block is new and would overflow, then write the last rows."""
    if end > global_end and len(rows) + len(new) > size:
        rows = rows[len(rows) + len(new) - size :]
    if end == global_end:
        rows = rows[: -len(new)]
    return [*rows, *new], end


@pytest.mark.parametrize("window", [6, 9, 12])
def test_a_cache_rolls_as_a_list_of_rows_would_and_only_in_a_blocks_first_pass(window: int) -> None:
    config, device = with_window(window), torch.device("cpu")
    caches, space = empty_caches(config, device), make_workspace(config, device)
    cache, working = caches["self"][1], space.caches["self"][1]
    size = window * config.tokens_per_frame
    dice, rows, end = random.Random(3), list[int](), 0
    for frame in range(0, 30, 3):
        places = places_of(config, frame)
        place = places["self"]
        load(space, caches, places)
        for _ in range(4):
            new = [dice.randint(-99, 99) for _ in range(config.tokens_per_block)]
            rows, end = naive_store(rows, end, new, end=place.end, size=size)
            k, v = store(working, as_rows(new, cache), -as_rows(new, cache), place)
            assert k[0, :, 0, 0].tolist() == rows
            assert v[0, :, 1, 3].tolist() == [-row for row in rows]
        save(space, caches, 1, places)
        mark([cache], place)
        assert cache["k"][0, :, 0, 0].tolist() == rows + [0] * (size - len(rows))
        assert cache["global_end_index"].tolist() == [end]
        assert cache["local_end_index"].tolist() == [len(rows)]


def test_an_action_cache_rolls_by_whole_frames_in_every_place_of_the_picture() -> None:
    config, device = tiny().config, torch.device("cpu")
    caches, space = empty_caches(config, device), make_workspace(config, device)
    for frame in range(0, 12, 3):
        places = places_of(config, frame)
        load(space, caches, places)
        rows = torch.arange(frame, frame + 3, dtype=config.dtype)[None, :, None, None].expand(4, 3, 2, 8)
        store(space.caches["mouse"][1], rows, rows, places["mouse"])
        save(space, caches, 1, places)
    assert [cache.tolist() for cache in caches["mouse"][1]["k"][:, :, 0, 0]] == 4 * [[6, 7, 8, 9, 10, 11]]
    assert not caches["mouse"][0]["k"].any()


def test_rolling_caches_and_cross_attention_are_all_kinds() -> None:
    assert list(empty_caches(tiny().config, torch.device("meta"))) == [*ROLLING, CROSS]


def with_window(window: int) -> MatrixConfig:
    config = tiny().config
    fields = {name: getattr(config, name) for name in MatrixConfig.__slots__}
    return MatrixConfig(**{**fields, "window": window})


def as_rows(values: list[int], cache: Cache) -> torch.Tensor:
    rows: torch.Tensor = torch.tensor(values, dtype=cache["k"].dtype)
    return rows[None, :, None, None].expand(1, -1, *cache["k"].shape[2:])


def test_a_place_is_counted_in_rows_of_its_cache() -> None:
    assert place_of(FULL, 6, 880) == Place(start=2640, stop=5280, end=7920, shift=2640)
    assert place_of(FULL, 3, 880) == Place(start=2640, stop=5280, end=5280, shift=0)
    assert place_of(FULL, 0, 1) == Place(start=0, stop=3, end=3, shift=0)
