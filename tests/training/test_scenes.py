"""The island world's country and pictures: what training shows is what the walk says."""

import numpy as np
import torch

from training import tiles
from training.agreement import agreed
from training.country import SIDE, maps
from training.scenes import crosshair_token, nearest, scenes
from training.walks import FLAG, STAY, walks
from worldmove.engine.reference.presets import island

CONFIG = island().config
UP, DOWN = 1, 2


def test_all_tiles_can_be_told_apart() -> None:
    drawn = tiles.pictures().reshape(2 * tiles.NUM_PLAIN, -1) / 127.5 - 1
    distances = np.sqrt(((drawn[:, None] - drawn[None]) ** 2).mean(axis=-1))
    np.fill_diagonal(distances, np.inf)
    assert distances.min() > 0.09


def test_maps_have_every_kind_and_texture_and_differ() -> None:
    one, two = maps(2, torch.Generator().manual_seed(0))
    assert one.shape == (SIDE, SIDE)
    assert set(torch.stack((one, two)).flatten().tolist()) == set(range(tiles.NUM_PLAIN))
    assert (one == two).float().mean() < 0.2


def test_a_picture_is_made_of_its_tiles() -> None:
    shown = scenes(CONFIG, torch.from_numpy(walks(2, 12, seed=1)), torch.Generator().manual_seed(0))
    index, distance = nearest(CONFIG, shown.patches)
    assert torch.equal(index, shown.tiles)
    assert distance.max() == 0


def test_a_place_keeps_its_tile_and_a_flag_stays_until_it_is_lifted() -> None:
    actions = torch.tensor([[STAY, FLAG, UP, DOWN, FLAG, STAY]])
    shown = scenes(CONFIG, actions, torch.Generator().manual_seed(0)).tiles[0]
    here = crosshair_token(CONFIG)
    below = here + CONFIG.columns
    country = int(shown[0, here])
    flag = country + tiles.NUM_PLAIN
    assert [int(frame[here]) for frame in (shown[1], shown[3], shown[4], shown[5])] == [flag, flag, country, country]
    assert int(shown[2, below]) == flag
    assert int((shown >= tiles.NUM_PLAIN).sum()) == 3


def test_walks_differ_and_never_begin_with_a_flag() -> None:
    many = walks(40, 64, seed=0)
    assert many.shape == (40, 64)
    assert len({walk.tobytes() for walk in many}) == 40
    assert not (many[:, 0] == FLAG).any()
    assert (many == FLAG).any()


def test_the_surer_frame_of_a_block_decides_what_both_see() -> None:
    shown = scenes(CONFIG, torch.tensor([[STAY, UP]]), torch.Generator().manual_seed(0))
    wrong = shown.tiles.clone()
    wrong[0, 0] = 0
    distance = torch.zeros(wrong.shape)
    distance[0, 0] = 1
    settled = agreed(CONFIG, wrong, distance, shown.poses)
    both_see = slice(0, -CONFIG.columns)  # all but the row that the step up left behind
    assert torch.equal(settled[0, 0, both_see], shown.tiles[0, 0, both_see])
    assert torch.equal(settled[0, 1], shown.tiles[0, 1])
