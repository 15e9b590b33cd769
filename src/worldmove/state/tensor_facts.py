"""What of a tensor may have changed since the last boundary, asked of hundreds at once in passes that run in C."""

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any

import torch
from torch.autograd import forward_ad

Facts = tuple[list[Any], ...]
"""Of some tensors, one list a fact."""

_tensor = torch.Tensor
_FACTS: tuple[Callable[[torch.Tensor], Any], ...] = (
    _tensor.size,
    _tensor.stride,
    _tensor.storage_offset,
    _tensor.is_neg,
    _tensor.is_conj,
    attrgetter("dtype"),
    attrgetter("device"),
)
"""What can change about a tensor that is the same object as before, but for where its storage lies: whoever sets its
``data`` exchanges all of it."""
_EMPTY = (
    *map(attrgetter, ("requires_grad", "__dict__", "_backward_hooks", "_post_accumulate_grad_hooks")),
    *filter(None, [getattr(_tensor, "has_names", None)]),  # torch 2.13 has no named tensors any more
)
"""What no tensor of a state has. Not compared with what was: the objects are the same, and may have been filled."""
_gradient, _layout, _is_nested = map(attrgetter, ("grad", "layout", "is_nested"))


def facts_of(tensors: Sequence[torch.Tensor]) -> Facts:
    """Return what is compared of tensors later."""
    return tuple([list(map(fact, tensors)) for fact in _FACTS])


def are_as_before(tensors: Sequence[torch.Tensor], facts: Facts) -> bool:
    """Say whether tensors have the facts that they had, and still nothing that no tensor of a state has."""
    return (
        all(list(map(fact, tensors)) == before for fact, before in zip(_FACTS, facts, strict=True))
        and not any(any(map(fact, tensors)) for fact in _EMPTY)
        and list(map(_gradient, tensors)).count(None) == len(tensors)
        and forward_ad._current_level < 0  # only within a level may a tensor have a tangent
    )


def are_plain(tensors: Sequence[torch.Tensor]) -> bool:
    """Check tensors that are other objects than before, beside their facts: by these their dtype is a carried one, and
    by device and size of storage they lie where the others lay.
    """
    return (
        list(map(_layout, tensors)).count(torch.strided) == len(tensors)
        and not any(map(_is_nested, tensors))
        and not any(map(_tensor._is_zerotensor, tensors))
    )
