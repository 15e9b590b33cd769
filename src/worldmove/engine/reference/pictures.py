"""Pictures as tokens: uint8 RGB frames, and patches of float32 in [-1, 1]."""

import torch
from torch import Tensor

from worldmove.engine.reference.config import ReferenceConfig


def to_patches(config: ReferenceConfig, frames: Tensor) -> Tensor:
    """Patches [..., tiles, patch_dim] of frames uint8 [..., height, width, 3]."""
    tile = config.tile_px
    tiles = frames.unflatten(-3, (config.rows, tile)).unflatten(-2, (config.columns, tile))
    return tiles.movedim(-4, -3).flatten(-3).flatten(-3, -2).float() / 127.5 - 1


def to_frames(config: ReferenceConfig, patches: Tensor) -> Tensor:
    """Frames uint8 [..., height, width, 3] of patches [..., tiles, patch_dim]; the nearest of 256 values."""
    tile = config.tile_px
    values = ((patches.clamp(-1, 1) + 1) * 127.5).round().to(torch.uint8)
    tiles = values.unflatten(-1, (tile, tile, 3)).unflatten(-4, (config.rows, config.columns))
    return tiles.movedim(-3, -4).flatten(-5, -4).flatten(-3, -2).contiguous()
