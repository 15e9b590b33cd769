"""An engine whose sessions never stay where they were laid: after each block every tensor is new memory.

Engines that concatenate their windows, or bind a step's results anew, are like this. A slot then holds nothing of
its session until the freeze, and all of it is gathered there. What a move costs at worst is measured and tried with it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from worldmove.engine.base import Block, Engine, EngineSpec, InstallsUnread, KeyChange, TakesValues, Tree
from worldmove.state.tree import flatten, rebuild


@dataclass(slots=True, kw_only=True)
class Session:
    """One world; ``inner`` is the engine's own, another object after each block."""

    inner: Any


class ScatteredEngine:
    """``worldmove.engine.base.Engine`` around another."""

    def __init__(self, inner: Engine[Any]) -> None:
        self._inner = inner
        if isinstance(inner, TakesValues):  # then this one does too
            self.take_values = partial(_take_values, inner)

    @property
    def spec(self) -> EngineSpec:
        return self._inner.spec

    @property
    def state_types(self) -> Mapping[str, type]:
        return self._inner.state_types

    @property
    def installs_unread(self) -> bool:
        return isinstance(self._inner, InstallsUnread) and self._inner.installs_unread

    def warm_up(self) -> None:
        self._inner.warm_up()
        self.step(self.open(0), ())  # the allocator has room for a second copy

    def open(self, seed: int) -> Session:
        return Session(inner=self._inner.open(seed))

    def step(self, session: Session, changes: Sequence[KeyChange]) -> Block:
        block = self._inner.step(session.inner, changes)
        self._inner.quiesce(session.inner)
        session.inner = self._inner.install(self._elsewhere(self._inner.state(session.inner)))
        self._finish()
        return block

    def quiesce(self, session: Session) -> None:
        self._inner.quiesce(session.inner)

    def state(self, session: Session) -> Tree:
        return self._inner.state(session.inner)

    def install(self, state: Tree, into: Session | None = None) -> Session:
        if into is None:
            return Session(inner=self._inner.install(state))
        into.inner = self._inner.install(state, into.inner)
        return into

    def _elsewhere(self, tree: Tree) -> Tree:
        """Return the same state over new memory; tensors that shared a storage share one again."""
        flat, storages = flatten(tree, self.state_types), dict[int, torch.UntypedStorage]()
        leaves = [_moved(value, storages) if isinstance(value, torch.Tensor) else value for value in flat.values]
        return rebuild(flat.structure, iter(leaves), self.state_types)

    def _finish(self) -> None:
        """The engine's own stream does not wait for the copies."""
        if self.spec.device.partition(":")[0] == "cuda":
            torch.cuda.current_stream(torch.device(self.spec.device)).synchronize()


def _take_values(inner: TakesValues[Any], session: Session, state: Tree) -> None:
    inner.take_values(session.inner, state)


def _moved(tensor: torch.Tensor, storages: dict[int, torch.UntypedStorage]) -> torch.Tensor:
    own = tensor.untyped_storage()
    if own.data_ptr() not in storages:
        storages[own.data_ptr()] = own.clone()
    whole = torch.empty(0, dtype=tensor.dtype, device=tensor.device)
    return whole.set_(storages[own.data_ptr()], tensor.storage_offset(), tensor.shape, tensor.stride())
