"""What of a tensor may have changed since the last boundary, asked of hundreds at once in passes that run in C."""

import gc
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import repeat
from operator import attrgetter, is_
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.autograd import forward_ad

_tensor = torch.Tensor
_offset: Callable[[torch.Tensor], int] = torch.Tensor.storage_offset  # type: ignore[assignment]
_FACTS: tuple[Callable[[torch.Tensor], Any], ...] = (
    _tensor.size,
    _tensor.stride,
    _tensor.is_neg,
    _tensor.is_conj,
    attrgetter("dtype"),
    attrgetter("device"),
    attrgetter("requires_grad"),
    attrgetter("layout"),
    attrgetter("is_nested"),
    _tensor._is_zerotensor,
)
"""What is not the same of any two tensors, nor of one before and after its ``data`` was set; but for where its memory
lies."""
_CARRIED = tuple(map(attrgetter, ("__dict__", "_backward_hooks", "_post_accumulate_grad_hooks")))
"""What Python keeps with a tensor, and no tensor of a state has. Not compared with what was: the objects are the same,
and may have been filled."""
_has_names = getattr(_tensor, "has_names", None)  # torch 2.13 has no named tensors any more
_gradient = attrgetter("grad")


Numbers = NDArray[np.int64]


def numbers(found: Iterable[int]) -> Numbers:
    """Return numbers as an array: comparing hundreds looks at no object."""
    return np.fromiter(found, dtype=np.int64)


def are_equal(here: Numbers, there: Numbers) -> bool:
    """Compare arrays that are equally long."""
    return bool((here == there).all())


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Of some tensors, what is compared later."""

    guard: Callable[..., bool] | None
    """Says of as many tensors whether they are as these, in one call; None where torch has no such comparison."""
    lists: tuple[list[Any], ...]
    """Without it, one list a fact."""
    offsets: Numbers
    shows_carried: bool
    """Whether the garbage collector is shown all that a tensor carries."""


def guard_of(tensors: Sequence[torch.Tensor]) -> Callable[..., bool] | None:
    """Return torch's comparison of type, dispatch keys (conjugate, negative, layout, nested...), dtype, device,
    gradient, shape and stride. It is not a public one: without it, or where a tensor stands twice, each is asked.
    """
    kind = getattr(getattr(getattr(torch._C, "_dynamo", None), "guards", None), "TensorGuards", None)
    if kind is None or len(frozenset(map(id, tensors))) != len(tensors):
        return None
    sizes, strides = [list(tensor.size()) for tensor in tensors], [list(tensor.stride()) for tensor in tensors]
    try:
        check: Callable[..., bool] = kind(*tensors, dynamic_dims_sizes=sizes, dynamic_dims_strides=strides).check
        return check if check(*tensors) else None
    except (RuntimeError, TypeError, ValueError):
        return None


def facts_of(tensors: Sequence[torch.Tensor]) -> Facts:
    """Return what is compared of tensors later."""
    guard = guard_of(tensors)
    lists = () if guard is not None else tuple([list(map(fact, tensors)) for fact in _FACTS])
    return Facts(guard=guard, lists=lists, offsets=numbers(map(_offset, tensors)), shows_carried=_shows_carried())


def lie_as_before(tensors: Sequence[torch.Tensor], facts: Facts) -> bool:
    """Say whether tensors view their storages as they did: shape, stride, offset, dtype, device, bits and layout."""
    if facts.guard is not None and not facts.guard(*tensors):
        return False
    as_before = all(list(map(fact, tensors)) == before for fact, before in zip(_FACTS, facts.lists, strict=False))
    return as_before and are_equal(numbers(map(_offset, tensors)), facts.offsets)


def are_bare(tensors: Sequence[torch.Tensor], facts: Facts) -> bool:
    """Say whether tensors that lie as before have nothing that no tensor of a state has."""
    return (
        ((facts.shows_carried and _refer_to_nothing(tensors)) or not any(any(map(each, tensors)) for each in _CARRIED))
        and not (_has_names and any(map(_has_names, tensors)))
        and list(map(_gradient, tensors)).count(None) == len(tensors)
        and forward_ad._current_level < 0  # only within a level may a tensor have a tangent
    )


def _refer_to_nothing(tensors: Sequence[torch.Tensor]) -> bool:
    """Ask of all at once. A tensor of which the collector is shown nothing at all does not show its type either."""
    found = list(filter(None, gc.get_referents(*tensors)))
    return len(found) == len(tensors) and all(map(is_, found, repeat(_tensor)))


def _shows_carried() -> bool:
    """Try with a tensor that carries one thing of each kind. An attribute must be shown in the tensor's dictionary."""
    probe, hooks = torch.zeros(1), [OrderedDict({1: print}), OrderedDict({2: print})]
    probe.mark = 1  # type: ignore[attr-defined]
    probe._backward_hooks, probe._post_accumulate_grad_hooks = hooks  # type: ignore[assignment]
    found = gc.get_referents(probe)
    return all(any(item is each for item in found) for each in (_tensor, vars(probe), *hooks))
