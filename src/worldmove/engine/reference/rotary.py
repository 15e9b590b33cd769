"""Where a token stands in the world, as turns of its query's and key's channel pairs."""

import torch
from torch import Tensor

from worldmove.engine.reference.config import ReferenceConfig, RotaryBand


def speeds(band: RotaryBand) -> Tensor:
    """Radians a unit for each channel pair of a band, float64."""
    exponents = torch.linspace(0, 1, band.num_pairs, dtype=torch.float64)
    return band.fastest * (band.slowest / band.fastest) ** exponents


def angles(config: ReferenceConfig, poses: Tensor, frames: Tensor) -> Tensor:
    """Turn of every token: float64 [batch, frames, tiles, pairs], from ``poses`` [batch, frames, 2] and ``frames``.

    Positions are absolute and float64, so a session may last, and travel, as long as it likes.
    """
    rows = torch.arange(config.rows, dtype=torch.float64, device=poses.device)
    columns = torch.arange(config.columns, dtype=torch.float64, device=poses.device)
    shape = (*poses.shape[:2], config.rows, config.columns)
    y = (poses[..., 0, None].double() + rows)[..., :, None].expand(shape)
    x = (poses[..., 1, None].double() + columns)[..., None, :].expand(shape)
    t = frames.double()[..., None, None].expand(shape)
    turns = [c[..., None] * speeds(band).to(poses.device) for c, band in zip((y, x, t), config.bands, strict=True)]
    return torch.cat(turns, dim=-1).flatten(2, 3)


def rotation(turns: Tensor) -> Tensor:
    """Cosines and sines in float32: [..., pairs, 2]."""
    return torch.stack((turns.cos(), turns.sin()), dim=-1).float()


def rotate(channels: Tensor, turns: Tensor) -> Tensor:
    """Turn pairs of neighbouring channels, [..., head_dim], by ``turns``: [..., pairs, 2], or complex [..., pairs].

    Complex turns cost one pass over the channels instead of eight; a compiled graph does better with real ones.
    """
    pairs = channels.unflatten(-1, (-1, 2))
    if turns.is_complex():
        return torch.view_as_real(torch.view_as_complex(pairs) * turns).flatten(-2)
    even, odd = pairs.unbind(-1)
    cosine, sine = turns.unbind(-1)
    return torch.stack((even * cosine - odd * sine, even * sine + odd * cosine), dim=-1).flatten(-2)
