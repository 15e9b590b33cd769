"""The transformer in play: three denoise passes and a clean one make a block's latents, and write its memory.

Latents are kept as patches, [1, tokens, patch_dim]: only the decoder wants them as pictures.
"""

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn import functional as F

from worldmove.engine.matrix.action_module import act
from worldmove.engine.matrix.caches import CROSS, Caches, place_of
from worldmove.engine.matrix.conditioning import BlockConditions
from worldmove.engine.matrix.config import MatrixConfig
from worldmove.engine.matrix.layer import (
    Modulation,
    Pass,
    cross_attention,
    feed_forward,
    modulate,
    self_attention,
)
from worldmove.engine.matrix.rotary import frame_turns, place_angles, token_turns
from worldmove.engine.matrix.weights import LEVEL_WAVES, MatrixWeights

SLOWEST = 10_000.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelTables:
    """What one noise level does to each layer, and to the read-out."""

    layers: tuple[Modulation, ...]
    final: tuple[Tensor, Tensor]


class Transformer:
    """The model of one engine. It holds no session's memory."""

    def __init__(self, config: MatrixConfig, weights: MatrixWeights, device: torch.device) -> None:
        self._config, self._weights, self._device = config, weights, device
        self._place = place_angles(config, device)
        self._tables = [level_tables(weights, level) for level in (*config.levels, 0.0)]

    def generate(self, caches: Caches, conditions: BlockConditions, generator: torch.Generator, frame: int) -> Tensor:
        """Make the block at latent frame ``frame``: its clean patches, [1, tokens, patch_dim]. Caches then hold it."""
        shared = self._shared(caches, conditions, frame)
        base = F.linear(conditions.scene, *self._weights.condition)
        noisy = clean = self._noise(generator)
        lower = (*self._config.levels[1:], 0.0)
        for index, level in enumerate(self._config.levels):
            x = self._pass(caches, shared, base, noisy, self._tables[index])
            clean = torch.sub(noisy, self._read(x, self._tables[index]), alpha=level)
            if lower[index]:
                noisy = torch.lerp(clean, self._noise(generator), lower[index])
            shared = following(shared)
        self._pass(caches, shared, base, clean, self._tables[-1])
        return clean

    def _shared(self, caches: Caches, conditions: BlockConditions, frame: int) -> Pass:
        config, device = self._config, self._device
        filled = all(cache["is_init"] for cache in caches[CROSS])
        return Pass(
            tokens=place_of(config, frame, config.tokens_per_frame, is_first=True),
            frames=place_of(config, frame, 1, is_first=True),
            token_turns=token_turns(config, self._place, frame),
            frame_turns=frame_turns(config, frame, device),
            mouse=conditions.mouse,
            keyboard=conditions.keyboard,
            context=None if filled else self._context(conditions.visual),
        )

    def _context(self, visual: Tensor) -> Tensor:
        into, out = self._weights.visual
        context: Tensor = F.linear(F.gelu(F.linear(F.layer_norm(visual, visual.shape[-1:]), *into)), *out)
        return context

    def _noise(self, generator: torch.Generator) -> Tensor:
        shape = (1, self._config.tokens_per_block, self._config.patch_dim)
        return torch.randn(shape, generator=generator, dtype=self._config.dtype, device=self._device)

    def _pass(self, caches: Caches, shared: Pass, base: Tensor, patches: Tensor, tables: LevelTables) -> Tensor:
        config = self._config
        x = base + F.linear(patches, *self._weights.patch)
        for index, weights in enumerate(self._weights.layers):
            modulation = tables.layers[index]
            x = self_attention(config, weights, modulation, caches["self"][index], shared, x)
            x = cross_attention(config, weights, caches[CROSS][index], shared, x)
            if weights.action is not None:
                x = act(config, weights.action, caches["mouse"][index], caches["keyboard"][index], shared, x)
            x = feed_forward(weights, modulation, x)
        return x

    def _read(self, x: Tensor, tables: LevelTables) -> Tensor:
        return F.linear(modulate(x, *tables.final), *self._weights.readout)


def following(shared: Pass) -> Pass:
    """What a block's later passes share: nothing rolls any more, and the session's picture has been taken in."""
    tokens, frames = (replace(place, shift=0, is_first=False) for place in (shared.tokens, shared.frames))
    return replace(shared, tokens=tokens, frames=frames, context=None)


def level_tables(weights: MatrixWeights, level: float) -> LevelTables:
    """Compute once what a noise level, 0 to 1, does to every layer."""
    table = weights.final_table
    waves = torch.exp(-math.log(SLOWEST) * torch.arange(LEVEL_WAVES, dtype=torch.float64) / LEVEL_WAVES)
    turns = 1000 * level * waves
    wave = torch.cat((turns.cos(), turns.sin())).to(device=table.device, dtype=table.dtype)
    into, out = weights.level
    shared = F.linear(F.silu(F.linear(F.silu(F.linear(wave, *into)), *out)), *weights.modulation).unflatten(0, (6, -1))
    return LevelTables(
        layers=tuple(modulation_of(shared + layer.table) for layer in weights.layers),
        final=(shared[0] + table[0], shared[1] + table[1] + 1),
    )


def modulation_of(table: Tensor) -> Modulation:
    shift, scale, gate, mlp_shift, mlp_scale, mlp_gate = table.unbind()
    return Modulation(shift, scale + 1, gate, mlp_shift, mlp_scale + 1, mlp_gate)
