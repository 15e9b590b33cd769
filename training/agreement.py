"""Frames of one block that see one place should see one tile there."""

import torch
from torch import Tensor

from worldmove.engine.reference.config import ReferenceConfig


def agreed(config: ReferenceConfig, index: Tensor, distance: Tensor, poses: Tensor) -> Tensor:
    """For each place the tile of the frame that is surest of it: [batch, frames, tiles].

    ``index``, ``distance``: [batch, frames, tiles], the nearest tile and how far it is.
    """
    frames = config.frames_per_block
    index, distance = index.unflatten(1, (-1, frames)), distance.unflatten(1, (-1, frames))
    blocks = poses.unflatten(1, (-1, frames))
    best, least = index, distance
    for shift in range(1, frames):
        partner = (torch.arange(frames, device=index.device) + shift) % frames
        where, inside = places(config, blocks - blocks[:, :, partner])
        other = index[:, :, partner].gather(-1, where)
        surer = distance[:, :, partner].gather(-1, where).masked_fill(~inside, torch.inf)
        best = torch.where(surer < least, other, best)
        least = torch.minimum(surer, least)
    return best.flatten(1, 2)


def places(config: ReferenceConfig, offset: Tensor) -> tuple[Tensor, Tensor]:
    """Where a frame's tiles stand in the view of a frame ``offset`` [..., 2] away: their tokens, and whether seen."""
    rows = torch.arange(config.rows, device=offset.device)[:, None] + offset[..., 0, None, None]
    columns = torch.arange(config.columns, device=offset.device)[None, :] + offset[..., 1, None, None]
    inside = (rows >= 0) & (rows < config.rows) & (columns >= 0) & (columns < config.columns)
    token = rows.clamp(0, config.rows - 1) * config.columns + columns.clamp(0, config.columns - 1)
    return token.flatten(-2), inside.flatten(-2)
