"""A walk sees what objects hold, wherever they hold it, and nothing that differs between two equal processes."""

import collections
import contextvars
import functools
import io
import itertools
import random
import weakref
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest
import torch

from tests.audit import counter_module
from worldmove.audit.graph import differing, related
from worldmove.audit.walk import walk


class Thing:
    def __init__(self, **held: Any) -> None:
        self.__dict__.update(held)


class Slotted:
    __slots__ = ("held",)

    def __init__(self, held: Any) -> None:
        self.held = held


class Counted:
    total: ClassVar = [0]


@functools.lru_cache(maxsize=4)
def doubled(number: int) -> list[int]:
    return [2 * number]


@functools.cache
def tripled(number: int) -> int:
    return 3 * number


def closed_over(values: list[int]) -> Callable[[], int]:
    return lambda: len(values)


def suspended() -> Any:
    level = 0
    while True:
        level += 1
        yield level


def moved(thing: Any, change: Callable[[Any], Any], own: tuple[str, ...] = ()) -> list[str]:
    """The paths at which a walk sees a change."""
    before = walk({"thing": thing}, own)
    assert differing(walk({"thing": thing}, own), before) == []
    change(thing)
    return [place.path for place in differing(walk({"thing": thing}, own), before)]


VARIABLE: contextvars.ContextVar[list[int]] = contextvars.ContextVar("VARIABLE")
VARIABLE.set([])


@pytest.mark.parametrize(
    ("make", "change", "path"),
    [
        (lambda: Thing(a=1), lambda t: setattr(t, "a", 2), "thing.a"),
        (lambda: Thing(a=True), lambda t: setattr(t, "a", 1), "thing.a"),
        (lambda: Thing(a=0.0), lambda t: setattr(t, "a", -0.0), "thing.a"),
        (Thing, lambda t: setattr(t, "new", 2), "thing.new"),
        (lambda: Slotted([1]), lambda t: t.held.append(2), "thing.held"),
        (lambda: {"a": [1, 2]}, lambda t: t["a"].__setitem__(1, 9), "thing.a[1]"),
        (lambda: {(1, 2): 0}, lambda t: t.update({(1, 2): 1}), "thing[(1, 2)]"),
        (lambda: {"a"}, lambda t: t.add("b"), "thing"),
        (lambda: collections.deque([1], maxlen=3), lambda t: t.append(2), "thing"),
        (lambda: collections.defaultdict(list), lambda t: t["a"], "thing"),
        (lambda: list(range(100)), lambda t: t.__setitem__(50, 0), "thing"),
        (lambda: bytearray(4), lambda t: t.__setitem__(1, 1), "thing"),
        (lambda: Thing(a=torch.zeros(3)), lambda t: t.a.add_(1), "thing.a"),
        (lambda: Thing(a=torch.zeros(3, dtype=torch.bfloat16)[::2]), lambda t: t.a.add_(1), "thing.a"),
        (lambda: Thing(a=np.zeros(3)), lambda t: t.a.__setitem__(0, 1), "thing.a"),
        (lambda: Thing(a=np.array([[1], [2]], dtype=object)), lambda t: t.a.__setitem__((0, 0), 5), "thing.a[0]"),
        (lambda: torch.nn.BatchNorm1d(2), lambda t: t.running_mean.add_(1), "thing.running_mean"),
        (lambda: torch.nn.Sequential(torch.nn.Linear(1, 1)), lambda t: t[0].bias.data.add_(1), "thing['0'].bias"),
        (lambda: torch.Generator().manual_seed(1), lambda t: torch.rand(1, generator=t), "thing"),
        (lambda: random.Random(1), lambda t: t.random(), "thing"),
        (lambda: np.random.default_rng(1), lambda t: t.random(), "thing"),
        (lambda: np.random.RandomState(1), lambda t: t.standard_normal(), "thing"),
        (lambda: [].append, lambda t: t(1), "thing"),
        (lambda: functools.partial(print, []), lambda t: t.args[0].append(1), "thing.args[0]"),
        (itertools.count, next, "thing"),
        (lambda: itertools.cycle([1, 2, 3]), next, "thing"),
        (lambda: iter([1, 2]), next, "thing"),
        (suspended, next, "thing"),
        (lambda: io.BytesIO(b"abc"), lambda t: t.read(1), "thing"),
        (lambda: VARIABLE, lambda t: t.get().append(1), "thing"),
        (lambda: SimpleNamespace(a=1), lambda t: setattr(t, "a", 2), "thing.a"),
    ],
)
def test_a_change_is_seen_and_named_by_the_shortest_way(
    make: Callable[[], Any], change: Callable[[Any], Any], path: str
) -> None:
    assert moved(make(), change) == [path]


def test_what_only_a_closure_holds_is_seen() -> None:
    values: list[int] = []
    assert moved(closed_over(values), lambda _: values.append(1)) == ["closure of <lambda>: values"]


def test_what_a_cache_of_functools_holds_is_seen_and_how_often_it_was_asked_is_not() -> None:
    doubled(1)
    assert moved(doubled, lambda _: doubled(2)) == ["thing"]
    assert moved(doubled, lambda _: doubled(2)) == []
    kept = doubled(1)
    (path,) = moved(doubled, lambda _: kept.append(7))
    assert path.startswith("cache of thing[")
    assert moved(tripled, lambda _: tripled(2)) == ["thing"]


def test_a_weak_reference_leads_to_its_target() -> None:
    target = Thing(a=1)
    assert moved(weakref.ref(target), lambda _: setattr(target, "a", 2)) == ["thing.a"]


def test_variables_are_seen_of_an_own_module_and_class_and_of_no_other() -> None:
    def count(_: Any) -> None:
        counter_module.blocks += 1
        Counted.total[0] += 1

    assert moved([counter_module, Counted], count) == []
    own = (counter_module.__name__, __name__)
    assert moved([counter_module, Counted], count, own) == [
        f"{counter_module.__name__}.blocks",
        f"{__name__}.Counted.total[0]",
    ]


def test_two_ways_to_one_object_are_one_and_a_circle_ends() -> None:
    items = [1]
    thing = Thing(a=items, b=items)
    vars(thing)["me"] = thing
    assert moved(thing, lambda t: t.a.append(2)) == ["thing.a"]


def test_equal_objects_look_equal_wherever_they_lie() -> None:
    def make() -> Any:
        return Thing(items={"b", "a", "c"}, f=lambda: 1, lock=object(), it=iter([1]), arrays=[np.arange(3)])

    assert differing(walk({"thing": make()}, ()), walk({"thing": make()}, ())) == []


def test_a_walk_that_reaches_its_limit_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("worldmove.audit.walk.MAX_NODES", 10)
    assert not walk({"thing": [[i] for i in range(20)]}, ()).complete


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [("a.b", "a.b.c", True), ("a.b[1]", "a.b", True), ("a.b", "a.bc", False), ("a.b", "a.b", True)],
)
def test_paths_are_related_where_one_leads_to_the_other(one: str, other: str, expected: bool) -> None:
    assert related(one, other) is expected
