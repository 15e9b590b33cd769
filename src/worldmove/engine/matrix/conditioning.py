"""What a block is told: the session's picture, the scene it begins with, and the actions of its frames.

All of it is made for one block at a time, so a session has no last block.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from worldmove.engine.matrix.action_module import windows
from worldmove.engine.matrix.config import (
    ACTION_WINDOW,
    FRAMES_PER_LATENT,
    KEYBOARD_CHANNELS,
    MASK_CHANNELS,
    MOUSE_CHANNELS,
    PATCH,
    MatrixConfig,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditioning:
    """A session's own: in place, at fixed addresses."""

    visual: Tensor
    """What an image encoder would say of the session's picture: [1, visual tokens, visual dim]."""
    scene: Tensor
    """The latents of that picture: [rows, columns, latent channels]."""
    mouse: Tensor
    """The mouse in the video frames just before the next block: [past frames, 2]."""
    keyboard: Tensor
    """The keys in these frames: [past frames, 4]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockConditions:
    """What one block is told. ``scene``: patches of mask and scene, [1, tokens, channels]."""

    visual: Tensor
    scene: Tensor
    mouse: Tensor
    keyboard: Tensor


NAMES = ("visual", "scene", "mouse", "keyboard")


def shapes(config: MatrixConfig) -> dict[str, tuple[int, ...]]:
    """Shape of each of a session's conditions."""
    return {
        "visual": (1, config.visual_tokens, config.visual_dim),
        "scene": (config.rows, config.columns, config.latent_channels),
        "mouse": (config.past_frames, MOUSE_CHANNELS),
        "keyboard": (config.past_frames, KEYBOARD_CHANNELS),
    }


def draw_conditioning(config: MatrixConfig, generator: torch.Generator) -> Conditioning:
    """Invent a picture to begin with. Nothing was pressed before."""
    device, shape = generator.device, shapes(config)

    def drawn(name: str) -> Tensor:
        return torch.randn(shape[name], generator=generator, dtype=config.dtype, device=device)

    def still(name: str) -> Tensor:
        return torch.zeros(shape[name], dtype=config.dtype, device=device)

    return Conditioning(visual=drawn("visual"), scene=drawn("scene"), mouse=still("mouse"), keyboard=still("keyboard"))


def begin_block(
    config: MatrixConfig, own: Conditioning, controls: Sequence[Sequence[float]], frame: int
) -> BlockConditions:
    """Tell the block at latent frame ``frame`` its controls, one row a video frame, and remember the last of them."""
    given = torch.tensor(controls, dtype=config.dtype, device=own.scene.device)
    mouse = torch.cat((own.mouse, given[:, :MOUSE_CHANNELS]))
    keyboard = torch.cat((own.keyboard, given[:, MOUSE_CHANNELS:]))
    own.mouse.copy_(mouse[-config.past_frames :])
    own.keyboard.copy_(keyboard[-config.past_frames :])
    seen = ACTION_WINDOW * FRAMES_PER_LATENT
    return BlockConditions(
        visual=own.visual,
        scene=to_patches(masked(config, own.scene, frame)),
        mouse=windows(mouse, seen, FRAMES_PER_LATENT).flatten(1),
        keyboard=windows(keyboard, seen, FRAMES_PER_LATENT),
    )


def masked(config: MatrixConfig, scene: Tensor, frame: int) -> Tensor:
    """The scene for each of a block's frames, [frames, rows, columns, channels], marked where it is the picture."""
    shape = (config.frames_per_block, config.rows, config.columns)
    mask = torch.zeros(*shape, MASK_CHANNELS, dtype=scene.dtype, device=scene.device)
    if frame == 0:
        mask[0] = 1
    return torch.cat((mask, scene.expand(*shape, -1)), dim=-1)


def to_patches(latents: Tensor) -> Tensor:
    """Patches [1, tokens, channels * 4] of latents [frames, rows, columns, channels]."""
    squares = latents.unflatten(2, (-1, PATCH)).unflatten(1, (-1, PATCH)).transpose(2, 3)
    return squares.flatten(3).flatten(0, 2)[None]


def to_latents(config: MatrixConfig, patches: Tensor) -> Tensor:
    """Latents [frames, rows, columns, channels] of patches [1, tokens, channels * 4]."""
    tokens = (config.frames_per_block, config.rows // PATCH, config.columns // PATCH)
    squares = patches.view(*tokens, PATCH, PATCH, -1).transpose(2, 3)
    return squares.flatten(3, 4).flatten(1, 2)
