"""Training's masks and play's rolling caches are the same computation."""

import torch

from training.streams import Streams
from worldmove.engine.reference.caches import empty_caches, make_room
from worldmove.engine.reference.presets import tiny
from worldmove.engine.reference.rotary import rotate, rotation
from worldmove.engine.reference.sampler import Sampler
from worldmove.engine.reference.weights import RandomWeights, load_model

NUM_FRAMES = 20


def test_rolling_caches_compute_what_the_training_masks_say_while_all_windows_roll() -> None:
    config = tiny().config
    model, _ = load_model(config, RandomWeights(seed=1))
    dice = torch.Generator().manual_seed(0)
    clean = torch.rand(1, NUM_FRAMES, config.tokens_per_frame, config.patch_dim, generator=dice) * 2 - 1
    noisy = torch.randn(clean.shape, generator=dice)
    actions = torch.randint(6, (1, NUM_FRAMES), generator=dice)
    poses = torch.randint(-1, 2, (1, NUM_FRAMES, 2), generator=dice).cumsum(dim=1)

    streams = Streams(config, NUM_FRAMES, "cpu")
    turns = streams.turns(poses)
    levels = torch.ones(1, NUM_FRAMES)
    with torch.no_grad():
        context = streams.write(model, clean, actions, turns)
        expected = streams.read(model, noisy, levels, actions, turns, context)

        sampler = Sampler(model)
        caches, filled = empty_caches(config), [0] * config.num_layers
        rolled = set()
        for frame in range(0, NUM_FRAMES, config.frames_per_block):
            span = slice(frame, frame + config.frames_per_block)
            before = list(filled)
            filled = make_room(config, caches, filled)
            rolled |= {index for index, rows in enumerate(filled) if rows == before[index]}
            block_turns = sampler.turns(poses[:, span], frame)
            guess = sampler.guess(noisy[:, span], 1.0, actions[:, span], block_turns, caches, filled)
            assert torch.allclose(guess, expected[:, span], atol=2e-5)
            sampler.remember(clean[:, span], actions[:, span], block_turns, caches, filled)

    assert rolled == set(range(config.num_layers))
    for index, (cache, pair) in enumerate(zip(caches, context, strict=True)):
        for name, rows in zip(("k", "v"), pair, strict=True):
            kept = rows[:, -config.cache_rows(index) :]
            assert torch.allclose(cache[name], kept, atol=2e-5), (index, name)


def test_complex_turns_and_real_turns_turn_alike() -> None:
    dice = torch.Generator().manual_seed(0)
    channels = torch.randn(5, 3, 16, generator=dice)
    turns = rotation(torch.rand(5, 1, 8, generator=dice, dtype=torch.float64) * 6)
    assert torch.allclose(rotate(channels, turns), rotate(channels, torch.view_as_complex(turns)), atol=1e-6)
