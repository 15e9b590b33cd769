"""Batches of training sequences: maps, walks and the pictures that they make together."""

from dataclasses import dataclass

import torch
from torch import Tensor

from training import tiles
from training.country import SIDE, maps
from training.walks import FLAG
from worldmove.engine.reference.config import ReferenceConfig
from worldmove.engine.reference.pictures import to_patches

STEPS = torch.tensor([[0, 0], [-1, 0], [1, 0], [0, -1], [0, 1], [0, 0]])
"""(y, x) of each action."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenes:
    """``patches`` float32 [batch, frames, tiles, patch_dim]; ``tiles`` int64 [batch, frames, tiles];
    ``poses`` int64 [batch, frames, 2]; ``actions`` int64 [batch, frames]."""

    patches: Tensor
    tiles: Tensor
    poses: Tensor
    actions: Tensor


def tile_patches(config: ReferenceConfig, device: torch.device | str) -> tuple[Tensor, Tensor]:
    """Patches of all tiles, [2 * NUM_PLAIN, patch_dim], plain and under the crosshair."""
    drawn = tiles.pictures()
    plain, marked = (torch.from_numpy(p).flatten(1).to(device) for p in (drawn, tiles.with_crosshair(drawn)))
    assert plain.shape[1] == config.patch_dim
    return plain.float() / 127.5 - 1, marked.float() / 127.5 - 1


def scenes(config: ReferenceConfig, actions: Tensor, generator: torch.Generator) -> Scenes:
    """Play walks, int64 [batch, frames], each on a fresh map."""
    device = actions.device
    count = actions.shape[0]
    country = maps(count, generator)
    moves = STEPS.to(device)[actions]
    poses = moves.cumsum(dim=1)
    start = torch.randint(SIDE, (count, 1, 2), generator=generator, device=device)
    rows, columns = torch.arange(config.rows, device=device), torch.arange(config.columns, device=device)
    y = (poses[..., 0, None] + start[..., 0, None] + rows) % SIDE
    x = (poses[..., 1, None] + start[..., 1, None] + columns) % SIDE
    batch = torch.arange(count, device=device)[:, None, None, None]
    shown = country[batch, y[..., :, None], x[..., None, :]].flatten(2)
    shown = shown + tiles.NUM_PLAIN * flags(config, poses, actions)
    return Scenes(patches=paint(config, shown), tiles=shown, poses=poses, actions=actions)


def flags(config: ReferenceConfig, poses: Tensor, actions: Tensor) -> Tensor:
    """Which tiles carry a flag: int64 [batch, frames, tiles]. A tile's flag is there after an odd number of presses."""
    rows, columns = torch.meshgrid(torch.arange(config.rows), torch.arange(config.columns), indexing="ij")
    cells = torch.stack((rows.flatten(), columns.flatten()), dim=-1).to(poses.device) - torch.tensor(
        tiles.CROSSHAIR, device=poses.device
    )
    num_frames = actions.shape[1]
    apart = poses[:, None, :] - poses[:, :, None]  # [batch, frame, press, 2]
    earlier = torch.ones(num_frames, num_frames, dtype=torch.bool, device=poses.device).tril()
    pressed = (actions == FLAG)[:, None, :] & earlier
    hits = (apart[..., None, :] == cells).all(dim=-1) & pressed[..., None]
    return hits.sum(dim=2) % 2


def crosshair_token(config: ReferenceConfig) -> int:
    return tiles.CROSSHAIR[0] * config.columns + tiles.CROSSHAIR[1]


def paint(config: ReferenceConfig, shown: Tensor) -> Tensor:
    """Patches of tile indices [..., tiles]."""
    plain, marked = tile_patches(config, shown.device)
    patches = plain[shown]
    token = crosshair_token(config)
    patches[..., token, :] = marked[shown[..., token]]
    return patches


def nearest(config: ReferenceConfig, patches: Tensor) -> tuple[Tensor, Tensor]:
    """Nearest tile of each patch and the RMS distance to it: each [..., tiles]."""
    plain, marked = tile_patches(config, patches.device)
    token = crosshair_token(config)
    distances = apart(patches, plain)
    distances[..., token, :] = apart(patches[..., token, :], marked)
    least, index = distances.min(dim=-1)
    return index, least / config.patch_dim**0.5


def apart(patches: Tensor, pictures: Tensor) -> Tensor:
    """Distances [..., count] to each of ``pictures`` [count, patch_dim]. No products: they would round small ones."""
    flat = patches.float().flatten(0, -2)
    return torch.cdist(flat, pictures, compute_mode="donot_use_mm_for_euclid_dist").unflatten(0, patches.shape[:-1])


def tiles_of_frames(config: ReferenceConfig, frames: Tensor) -> Tensor:
    """Nearest tile of each place of uint8 frames [..., height, width, 3]: int64 [..., tiles]."""
    return nearest(config, to_patches(config, frames))[0]
