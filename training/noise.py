"""Random things of training: canvases, noise levels, damaged contexts."""

import torch
from torch import Tensor

from worldmove.engine.reference.config import ReferenceConfig
from worldmove.engine.reference.sampler import canvas_shape, crop_noise


def block_noise(config: ReferenceConfig, poses: Tensor, generator: torch.Generator) -> Tensor:
    """Noise as play paints it, a canvas for each block: [batch, frames, tiles, patch_dim]."""
    blocks = poses.unflatten(1, (-1, config.frames_per_block)).flatten(0, 1)
    shape = (blocks.shape[0], *canvas_shape(config))
    canvas = torch.randn(shape, generator=generator, device=poses.device)
    return crop_noise(config, canvas, blocks).unflatten(0, (poses.shape[0], -1)).flatten(1, 2)


def levels(
    config: ReferenceConfig, shape: tuple[int, int], shares: tuple[float, float], generator: torch.Generator
) -> Tensor:
    """A noise level for each block, repeated for its frames: float32 [batch, frames].

    ``shares``: how many are exactly 1, and how many of the rest's are uniform in 0.5..1; the others in 0.02..0.75.
    """
    batch, num_frames = shape
    blocks = (batch, num_frames // config.frames_per_block)
    u = torch.rand((3, *blocks), generator=generator, device=generator.device)
    drawn = torch.where(u[0] < shares[0] + shares[1], 0.5 + 0.5 * u[1], 0.02 + 0.73 * u[2])
    drawn = torch.where(u[0] < shares[0], torch.ones_like(drawn), drawn)
    return drawn.repeat_interleave(config.frames_per_block, dim=1)


def per_block(config: ReferenceConfig, shape: tuple[int, int], share: float, generator: torch.Generator) -> Tensor:
    """A choice for each block, repeated for its frames: bool [batch, frames, 1, 1]."""
    blocks = (shape[0], shape[1] // config.frames_per_block)
    picked = torch.rand(blocks, generator=generator, device=generator.device) < share
    return picked.repeat_interleave(config.frames_per_block, dim=1)[..., None, None]


def one_of(config: ReferenceConfig, shape: tuple[int, int], count: int, generator: torch.Generator) -> Tensor:
    """One of ``count`` for each block, repeated for its frames: int64 [batch, frames]."""
    blocks = (shape[0], shape[1] // config.frames_per_block)
    picked = torch.randint(count, blocks, generator=generator, device=generator.device)
    return picked.repeat_interleave(config.frames_per_block, dim=1)


def damaged(config: ReferenceConfig, clean: Tensor, generator: torch.Generator) -> Tensor:
    """A context to learn from: 40% of sequences clean, else noise of up to 0.3, another for each block."""
    batch, num_frames = clean.shape[:2]
    device = clean.device
    sigma = 0.3 * torch.rand((batch, num_frames // config.frames_per_block), generator=generator, device=device)
    sigma = sigma * (torch.rand((batch, 1), generator=generator, device=device) > 0.4)
    sigma = sigma.repeat_interleave(config.frames_per_block, dim=1)[..., None, None]
    return clean + sigma * torch.randn(clean.shape, generator=generator, device=device)


def blend(clean: Tensor, noise: Tensor, level: Tensor) -> Tensor:
    """The picture at a noise level [batch, frames]: level 0 is clean, 1 is noise."""
    return torch.lerp(clean, noise, level[..., None, None])


def loss_of(guess: Tensor, target: Tensor, level: Tensor) -> Tensor:
    """Squared error of the velocity that a guess stands for, without the blow-up near level 0."""
    error = (guess.float() - target).square().mean(dim=(-2, -1))
    return (error / level.clamp(min=0.3).square()).mean()
