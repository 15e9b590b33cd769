"""How large a session is, said for two scopes: the attention caches alone, and all that the next pixels depend on."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from worldmove.engine.base import Tree
from worldmove.engine.matrix.caches import CROSS, ROLLING
from worldmove.engine.matrix.config import MatrixConfig
from worldmove.engine.matrix.session import LATENTS
from worldmove.state.tree import flatten

COMPLETE = "complete"
SCOPES = (LATENTS, COMPLETE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """Bytes of the tensors of one scope, and its leaves of every kind."""

    scope: str
    num_leaves: int
    live: int
    """What a later block can still read: no dead action cache, no row that was not written yet."""
    allocated: int
    """All tensors, whatever they hold."""
    resident: int
    """``allocated``, and the weights and the workspace that an engine's sessions share."""


def scope_of(tree: Tree, scope: str) -> Tree:
    """The part of a state that a scope means: ``latents`` (the attention caches) or ``complete``."""
    return tree[LATENTS] if scope == LATENTS else tree


def size_of(config: MatrixConfig, tree: Tree, scope: str, shared_bytes: int) -> Size:
    """Measure one scope of a state."""
    part = scope_of(tree, scope)
    allocated = num_bytes(part)
    return Size(
        scope=scope,
        num_leaves=len(flatten(part, {}).paths),
        live=allocated - _idle(config, tree[LATENTS], tree["frame"]),
        allocated=allocated,
        resident=allocated + shared_bytes,
    )


def _idle(config: MatrixConfig, caches: Any, frame: int) -> int:
    """Bytes of keys and values that no later block reads."""
    filled = min(frame, config.window)
    idle = 0
    for kind in ROLLING:
        for index, cache in enumerate(caches[kind]):
            works = kind == "self" or index < config.action.num_layers
            size = num_bytes([cache["k"], cache["v"]])
            idle += size * (config.window - filled) // config.window if works else size
    return idle + sum(num_bytes(cache) for cache in caches[CROSS] if not cache["is_init"])


def num_bytes(value: Any) -> int:
    """Bytes of all tensors inside dicts, lists, tuples and dataclasses."""
    match value:
        case Tensor():
            return value.nbytes
        case dict():
            return sum(num_bytes(item) for item in value.values())
        case list() | tuple():
            return sum(num_bytes(item) for item in value)
    fields = getattr(value, "__dataclass_fields__", ())
    return sum(num_bytes(getattr(value, name)) for name in fields)


def is_finite(tree: Tree) -> bool:
    """Say whether no number of a state is infinite or none at all."""
    tensors = [value for value in flatten(tree, {}).values if isinstance(value, Tensor)]
    return all(bool(torch.isfinite(tensor).all()) for tensor in tensors)
