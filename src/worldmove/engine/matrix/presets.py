"""The models that the matrix engine is configured as. All have drawn weights: they show noise, not a world."""

from dataclasses import dataclass, replace

import torch

from worldmove.engine.matrix.config import ActionShape, MatrixConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """A named model, and the seed of its weights."""

    name: str
    config: MatrixConfig
    weights_seed: int = 0


def matrix_game_2() -> Preset:
    """Matrix-Game 2.0 at its published geometry ("universal"): 352x640 px at 25 frames/s, on a CUDA device."""
    config = MatrixConfig(
        num_layers=30,
        num_heads=12,
        head_dim=128,
        mlp_dim=8960,
        action=ActionShape(num_layers=15, num_heads=16, head_dim=64, key_dim=128),
        rows=44,
        columns=80,
        latent_channels=16,
        frames_per_block=3,
        window=6,
        visual_tokens=257,
        visual_dim=1280,
        levels=warped(1.0, 0.666, 0.333),
        decoder_width=96,
        frames_per_s=25.0,
        device="cuda",
        dtype=torch.bfloat16,
        decoder_dtype=torch.float16,
    )
    return Preset(name="matrix-game-2", config=config)


def tiny() -> Preset:
    """For tests, on the CPU: the same structure, one dead action cache included, at a few ms a block."""
    config = MatrixConfig(
        num_layers=3,
        num_heads=2,
        head_dim=16,
        mlp_dim=64,
        action=ActionShape(num_layers=2, num_heads=2, head_dim=8, key_dim=4),
        rows=4,
        columns=4,
        latent_channels=4,
        frames_per_block=3,
        window=6,
        visual_tokens=5,
        visual_dim=12,
        levels=warped(1.0, 0.666, 0.333),
        decoder_width=2,
        frames_per_s=25.0,
        device="cpu",
        dtype=torch.bfloat16,
        decoder_dtype=torch.float32,
    )
    return Preset(name="matrix-tiny", config=config)


def without_decoder(preset: Preset) -> Preset:
    """The same transformer alone: a session is its attention caches and a few small things to go on with."""
    return Preset(name=f"{preset.name}-latents", config=replace(preset.config, decoder_width=None))


def warped(*levels: float, shift: float = 5.0) -> tuple[float, ...]:
    """Noise levels, moved towards 1 as flow models for video are sampled."""
    return tuple(shift * level / (1 + (shift - 1) * level) for level in levels)
