"""One block of pictures from noise, and its rows in the caches."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

from worldmove.engine.reference.caches import Cache, make_room
from worldmove.engine.reference.config import ReferenceConfig
from worldmove.engine.reference.model import ReferenceModel
from worldmove.engine.reference.pictures import to_frames, to_patches
from worldmove.engine.reference.rotary import angles, rotation


def canvas_shape(config: ReferenceConfig) -> tuple[int, int, int]:
    """A block's noise is painted on the world: as much of it as the block's frames can show."""
    margin = 2 * (config.frames_per_block - 1)
    return config.rows + margin, config.columns + margin, config.patch_dim


def crop_noise(config: ReferenceConfig, canvas: Tensor, poses: Tensor) -> Tensor:
    """Noise of each frame, [batch, frames, tiles, patch_dim]: two frames that see one place see one noise.

    ``canvas``: [batch, *canvas_shape]; ``poses``: int64 [batch, frames, 2], one step apart at most.
    """
    offsets = poses - poses[:, :1] + config.frames_per_block - 1
    y = offsets[..., 0, None] + torch.arange(config.rows, device=poses.device)
    x = offsets[..., 1, None] + torch.arange(config.columns, device=poses.device)
    batch = torch.arange(canvas.shape[0], device=poses.device)[:, None, None, None]
    return canvas[batch, y[..., :, None], x[..., None, :]].flatten(2, 3)


def unheard(_: int) -> None:
    """Nobody wants to know which layers are final."""


class Sampler:
    """The model in play: it steps any number of sessions that stand at the same frame (an engine: one)."""

    def __init__(self, model: ReferenceModel) -> None:
        self.model = model
        self.config = model.config
        self._conditions = {level: self._conditions_at(level) for level in (*self.config.levels, 0.0)}

    def _conditions_at(self, level: float) -> tuple[Tensor, list[Tensor]]:
        """Shared conditioning [actions, 6, dim], and each layer's modulation, at one noise level."""
        actions = torch.arange(self.model.action.num_embeddings, device=self.model.place.device)
        with torch.no_grad():
            shared = self.model.condition(torch.full_like(actions, level, dtype=torch.float32), actions)
            tables = [shared + self.model.layer(i).table for i in range(self.config.num_layers)]
        return shared, tables

    def advance(
        self,
        caches: list[Cache],
        filled: list[int],
        *,
        poses: Tensor,
        actions: Tensor,
        frame: int,
        canvas: Tensor,
        on_layer: Callable[[int], None] = unheard,
    ) -> Tensor:
        """Draw the block at ``frame``; returns its frames, uint8 [batch, frames, height, width, 3].

        ``on_layer``: told each layer whose caches are final.

        Caches and ``filled`` then include it. ``poses``: int64 [batch, frames, 2]; ``actions``: int64 [batch, frames].
        """
        turns = self.turns(poses, frame)
        filled[:] = make_room(self.config, caches, filled)
        noisy = crop_noise(self.config, canvas, poses)
        for level, lower in zip(self.config.levels, (*self.config.levels[1:], 0.0), strict=True):
            clean = self.guess(noisy, level, actions, turns, caches, filled)
            noisy = torch.lerp(clean, noisy, lower / level)
        frames = to_frames(self.config, noisy)
        # The memory is written from the picture as it is shown, so that a picture and its memory never differ.
        self.remember(to_patches(self.config, frames), actions, turns, caches, filled, on_layer)
        return frames

    def write(
        self, caches: list[Cache], filled: list[int], *, poses: Tensor, actions: Tensor, frame: int, frames: Tensor
    ) -> None:
        """Remember given pictures as the block at ``frame``: uint8 [batch, frames, height, width, 3]."""
        filled[:] = make_room(self.config, caches, filled)
        self.remember(to_patches(self.config, frames), actions, self.turns(poses, frame), caches, filled)

    def turns(self, poses: Tensor, frame: int) -> Tensor:
        """How the tokens of the block at ``frame`` turn."""
        times = torch.arange(frame, frame + self.config.frames_per_block, device=poses.device)
        return torch.view_as_complex(rotation(angles(self.config, poses, times))).flatten(1, 2)

    def guess(
        self, noisy: Tensor, level: float, actions: Tensor, turns: Tensor, caches: list[Cache], filled: Sequence[int]
    ) -> Tensor:
        """One denoise pass: the clean patches that the model sees in noisy ones. The block's rows must have room."""
        shared, tables = self._conditions[level]
        x = self.model.embed(noisy)
        for index, table in enumerate(tables):
            layer, modulation = self.model.layer(index), table[actions]
            attended = attend(*layer.project(x, modulation, turns), caches[index], filled[index])
            x = layer.finish(x, attended, modulation)
        return self.model.read(x, shared[actions])

    def remember(
        self,
        patches: Tensor,
        actions: Tensor,
        turns: Tensor,
        caches: list[Cache],
        filled: Sequence[int],
        on_layer: Callable[[int], None] = unheard,
    ) -> None:
        """The clean pass: it ends where the last layer's keys and values are written."""
        _, tables = self._conditions[0.0]
        x = self.model.embed(patches)
        for index, table in enumerate(tables):
            layer, modulation = self.model.layer(index), table[actions]
            q, k, v = layer.project(x, modulation, turns)
            if index + 1 == self.config.num_layers:
                put(k, v, caches[index], filled[index])
                on_layer(index)
                return
            attended = attend(q, k, v, caches[index], filled[index])
            on_layer(index)
            x = layer.finish(x, attended, modulation)


def put(k: Tensor, v: Tensor, cache: Cache, filled: int) -> None:
    """Write a block's keys and values into the rows that are its own."""
    start = filled - k.shape[1]
    cache["k"][:, start:filled] = k
    cache["v"][:, start:filled] = v


def attend(q: Tensor, k: Tensor, v: Tensor, cache: Cache, filled: int) -> Tensor:
    """Attend to the block itself and to all that its layer's window holds."""
    put(k, v, cache, filled)
    keys, values = cache["k"][:, :filled], cache["v"][:, :filled]
    attended = F.scaled_dot_product_attention(q.transpose(1, 2), keys.transpose(1, 2), values.transpose(1, 2))
    return attended.transpose(1, 2)
