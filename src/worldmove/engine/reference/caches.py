"""Rolling key and value caches: what a session remembers, and all that it remembers.

Rules of this file:

1. Keys are stored after they were turned, at absolute positions; so a row never changes once it is clean.
2. A full cache rolls by shifting its rows towards the front, in place: its tensors keep their addresses.
3. A block's passes write the same last rows again and again. What the clean pass writes stays.
"""

import torch
from torch import Tensor

from worldmove.engine.reference.config import ReferenceConfig

Cache = dict[str, Tensor]
"""``k`` and ``v`` of one layer: float32 [batch, window rows, heads, head_dim]."""


def empty_caches(config: ReferenceConfig, batch: int = 1, device: str = "cpu") -> list[Cache]:
    """Caches of a session that has seen nothing."""
    shapes = [cache_shape(config, index) for index in range(config.num_layers)]
    return [{name: torch.zeros(batch, *shape, device=device) for name in ("k", "v")} for shape in shapes]


def cache_shape(config: ReferenceConfig, layer: int) -> tuple[int, int, int]:
    """Rows, heads and channels of one layer's keys, and of its values."""
    return config.cache_rows(layer), config.layers[layer].num_heads, config.head_dim


def make_room(config: ReferenceConfig, caches: list[Cache], filled: list[int]) -> list[int]:
    """Roll each cache that has no room for one more block. Returns the rows filled, that block included."""
    block = config.tokens_per_block
    for index, cache in enumerate(caches):
        if filled[index] + block > config.cache_rows(index):
            for rows in cache.values():
                shift(rows, block)
            filled[index] -= block
    return [rows + block for rows in filled]


def shift(rows: Tensor, by: int) -> None:
    """Move all rows towards the front. Piece by piece, since source and destination would overlap."""
    total = rows.shape[1]
    for start in range(0, total - by, by):
        stop = min(start + by, total - by)
        rows[:, start:stop] = rows[:, start + by : stop + by]
