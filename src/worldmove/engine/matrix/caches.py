"""The attention caches: what a session remembers of its past blocks. 15 leaves a layer.

Rules of this file:

1. Every layer has a cache of each kind, whether or not its action module works. A dead one stays zero.
2. Keys are stored after they were turned, at absolute positions, and values as they are; so a row that is shifted
   is a copy of its bytes.
3. A full cache rolls once a block: its newer rows move to the front, and the block's passes write the last rows
   again and again. What the clean pass wrote stays.
4. A cross-attention cache is filled at its first use, with new tensors in place of the old ones; then it stays.
5. The two index tensors are written for whoever reads a state. The engine itself reads its cursor, on the host.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from worldmove.engine.matrix.config import MatrixConfig

Cache = dict[str, Any]
"""``k``, ``v`` and two indices, or ``k``, ``v`` and ``is_init``, of one layer."""
Caches = dict[str, list[Cache]]

ROLLING = ("self", "mouse", "keyboard")
CROSS = "cross"
KINDS = (*ROLLING, CROSS)
INDICES = ("global_end_index", "local_end_index")


def cache_shape(config: MatrixConfig, kind: str) -> tuple[int, int, int, int]:
    """Shape of a cache's keys, and of its values. The mouse's batch is the token's place in its frame."""
    action = config.action
    return {
        "self": (1, config.window * config.tokens_per_frame, config.num_heads, config.head_dim),
        "mouse": (config.tokens_per_frame, config.window, action.num_heads, action.head_dim),
        "keyboard": (1, config.window, action.num_heads, action.head_dim),
        "cross": (1, config.visual_tokens, config.num_heads, config.head_dim),
    }[kind]


def num_working(config: MatrixConfig, kind: str) -> int:
    """In how many layers, the first ones, caches of a kind are used."""
    return config.action.num_layers if kind in {"mouse", "keyboard"} else config.num_layers


def empty_caches(config: MatrixConfig, device: torch.device) -> Caches:
    """Caches of a session that has seen nothing."""
    return {kind: [_empty(config, kind, device) for _ in range(config.num_layers)] for kind in KINDS}


def empty_keys_and_values(config: MatrixConfig, kind: str, device: torch.device) -> Cache:
    """``k`` and ``v`` of one cache."""
    shape = cache_shape(config, kind)
    return {name: torch.zeros(shape, dtype=config.dtype, device=device) for name in ("k", "v")}


def _empty(config: MatrixConfig, kind: str, device: torch.device) -> Cache:
    cache = empty_keys_and_values(config, kind, device)
    if kind == CROSS:
        return {**cache, "is_init": False}
    return {**cache, **{name: torch.zeros(1, dtype=torch.int64, device=device) for name in INDICES}}


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a block goes in a rolling cache, in rows of its second dimension."""

    start: int
    stop: int
    end: int
    """Rows since the session began, this block included."""
    shift: int
    """By how many rows the cache rolls before it is written."""


def place_of(config: MatrixConfig, frame: int, rows_per_frame: int) -> Place:
    """Where the block at latent frame ``frame`` goes in a cache with so many rows a frame."""
    block, window = config.frames_per_block, config.window
    stop = min(frame + block, window)
    return Place(
        start=(stop - block) * rows_per_frame,
        stop=stop * rows_per_frame,
        end=(frame + block) * rows_per_frame,
        shift=max(min(frame, window) + block - window, 0) * rows_per_frame,
    )


def store(cache: Cache, k: Tensor, v: Tensor, place: Place) -> tuple[Tensor, Tensor]:
    """Write a block's keys and values; return all that the cache then holds."""
    cache["k"][:, place.start : place.stop].copy_(k)
    cache["v"][:, place.start : place.stop].copy_(v)
    return cache["k"][:, : place.stop], cache["v"][:, : place.stop]


def mark(caches: Sequence[Cache], place: Place) -> None:
    """Write the indices of some caches."""
    for name, value in zip(INDICES, (place.end, place.stop), strict=True):
        indices = [cache[name] for cache in caches]
        torch._foreach_zero_(indices)
        torch._foreach_add_(indices, value)
