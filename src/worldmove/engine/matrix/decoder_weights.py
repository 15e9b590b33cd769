"""The decoder's shape and weights: 32 convolutions that see the past, and a feature cache slot for each.

A causal convolution mixes a frame with the one two before it, and then all channels over 3x3 pixels or, the second one
of a residual block, at one pixel: a fifth of the arithmetic of full kernels over time and space, and the same past to
remember.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from worldmove.engine.matrix.config import MatrixConfig
from worldmove.engine.matrix.weights import Draw, Linear

BLOCKS_PER_STAGE = 3
RGB = 3


REACH = 2
"""Frames before its own that a causal convolution reaches back to, and keeps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StageShape:
    """Residual blocks at one resolution: channels in and out, and what is doubled behind them."""

    into: int
    out: int
    doubles_time: bool
    doubles_space: bool


def stages(width: int) -> tuple[StageShape, ...]:
    """From a latent's resolution to a pixel's."""
    return (
        StageShape(into=4 * width, out=4 * width, doubles_time=True, doubles_space=True),
        StageShape(into=2 * width, out=4 * width, doubles_time=True, doubles_space=True),
        StageShape(into=2 * width, out=2 * width, doubles_time=False, doubles_space=True),
        StageShape(into=width, out=width, doubles_time=False, doubles_space=False),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CausalWeights:
    """``weight`` is [out, in, 3, 3], or [out, in] for one pixel. ``share``: the newer frame's in a mixture."""

    share: float
    weight: Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockWeights:
    """A residual block; ``shortcut`` where its channels change."""

    convs: tuple[CausalWeights, CausalWeights]
    shortcut: Linear | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StageWeights:
    """``time``: the shares of two frames, where it is doubled. ``space``: [4 * out, in, 3, 3], where the picture is."""

    gain: Tensor
    blocks: tuple[BlockWeights, ...]
    time: tuple[float, float] | None
    space: Tensor | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DecoderWeights:
    """The whole decoder."""

    first: CausalWeights
    stages: tuple[StageWeights, ...]
    gain: Tensor
    last: CausalWeights


def draw_decoder(config: MatrixConfig, width: int, draw: Draw) -> DecoderWeights:
    """Draw a decoder with so many channels at its full resolution."""
    wide = 4 * width
    blocks = tuple(_block(draw, wide, wide) for _ in range(2))
    middle = StageWeights(gain=draw.gains(wide), blocks=blocks, time=None, space=None)
    return DecoderWeights(
        first=_causal(draw, config.latent_channels, wide),
        stages=(middle, *(_stage(draw, shape) for shape in stages(width))),
        gain=draw.gains(width),
        last=_causal(draw, width, RGB, gain=0.4),
    )


def _stage(draw: Draw, shape: StageShape) -> StageWeights:
    into = (shape.into, *[shape.out] * (BLOCKS_PER_STAGE - 1))
    return StageWeights(
        gain=draw.gains(shape.into),
        blocks=tuple(_block(draw, channels, shape.out) for channels in into),
        time=(_share(draw), _share(draw)) if shape.doubles_time else None,
        space=_conv(draw, shape.out, 4 * (shape.out // 2)) if shape.doubles_space else None,
    )


def _block(draw: Draw, into: int, out: int) -> BlockWeights:
    return BlockWeights(
        convs=(_causal(draw, into, out), _causal(draw, out, out, side=1)),
        shortcut=None if into == out else draw.linear(into, out),
    )


def _causal(draw: Draw, into: int, out: int, *, side: int = 3, gain: float = 1.0) -> CausalWeights:
    weight = draw.linear(into, out, gain).weight if side == 1 else _conv(draw, into, out, gain)
    return CausalWeights(share=_share(draw), weight=weight)


def _share(draw: Draw) -> float:
    return float(draw.normal(1, mean=0.6, std=0.1))


def _conv(draw: Draw, into: int, out: int, gain: float = 1.0) -> Tensor:
    weight = draw.normal(out, into, 3, 3, std=gain * (9 * into) ** -0.5)
    return weight.contiguous(memory_format=torch.channels_last)


def slot_shapes(config: MatrixConfig) -> list[tuple[int, int, int, int]]:
    """Of each slot of the feature cache, in the order of use: two frames of what its convolution was given.

    [frames, height, width, channels]. None where there is no decoder.
    """
    rows, columns, width = config.rows, config.columns, config.decoder_width
    if width is None:
        return []
    channels = [config.latent_channels] + 4 * [4 * width]
    shapes = [(REACH, rows, columns, count) for count in channels]
    for shape in stages(width):
        channels = [shape.into] + (2 * BLOCKS_PER_STAGE - 1) * [shape.out] + shape.doubles_time * [shape.out]
        shapes += [(REACH, rows, columns, count) for count in channels]
        rows, columns = rows << shape.doubles_space, columns << shape.doubles_space
    return [*shapes, (REACH, rows, columns, width)]
