"""The attention caches: what a session remembers of its past blocks. 15 leaves a layer.

Rules of this file:

1. Every layer has a cache of each kind, whether or not its action module works. A dead one stays zero.
2. Keys are stored after they were turned, at absolute positions, and values as they are; so a row that is shifted
   is a copy of its bytes.
3. A full cache rolls in the first pass of a block, in place. Later passes write the same last rows again.
4. A cross-attention cache is filled at its first use, with new tensors in place of the old ones; then it stays.
5. The two index tensors are written for whoever reads a state. The engine itself reads its cursor, on the host.
"""

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


def empty_caches(config: MatrixConfig, device: torch.device) -> Caches:
    """Caches of a session that has seen nothing."""
    return {kind: [_empty(config, kind, device) for _ in range(config.num_layers)] for kind in KINDS}


def _empty(config: MatrixConfig, kind: str, device: torch.device) -> Cache:
    shape = cache_shape(config, kind)
    cache: Cache = {name: torch.zeros(shape, dtype=config.dtype, device=device) for name in ("k", "v")}
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
    is_first: bool
    """Of the block's passes."""


def place_of(config: MatrixConfig, frame: int, rows_per_frame: int, *, is_first: bool) -> Place:
    """Where the block at latent frame ``frame`` goes in a cache with so many rows a frame."""
    block, window = config.frames_per_block, config.window
    stop = min(frame + block, window)
    evicted = max(min(frame, window) + block - window, 0)
    return Place(
        start=(stop - block) * rows_per_frame,
        stop=stop * rows_per_frame,
        end=(frame + block) * rows_per_frame,
        shift=evicted * rows_per_frame if is_first else 0,
        is_first=is_first,
    )


def store(cache: Cache, k: Tensor, v: Tensor, place: Place) -> tuple[Tensor, Tensor]:
    """Write a block's keys and values; return all that the cache then holds."""
    if place.is_first:
        cache["global_end_index"].fill_(place.end)
        cache["local_end_index"].fill_(place.stop)
    for name, rows in (("k", k), ("v", v)):
        if place.shift:
            roll(cache[name], place.shift, place.start)
        cache[name][:, place.start : place.stop] = rows
    return cache["k"][:, : place.stop], cache["v"][:, : place.stop]


def roll(rows: Tensor, by: int, kept: int) -> None:
    """Move the ``kept`` rows behind the first ``by`` to the front. Piece by piece: they may overlap their place."""
    for start in range(0, kept, by):
        stop = min(start + by, kept)
        rows[:, start:stop] = rows[:, start + by : stop + by]
