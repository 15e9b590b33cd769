import enum
from collections import OrderedDict, defaultdict, deque
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch

from tests.state.equality import plain
from tests.state.trees import TYPES, Cache, Cursor, Pair
from worldmove.errors import StateRefused
from worldmove.state import capture
from worldmove.state.structure import MAX_DEPTH
from worldmove.state.tree import flatten, rebuild


class Word(str):
    pass


class Level(enum.IntEnum):
    LOW = 1


class Mode(enum.Flag):
    A = 1
    B = 2


class Named(NamedTuple):
    x: int


@dataclass
class Plain:
    x: int


class SubPlain(Plain):
    pass


@dataclass
class Derived:
    n: int
    twice: int = field(init=False)

    def __post_init__(self) -> None:
        self.twice = 2 * self.n


def test_paths_read_like_python() -> None:
    tree = {
        "caches": [Cache(k=1, v=(2, 3))],
        "odd key": {"it's": 4, "": 5},
        3: 6,
        True: 7,
        "pair": Pair(8, 9),
        "a.b": 10,
        "\ud800": 11,
    }
    assert flatten(tree, TYPES).paths == [
        "caches[0].k",
        "caches[0].v[0]",
        "caches[0].v[1]",
        "['odd key'][\"it's\"]",
        "['odd key']['']",
        "[3]",
        "[True]",
        "pair.left",
        "pair.right",
        "['a.b']",
        "['\\ud800']",
    ]


def test_a_state_may_be_one_leaf() -> None:
    assert flatten(5).paths == [""]
    assert capture(5).manifest.paths() == ("",)


def test_the_order_of_keys_is_state() -> None:
    assert capture({"a": 1, "b": 2}).manifest != capture({"b": 2, "a": 1}).manifest
    flat = flatten({"b": 2, "a": 1})
    assert list(rebuild(flat.structure, iter(flat.values))) == ["b", "a"]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ([], ()),
        ([1], (1,)),
        ({1: 0}, {True: 0}),
        ({1: 0}, {"1": 0}),
        ({}, []),
        (Pair(1, 2), (1, 2)),
        (1, True),
        (1, 1.0),
    ],
)
def test_values_that_python_may_call_equal_have_different_manifests(one: Any, other: Any) -> None:
    assert capture(one, TYPES).manifest != capture(other, TYPES).manifest


def test_no_constructor_runs_when_a_record_is_made_again() -> None:
    made = Derived(n=1)
    made.twice = 7
    flat = flatten(made, {"Derived": Derived})
    assert rebuild(flat.structure, iter(flat.values), {"Derived": Derived}) == made


def test_empty_containers_come_back() -> None:
    tree = {"a": [], "b": (), "c": {}, "d": [[], [()]]}
    flat = flatten(tree)
    assert plain(rebuild(flat.structure, iter(flat.values))) == plain(tree)


def test_an_empty_tuple_may_stand_at_two_places() -> None:
    assert flatten([(), ()]).num_nodes == 3


CYCLE: list[Any] = []
CYCLE.append({"again": CYCLE})
SHARED: list[int] = [1]
RECORD = Cursor(1)
LOOSE = Cache(1, 2)
LOOSE.more = 3  # type: ignore[attr-defined]
HALF = object.__new__(Cursor)
DEEP: list[Any] = []
for _ in range(MAX_DEPTH + 1):
    DEEP = [DEEP]


@pytest.mark.parametrize(
    ("tree", "path"),
    [
        ({"a": SHARED, "b": (SHARED,)}, "b[0]"),
        ({"a": RECORD, "b": RECORD}, "b"),
        ({"loop": CYCLE}, "loop[0].again"),
        ({"a": {1, 2}}, "a"),
        ({"a": lambda: 0}, "a"),
        ({"a": object()}, "a"),
        ({"a": int}, "a"),
        ({"a": Plain}, "a"),
        ({"a": OrderedDict(x=1)}, "a"),
        ({"a": defaultdict(int)}, "a"),
        ({"a": deque([1])}, "a"),
        ({"a": bytearray(b"x")}, "a"),
        ({"a": memoryview(b"x")}, "a"),
        ({"a": range(3)}, "a"),
        ({"a": [Word("x")]}, "a[0]"),
        ({"a": Level.LOW}, "a"),
        ({"a": torch.Size([1])}, "a"),
        ({"a": torch.float32}, "a"),
        ({"a": torch.device("cpu")}, "a"),
        ({"a": Named(1)}, "a"),
        ({"a": Plain(1)}, "a"),
        ({"a": LOOSE}, "a"),
        ({"a": HALF}, "a"),
        ({"a": {1.5: 0}}, "a"),
        ({"a": {None: 0}}, "a"),
        ({"a": {(1,): 0}}, "a"),
        ({"a": {Word("x"): 0}}, "a"),
        ({"a": {Level.LOW: 0}}, "a"),
        ({"a": {np.int64(1): 0}}, "a"),
        ({"a": {"k" * 600: 0}}, "a"),
        ({"a": {10**2000: 0}}, "a"),
        (DEEP, "[0]" * (MAX_DEPTH + 1)),
    ],
)
def test_what_would_not_come_back_the_same_is_refused_by_path(tree: Any, path: str) -> None:
    with pytest.raises(StateRefused) as refused:
        capture(tree, TYPES)
    assert refused.value.path == path


def test_a_subclass_of_a_registered_type_is_not_registered() -> None:
    with pytest.raises(StateRefused, match="SubPlain is not registered"):
        capture(SubPlain(1), {"Plain": Plain})


def test_a_flag_of_two_members_is_refused() -> None:
    assert capture(Mode.A, {"Mode": Mode}).manifest.paths() == ("",)
    with pytest.raises(StateRefused, match="no single member"):
        capture(Mode.A | Mode.B, {"Mode": Mode})


def test_a_state_with_too_many_leaves_is_refused() -> None:
    with pytest.raises(StateRefused, match="may have"):
        capture([0] * (1 << 17))


def test_a_record_is_made_only_of_the_fields_it_has_here() -> None:
    flat = flatten(Cache(1, 2), TYPES)
    with pytest.raises(StateRefused, match="not registered here"):
        rebuild(flat.structure, iter(flat.values), {})
    with pytest.raises(StateRefused, match="fields"):
        rebuild(flat.structure, iter(flat.values), {"Cache": Cursor})
    with pytest.raises(StateRefused, match="not registered here"):
        rebuild(flat.structure, iter(flat.values), {"Cache": Level})
