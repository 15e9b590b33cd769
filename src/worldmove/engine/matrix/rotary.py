"""Where a token stands in time and picture, as turns of its query's and key's channel pairs.

Turns are computed from absolute positions, in float64: no table ends, so a session may last as long as it likes.
"""

import torch
from torch import Tensor

from worldmove.engine.matrix.config import PATCH, MatrixConfig

BASE = 10_000.0


def speeds(num_pairs: int, device: torch.device) -> Tensor:
    """Radians a step for each channel pair, falling geometrically from 1; float64."""
    return BASE ** (-torch.arange(num_pairs, dtype=torch.float64, device=device) / num_pairs)


def place_angles(config: MatrixConfig, device: torch.device) -> Tensor:
    """How a token turns with its row and column: float64 [tokens a frame, pairs], the same in every frame."""
    along = config.head_dim // 6
    rows = torch.arange(config.rows // PATCH, dtype=torch.float64, device=device)
    columns = torch.arange(config.columns // PATCH, dtype=torch.float64, device=device)
    y = torch.outer(rows, speeds(along, device))[:, None].expand(-1, len(columns), -1)
    x = torch.outer(columns, speeds(along, device))[None].expand(len(rows), -1, -1)
    return torch.cat((y, x), dim=-1).flatten(0, 1)


def time_angles(num_pairs: int, frame: int, num_frames: int, device: torch.device) -> Tensor:
    """How latent frames turn with time: float64 [frames, pairs]."""
    times = torch.arange(frame, frame + num_frames, dtype=torch.float64, device=device)
    return torch.outer(times, speeds(num_pairs, device))


def token_turns(config: MatrixConfig, place: Tensor, frame: int) -> Tensor:
    """Turns of a block's tokens: complex64 [frames * tokens, 1, 1, pairs]."""
    num_pairs = config.head_dim // 2 - place.shape[-1]
    time = time_angles(num_pairs, frame, config.frames_per_block, place.device)
    both = torch.cat(
        (time[:, None].expand(-1, len(place), -1), place[None].expand(len(time), -1, -1)),
        dim=-1,
    )
    return as_turns(both.flatten(0, 1))[:, None, None]


def frame_turns(config: MatrixConfig, frame: int, device: torch.device) -> Tensor:
    """Turns of a block's frames in the action module: complex64 [frames, 1, 1, pairs]."""
    angles = time_angles(config.action.head_dim // 2, frame, config.frames_per_block, device)
    return as_turns(angles)[:, None, None]


def as_turns(angles: Tensor) -> Tensor:
    return torch.polar(torch.ones_like(angles), angles).to(torch.complex64)


def rotate(channels: Tensor, turns: Tensor) -> Tensor:
    """Turn pairs of neighbouring channels, [..., head_dim]; returns float32."""
    pairs = torch.view_as_complex(channels.float().unflatten(-1, (-1, 2)))
    return torch.view_as_real(pairs * turns).flatten(-2)
