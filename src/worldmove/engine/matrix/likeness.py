"""What the tensors of a model's state look like, asked of all at once: a state is adopted in the pause of a move."""

from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Any

from torch import Tensor

from worldmove.engine.matrix import conditioning
from worldmove.engine.matrix.caches import CROSS, INDICES, KINDS
from worldmove.engine.matrix.config import MatrixConfig
from worldmove.state.tensor_facts import guard_of

_NAMES = {kind: ("k", "v", "is_init") if kind == CROSS else ("k", "v", *INDICES) for kind in KINDS}


class Likeness:
    """Knows the tensors of the last state that was checked one by one."""

    def __init__(self) -> None:
        self._guard: Callable[..., bool] | None = None

    def learn(self, tensors: Sequence[Tensor]) -> None:
        """Remember shape, stride, dtype and device of tensors that fit."""
        self._guard = guard_of(tensors)

    def fits(self, tensors: Sequence[Any]) -> bool:
        """Say whether as many tensors are as those were; False, too, where that cannot be said."""
        return self._guard is not None and self._guard(*tensors)


def tensors_of(config: MatrixConfig, latents: Any, decoder: Any, conditions: Any) -> list[Any] | None:
    """Return the tensors of a state in a fixed order; None where its containers or flags are not this model's."""
    if not (_is_dict(latents, KINDS) and _is_dict(conditions, conditioning.NAMES) and type(decoder) is list):
        return None
    found: list[Any] = [*decoder, *(conditions[name] for name in conditioning.NAMES)]
    for kind in KINDS:
        caches, names = latents[kind], _NAMES[kind]
        if type(caches) is not list or list(map(type, caches)) != [dict] * config.num_layers:
            return None
        if list(map(tuple, caches)) != [names] * config.num_layers:
            return None
        columns = dict(zip(names, zip(*map(dict.values, caches), strict=True), strict=True))
        if list(map(type, columns.pop("is_init", ()))).count(bool) != (config.num_layers if "is_init" in names else 0):
            return None
        found.extend(chain.from_iterable(columns.values()))
    return found


def _is_dict(value: Any, names: Sequence[str]) -> bool:
    return isinstance(value, Mapping) and value.keys() == frozenset(names)
