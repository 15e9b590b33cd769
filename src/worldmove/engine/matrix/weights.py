"""Weights, drawn from a seed on the device that computes: under them all that a session holds matters to its pictures.

Every branch reads its input normalised, so nothing that is stored grows with the length of a session.
"""

import hashlib
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from worldmove.engine.matrix.config import (
    ACTION_WINDOW,
    FRAMES_PER_LATENT,
    KEYBOARD_CHANNELS,
    MASK_CHANNELS,
    MOUSE_CHANNELS,
    PATCH,
    MatrixConfig,
)

LEVEL_WAVES = 128


class Linear(NamedTuple):
    """A weight [out, in] and a bias [out], in the order that ``F.linear`` takes them."""

    weight: Tensor
    bias: Tensor


class Draw:
    """Draws one tensor after another from one generator of its own."""

    def __init__(self, seed: int, device: torch.device, dtype: torch.dtype) -> None:
        self._generator = torch.Generator(device).manual_seed(seed)
        self._device, self._dtype = device, dtype

    def normal(self, *shape: int, std: float, mean: float = 0.0) -> Tensor:
        drawn = torch.empty(shape, dtype=self._dtype, device=self._device)
        return drawn.normal_(mean, std, generator=self._generator)

    def linear(self, into: int, out: int, gain: float = 1.0) -> Linear:
        return Linear(self.normal(out, into, std=gain * into**-0.5), self.normal(out, std=0.02))

    def gains(self, *shape: int) -> Tensor:
        return self.normal(*shape, mean=1.0, std=0.1)


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionWeights:
    """One layer's action module."""

    mix: Linear
    mouse: Linear
    qkv: Linear
    mouse_out: Linear
    query: Linear
    key: Linear
    key_value: Linear
    keyboard_out: Linear


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerWeights:
    """One layer. ``action`` is None where it does not work."""

    table: Tensor
    qkv: Linear
    out: Linear
    cross_query: Linear
    cross_key_value: Linear
    cross_gains: Tensor
    cross_out: Linear
    action: ActionWeights | None
    up: Linear
    down: Linear


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixWeights:
    """The whole transformer."""

    patch: Linear
    condition: Linear
    visual: tuple[Linear, Linear]
    level: tuple[Linear, Linear]
    modulation: Linear
    layers: tuple[LayerWeights, ...]
    final_table: Tensor
    readout: Linear


def draw_weights(config: MatrixConfig, draw: Draw) -> MatrixWeights:
    """Draw the transformer."""
    dim = config.dim
    return MatrixWeights(
        patch=draw.linear(config.patch_dim, dim),
        condition=draw.linear(PATCH * PATCH * (MASK_CHANNELS + config.latent_channels), dim),
        visual=(draw.linear(config.visual_dim, dim), draw.linear(dim, dim)),
        level=(draw.linear(2 * LEVEL_WAVES, dim), draw.linear(dim, dim)),
        modulation=draw.linear(dim, 6 * dim, gain=0.5),
        layers=tuple(_layer(config, draw, index) for index in range(config.num_layers)),
        final_table=draw.normal(2, dim, std=0.1),
        readout=draw.linear(dim, config.patch_dim),
    )


def _layer(config: MatrixConfig, draw: Draw, index: int) -> LayerWeights:
    dim = config.dim
    return LayerWeights(
        table=draw.normal(6, dim, std=0.1, mean=0.3),
        qkv=draw.linear(dim, 3 * dim),
        out=draw.linear(dim, dim),
        cross_query=draw.linear(dim, dim),
        cross_key_value=draw.linear(dim, 2 * dim),
        cross_gains=draw.gains(2, dim),
        cross_out=draw.linear(dim, dim, gain=0.3),
        action=_action(config, draw) if index < config.action.num_layers else None,
        up=draw.linear(dim, config.mlp_dim),
        down=draw.linear(config.mlp_dim, dim),
    )


def _action(config: MatrixConfig, draw: Draw) -> ActionWeights:
    action, seen = config.action, ACTION_WINDOW * FRAMES_PER_LATENT
    return ActionWeights(
        mix=draw.linear(config.dim, action.dim),
        mouse=draw.linear(seen * MOUSE_CHANNELS, action.dim, gain=2.0),
        qkv=draw.linear(action.dim, 3 * action.dim),
        mouse_out=draw.linear(action.dim, config.dim),
        query=draw.linear(config.dim, action.dim),
        key=draw.linear(KEYBOARD_CHANNELS, action.key_dim, gain=2.0),
        key_value=draw.linear(seen * action.key_dim, 2 * action.dim),
        keyboard_out=draw.linear(action.dim, config.dim),
    )


def name_of(preset: str, seed: int) -> str:
    """SHA-256 that stands for drawn weights: of what they are drawn from. The canary stands for their bytes."""
    return hashlib.sha256(f"matrix {preset} seed {seed}".encode()).hexdigest()
