"""The transformer in play: three denoise passes and a clean one make a block's latents, and write its memory.

Latents are kept as patches, [1, tokens, patch_dim]: only the decoder wants them as pictures.
"""

import math
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor
from torch.nn import functional as F

from worldmove.engine.matrix.caches import CROSS, ROLLING, Caches, mark, num_working, place_of
from worldmove.engine.matrix.capturing import Player
from worldmove.engine.matrix.conditioning import BlockConditions
from worldmove.engine.matrix.config import MatrixConfig
from worldmove.engine.matrix.layer import fill, modulate, run_layer
from worldmove.engine.matrix.rotary import frame_turns, place_angles, token_turns
from worldmove.engine.matrix.weights import LEVEL_WAVES, MatrixWeights
from worldmove.engine.matrix.workspace import NUM_VECTORS, Places, load, make_workspace, save

SLOWEST = 10_000.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelTable:
    """What one noise level does to the layers, [layers, 6, dim], and to the read-out."""

    layers: Tensor
    final: tuple[Tensor, Tensor]


class Transformer:
    """The model of one engine. It holds no session's memory."""

    def __init__(self, config: MatrixConfig, weights: MatrixWeights, device: torch.device) -> None:
        self._config, self._weights, self._device = config, weights, device
        self._angles = place_angles(config, device)
        self._tables = [level_table(weights, level) for level in (*config.levels, 0.0)]
        self.workspace = make_workspace(config, device)
        self._play = Player()

    def generate(self, caches: Caches, conditions: BlockConditions, generator: torch.Generator, frame: int) -> Tensor:
        """Make the block at latent frame ``frame``: its clean patches, [1, tokens, patch_dim]. Caches then hold it."""
        places = places_of(self._config, frame)
        self._begin(caches, conditions, frame, places)
        base = F.linear(conditions.scene, *self._weights.condition)
        noisy = clean = self._noise(generator)
        lower = (*self._config.levels[1:], 0.0)
        for index, level in enumerate(self._config.levels):
            self._enter(base, noisy, self._tables[index])
            for layer in range(self._config.num_layers):
                self._layer(layer, places)
            clean = torch.sub(noisy, self._read(self._tables[index]), alpha=level)
            if lower[index]:
                noisy = torch.lerp(clean, self._noise(generator), lower[index])
        self._enter(base, clean, self._tables[-1])
        for layer in range(self._config.num_layers):
            self._layer(layer, places)
            save(self.workspace, caches, layer, places)
        return clean

    def capture(self) -> None:
        """Capture every layer at every length of its window. Blocks of all these lengths were made on this stream."""
        for frame in range(0, self._config.window, self._config.frames_per_block):
            places = places_of(self._config, frame)
            for index in range(self._config.num_layers):
                self._play.capture((index, places["self"].stop), partial(self._work, index, places))

    def _layer(self, index: int, places: Places) -> None:
        self._play((index, places["self"].stop), partial(self._work, index, places))

    def _work(self, index: int, places: Places) -> None:
        run_layer(self._config, self._weights.layers[index], self.workspace, index, places)

    def _begin(self, caches: Caches, conditions: BlockConditions, frame: int, places: Places) -> None:
        """Bring all that the block's passes read."""
        config, space = self._config, self.workspace
        if not all(cache["is_init"] for cache in caches[CROSS]):
            self._fill(caches, conditions.visual)
        load(space, caches, places)
        for kind in ROLLING:
            mark(caches[kind][: num_working(config, kind)], places[kind])
        space.token_turns.copy_(token_turns(config, self._angles, frame))
        space.frame_turns.copy_(frame_turns(config, frame, self._device))
        space.mouse.copy_(conditions.mouse)
        space.keyboard.copy_(conditions.keyboard)

    def _fill(self, caches: Caches, visual: Tensor) -> None:
        into, out = self._weights.visual
        context = F.linear(F.gelu(F.linear(F.layer_norm(visual, visual.shape[-1:]), *into)), *out)
        for weights, cache in zip(self._weights.layers, caches[CROSS], strict=True):
            if not cache["is_init"]:
                fill(self._config, weights, cache, context)

    def _noise(self, generator: torch.Generator) -> Tensor:
        shape = (1, self._config.tokens_per_block, self._config.patch_dim)
        return torch.randn(shape, generator=generator, dtype=self._config.dtype, device=self._device)

    def _enter(self, base: Tensor, patches: Tensor, table: LevelTable) -> None:
        """Put a pass's tokens and its level where the layers find them."""
        torch.add(base, F.linear(patches, *self._weights.patch), out=self.workspace.x)
        self.workspace.modulation.copy_(table.layers)

    def _read(self, table: LevelTable) -> Tensor:
        return F.linear(modulate(self.workspace.x, *table.final), *self._weights.readout)


def places_of(config: MatrixConfig, frame: int) -> Places:
    """Where the block at latent frame ``frame`` goes in caches of each kind."""
    tokens, frames = (place_of(config, frame, rows) for rows in (config.tokens_per_frame, 1))
    return {"self": tokens, "mouse": frames, "keyboard": frames}


def level_table(weights: MatrixWeights, level: float) -> LevelTable:
    """Compute once what a noise level, 0 to 1, does to every layer."""
    table = weights.final_table
    waves = torch.exp(-math.log(SLOWEST) * torch.arange(LEVEL_WAVES, dtype=torch.float64) / LEVEL_WAVES)
    turns = 1000 * level * waves
    wave = torch.cat((turns.cos(), turns.sin())).to(device=table.device, dtype=table.dtype)
    into, out = weights.level
    mixed = F.linear(F.silu(F.linear(F.silu(F.linear(wave, *into)), *out)), *weights.modulation)
    shared = mixed.unflatten(0, (NUM_VECTORS, -1))
    layers = torch.stack([shared + layer.table for layer in weights.layers])
    layers[:, 1::3] += 1  # the scales
    return LevelTable(layers=layers, final=(shared[0] + table[0], shared[1] + table[1] + 1))
