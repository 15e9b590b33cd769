import torch

from worldmove.engine.reference.caches import empty_caches, make_room, shift
from worldmove.engine.reference.pictures import to_frames, to_patches
from worldmove.engine.reference.presets import island, tiny
from worldmove.engine.reference.sampler import canvas_shape, crop_noise


def test_two_frames_of_a_block_that_see_one_place_see_one_noise() -> None:
    config = tiny().config
    canvas = torch.randn(1, *canvas_shape(config), generator=torch.Generator().manual_seed(0))
    for step in ((0, 0), (-1, 0), (1, 0), (0, -1), (0, 1)):
        poses = torch.tensor([[[5, 7], [5 + step[0], 7 + step[1]]]])
        one, two = crop_noise(config, canvas, poses)[0].unflatten(1, (config.rows, config.columns))
        for row in range(config.rows):
            for column in range(config.columns):
                there = row - step[0], column - step[1]
                if 0 <= there[0] < config.rows and 0 <= there[1] < config.columns:
                    assert torch.equal(one[row, column], two[there])


def test_a_shift_moves_every_row_and_keeps_the_address() -> None:
    for total, by in ((12, 3), (13, 3), (4, 4), (5, 4)):
        rows = torch.arange(total * 2.0).view(1, total, 1, 2)
        expected, place = rows[:, by:].clone(), rows.data_ptr()
        shift(rows, by)
        assert torch.equal(rows[:, : total - by], expected)
        assert rows.data_ptr() == place


def test_a_cache_rolls_only_when_it_is_full() -> None:
    config = tiny().config
    caches, filled = empty_caches(config), [0] * config.num_layers
    block = config.tokens_per_block
    counts = []
    for _ in range(6):
        filled = make_room(config, caches, filled)
        counts.append([rows // block for rows in filled])
    assert counts == [[1, 1], [2, 2], [2, 3], [2, 4], [2, 4], [2, 4]]


def test_pictures_survive_the_way_through_patches() -> None:
    for config in (tiny().config, island().config):
        shape = (2, 3, config.height, config.width, 3)
        frames = torch.randint(256, shape, dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
        patches = to_patches(config, frames)
        assert patches.shape == (2, 3, config.tokens_per_frame, config.patch_dim)
        assert torch.equal(to_frames(config, patches), frames)


def test_a_patch_is_one_tile_row_by_row() -> None:
    config = tiny().config
    frames = torch.zeros(1, config.height, config.width, 3, dtype=torch.uint8)
    frames[0, 2:4, 4:6] = 255  # the tile in row 1, column 2
    bright = (to_patches(config, frames)[0] == 1).all(dim=-1)
    assert bright.nonzero().flatten().tolist() == [1 * config.columns + 2]
