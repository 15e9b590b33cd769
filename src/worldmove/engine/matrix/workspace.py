"""The memory in which an engine computes a block, whichever session's it is.

Its addresses never change, so work on it can be captured once and replayed for every session, wherever a session's
own memory lies and however often a step puts new tensors there. It carries nothing from one block to the next.

A block begins with ``load``: the rows that stay are copied from the session's caches, which is how they roll. The
passes write here. As each layer of the clean pass is done, ``save`` writes its caches back, in place.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from worldmove.engine.matrix.caches import (
    CROSS,
    KINDS,
    ROLLING,
    Cache,
    Caches,
    Place,
    empty_keys_and_values,
    num_working,
)
from worldmove.engine.matrix.config import (
    ACTION_WINDOW,
    FRAMES_PER_LATENT,
    KEYBOARD_CHANNELS,
    MOUSE_CHANNELS,
    MatrixConfig,
)

NUM_VECTORS = 6
"""How a noise level bends a layer: shift, scale and gate, of attention and of the feed-forward branch."""

Places = dict[str, Place]
"""Where a block goes in the caches of each rolling kind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workspace:
    """What all sessions of an engine share while they are stepped."""

    x: Tensor
    """The tokens: [1, tokens, dim]."""
    modulation: Tensor
    """Of the pass in hand: [layers, 6, dim]. The scales have 1 added."""
    token_turns: Tensor
    frame_turns: Tensor
    mouse: Tensor
    """What each latent frame sees of the mouse: [frames, channels]."""
    keyboard: Tensor
    """What each latent frame sees of the keys: [frames, video frames, channels]."""
    caches: Caches
    """Keys and values, of the layers that use them."""


def make_workspace(config: MatrixConfig, device: torch.device) -> Workspace:
    """Allocate it."""
    frames, seen = config.frames_per_block, ACTION_WINDOW * FRAMES_PER_LATENT

    def zeros(*shape: int, dtype: torch.dtype = config.dtype) -> Tensor:
        return torch.zeros(shape, dtype=dtype, device=device)

    return Workspace(
        x=zeros(1, config.tokens_per_block, config.dim),
        modulation=zeros(config.num_layers, NUM_VECTORS, config.dim),
        token_turns=zeros(config.tokens_per_block, 1, 1, config.head_dim // 2, dtype=torch.complex64),
        frame_turns=zeros(frames, 1, 1, config.action.head_dim // 2, dtype=torch.complex64),
        mouse=zeros(frames, seen * MOUSE_CHANNELS),
        keyboard=zeros(frames, seen, KEYBOARD_CHANNELS),
        caches={
            kind: [empty_keys_and_values(config, kind, device) for _ in range(num_working(config, kind))]
            for kind in KINDS
        },
    )


def load(workspace: Workspace, caches: Caches, places: Places) -> None:
    """Bring what the next block sees of a session's past."""
    for kind in ROLLING:
        place, own = places[kind], workspace.caches[kind]
        if place.start:
            kept = slice(place.shift, place.shift + place.start)
            pairs = list(zip(own, caches[kind], strict=False))  # dead caches are left out
            torch._foreach_copy_(
                [cache[name][:, : place.start] for cache, _ in pairs for name in ("k", "v")],
                [cache[name][:, kept] for _, cache in pairs for name in ("k", "v")],
            )
    torch._foreach_copy_(keys_and_values(workspace.caches[CROSS]), keys_and_values(caches[CROSS]))


def save(workspace: Workspace, caches: Caches, index: int, places: Places) -> None:
    """Write one layer's caches back: they are final."""
    into, out = [], []
    for kind in ROLLING:
        if index < len(workspace.caches[kind]):
            for name in ("k", "v"):
                into.append(caches[kind][index][name][:, : places[kind].stop])
                out.append(workspace.caches[kind][index][name][:, : places[kind].stop])
    torch._foreach_copy_(into, out)


def keys_and_values(caches: list[Cache]) -> list[Tensor]:
    return [cache[name] for cache in caches for name in ("k", "v")]
