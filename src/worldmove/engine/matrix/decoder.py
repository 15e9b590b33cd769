"""The streaming decoder: latents to pictures, one latent frame at a time, with the past it needs in a feature cache.

Rules of this file:

1. Pictures are [frames, height, width, channels] throughout, so channels lie side by side in memory.
2. Every slot of the feature cache is replaced by a new tensor for each latent frame; none is written in place.
3. Nothing of a picture comes back into the latents: a lost slot spoils some pictures and no memory.
4. Every latent frame gives four pictures, the first one too: before a session began, its past was empty.
"""

import torch
from torch import Tensor
from torch.nn import functional as F

from worldmove.engine.matrix.config import MatrixConfig
from worldmove.engine.matrix.decoder_weights import (
    REACH,
    BlockWeights,
    CausalWeights,
    DecoderWeights,
    StageWeights,
    slot_shapes,
)

Features = list[Tensor]


def empty_features(config: MatrixConfig, device: torch.device) -> Features:
    """The feature cache of a session that has seen nothing."""
    return [torch.zeros(shape, dtype=config.decoder_dtype, device=device) for shape in slot_shapes(config)]


class Past:
    """Hands out a feature cache slot by slot, and puts new tensors in their places."""

    def __init__(self, features: Features) -> None:
        self._features = features
        self._next = 0

    def before(self, x: Tensor) -> Tensor:
        """Return ``x`` with its past before it; keep its newest frames as the next past."""
        kept = self._features[self._next]
        seen = torch.cat((kept, x))
        self._features[self._next] = seen[-len(kept) :].clone(memory_format=torch.contiguous_format)
        self._next += 1
        return seen


def decode(weights: DecoderWeights, features: Features, latents: Tensor) -> Tensor:
    """Pictures uint8 [4 * frames, height, width, 3] of latents [frames, rows, columns, channels]."""
    return torch.cat([_frame(weights, Past(features), latent[None]) for latent in latents])


def _frame(weights: DecoderWeights, past: Past, x: Tensor) -> Tensor:
    x = causal(weights.first, past, x)
    for stage in weights.stages:
        x = _stage(stage, past, x)
    return to_pixels(causal(weights.last, past, F.silu(F.rms_norm(x, x.shape[-1:], weights.gain))))


def to_pixels(rgb: Tensor) -> Tensor:
    """The nearest of 256 values for numbers from -1 to 1."""
    return rgb.float().clamp_(-1, 1).add_(1).mul_(127.5).round_().to(torch.uint8).contiguous()


def _stage(weights: StageWeights, past: Past, x: Tensor) -> Tensor:
    x = F.rms_norm(x, x.shape[-1:], weights.gain)
    for block in weights.blocks:
        x = _block(block, past, x)
    if weights.time is not None:
        x = double_time(weights.time, past, x)
    if weights.space is not None:
        x = double_space(weights.space, x)
    return x


def _block(weights: BlockWeights, past: Past, x: Tensor) -> Tensor:
    first, second = weights.convs
    change = causal(first, past, F.silu(x))
    change = causal(second, past, F.silu(change, inplace=True))
    return change.add_(x if weights.shortcut is None else F.linear(x, *weights.shortcut))


def causal(weights: CausalWeights, past: Past, x: Tensor) -> Tensor:
    """Mix each frame with its past, then its channels."""
    seen = mixed(weights.share, past.before(x))
    return F.linear(seen, weights.weight) if weights.weight.dim() == 2 else conv(weights.weight, seen)


def mixed(share: float, seen: Tensor) -> Tensor:
    """Each frame with the one two before it: two frames less than ``seen``."""
    return torch.lerp(seen[:-REACH], seen[REACH:], share)


def double_time(shares: tuple[float, float], past: Past, x: Tensor) -> Tensor:
    """Two frames from each and its past."""
    seen = past.before(x)
    return torch.stack([mixed(share, seen) for share in shares], dim=1).flatten(0, 1)


def double_space(weight: Tensor, x: Tensor) -> Tensor:
    """Four pixels from each and its neighbours."""
    squares = conv(weight, x).unflatten(-1, (2, 2, -1)).permute(0, 1, 3, 2, 4, 5)
    return squares.flatten(3, 4).flatten(1, 2)


def conv(weight: Tensor, x: Tensor) -> Tensor:
    return F.conv2d(x.permute(0, 3, 1, 2), weight, padding=1).permute(0, 2, 3, 1)
