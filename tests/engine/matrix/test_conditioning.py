"""A block is told its own actions and the last of those before it; patches and latents are each other's reverse."""

import torch

from worldmove.engine.matrix.actions import CONTROLS, REST
from worldmove.engine.matrix.conditioning import begin_block, draw_conditioning, masked, to_latents, to_patches
from worldmove.engine.matrix.presets import tiny

CONFIG = tiny().config


def generator() -> torch.Generator:
    return torch.Generator().manual_seed(1)


def test_the_last_frames_actions_are_remembered_and_told_again() -> None:
    own = draw_conditioning(CONFIG, generator())
    first = begin_block(CONFIG, own, 4 * [REST] + 8 * [CONTROLS["right"]], 0)
    assert own.mouse.tolist() == 8 * [[0, 1]]
    assert own.keyboard.tolist() == 8 * [[0, 0, 0, 1]]
    second = begin_block(CONFIG, own, 12 * [CONTROLS["up"]], 3)
    assert own.mouse.tolist() == 8 * [[0, 0]]
    assert own.keyboard.tolist() == 8 * [[1, 0, 0, 0]]
    assert first.keyboard[:, :, 3].tolist() == [12 * [0], 8 * [0] + 4 * [1], 4 * [0] + 8 * [1]]
    assert second.keyboard[:, :, 3].tolist() == [8 * [1] + 4 * [0], 4 * [1] + 8 * [0], 12 * [0]]
    assert second.mouse.view(3, 12, 2)[:, :, 1].tolist() == [8 * [1] + 4 * [0], 4 * [1] + 8 * [0], 12 * [0]]


def test_what_is_remembered_keeps_its_address() -> None:
    own = draw_conditioning(CONFIG, generator())
    places = own.mouse.data_ptr(), own.keyboard.data_ptr()
    begin_block(CONFIG, own, 12 * [CONTROLS["up"]], 0)
    assert (own.mouse.data_ptr(), own.keyboard.data_ptr()) == places


def test_only_a_sessions_first_frame_is_marked_as_its_picture() -> None:
    own = draw_conditioning(CONFIG, generator())
    first, later = (masked(CONFIG, own.scene, frame) for frame in (0, 3))
    assert first[..., :4].flatten(1).mean(1).tolist() == [1, 0, 0]
    assert not later[..., :4].any()
    assert torch.equal(first[2, ..., 4:], own.scene)


def test_patches_and_latents_are_each_others_reverse() -> None:
    latents = torch.arange(3 * 4 * 4 * 4).view(3, 4, 4, 4)
    patches = to_patches(latents)
    assert patches.shape == (1, CONFIG.tokens_per_block, CONFIG.patch_dim)
    assert torch.equal(to_latents(CONFIG, patches), latents)
    assert patches[0, 1].tolist() == latents[0, 0:2, 2:4].flatten().tolist()
