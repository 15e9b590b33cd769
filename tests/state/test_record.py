import random
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import pytest

from worldmove.errors import StateRefused
from worldmove.state import capture
from worldmove.state.record import is_record
from worldmove.state.tree import flatten, rebuild


class Secretive:
    __slots__ = ("__secret", "hidden")


@dataclass(slots=True)
class WithPrivateSlot(Secretive):
    x: int

    def keep(self, secret: int) -> "WithPrivateSlot":
        self._Secretive__secret = secret  # type: ignore[misc]
        return self


@dataclass
class WithSlotOfItsOwn(Secretive):
    hidden: int


@dataclass
class WithDefaultOverSlot(Secretive):
    hidden: int = 5


class Twice(WithSlotOfItsOwn):
    __slots__ = ("hidden",)


@dataclass
class WithPrivateField:
    __secret: int
    shared: ClassVar[int] = 4

    def secret(self) -> int:
        return self.__secret


@dataclass
class WithDefault:
    x: int = 5
    y: int = 6


@dataclass
class WithProperty:
    x: int

    @property
    def doubled(self) -> int:
        return 2 * self.x


class Clamped:
    """A data descriptor that counts up whatever is set."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, value: Any, kind: type) -> int:
        return int(vars(value)[self.name]) + 100 if value is not None else 0

    def __set__(self, value: Any, item: int) -> None:
        vars(value)[self.name] = item + 1


@dataclass
class WithDescriptor:
    x: Clamped = Clamped()


@dataclass
class Delegating:
    inner: Any

    def __getattr__(self, name: str) -> Any:
        return 7


class Point(NamedTuple):
    x: int
    y: int


class Labelled(Point):
    """A named tuple whose objects have a dictionary."""

    def __new__(cls, *values: int) -> "Labelled":
        raise AssertionError("no constructor may run")


@dataclass
class OfDict(dict):  # type: ignore[type-arg]
    x: int


@dataclass
class OfInt(int):
    x: int


@dataclass
class OfException(Exception):
    x: int


@dataclass(init=False)
class OfTuple(tuple):  # type: ignore[type-arg]
    x: int = 1


@dataclass(init=False)
class OfRandom(random.Random):
    x: int = 1


@dataclass(init=False)
class Nowhere:
    __slots__ = ()
    x: int


def _again(value: Any) -> Any:
    types = {"kind": type(value)}
    flat = flatten([value], types)
    return rebuild(flat.structure, iter(flat.values), types)[0]


def _refused(value: Any) -> StateRefused:
    with pytest.raises(StateRefused) as refused:
        capture({"a": [value]}, {"kind": type(value)})
    assert refused.value.path == "a[0]"
    return refused.value


def _deleted(value: Any, name: str) -> Any:
    delattr(value, name)
    return value


def test_a_value_in_a_private_slot_of_a_base_is_refused_and_an_empty_one_is_none() -> None:
    assert _again(WithPrivateSlot(1)) == WithPrivateSlot(1)
    assert "_Secretive__secret" in _refused(WithPrivateSlot(1).keep(2)).why


def test_a_private_field_comes_back() -> None:
    assert _again(WithPrivateField(3)).secret() == 3


def test_a_field_in_a_slot_of_a_base_comes_back_in_it() -> None:
    made = _again(WithSlotOfItsOwn(3))
    assert (made.hidden, vars(made)) == (3, {})


def test_a_slot_that_another_hides_is_refused_where_it_holds_a_value() -> None:
    value = Twice(1)
    assert _again(value).hidden == 1
    Secretive.hidden.__set__(value, 2)  # type: ignore[attr-defined]
    assert "Secretive.hidden" in _refused(value).why


def test_a_field_beside_a_slot_that_its_default_hides_comes_back_beside_it() -> None:
    made = _again(WithDefaultOverSlot(1))
    assert (made.hidden, vars(made)) == (1, {"hidden": 1})


def test_an_entry_of_the_dictionary_that_a_slot_hides_is_refused() -> None:
    value = WithSlotOfItsOwn(1)
    vars(value)["hidden"] = 2
    assert "__dict__.hidden" in _refused(value).why
    assert "__dict__.hidden" in _refused(_deleted(value, "hidden")).why


def test_a_deleted_field_is_refused_although_its_class_has_a_default() -> None:
    assert _again(WithDefault(x=1)) == WithDefault(x=1)
    assert _refused(_deleted(WithDefault(x=1), "y")).why.endswith(": y")


def test_a_missing_field_is_refused_although_the_type_answers_for_it() -> None:
    assert _again(Delegating(1)).inner == 1
    assert _refused(_deleted(Delegating(1), "inner")).why.endswith(": inner")


def test_a_property_is_neither_read_nor_carried() -> None:
    assert _again(WithProperty(2)).doubled == 4


def test_what_lies_behind_a_descriptor_comes_back_as_it_lies() -> None:
    value = WithDescriptor(1)
    assert vars(value) == vars(_again(value)) == {"x": 2}


@pytest.mark.parametrize("items", [(), (1,), (1, 2, 3)])
def test_a_named_tuple_of_another_length_is_refused(items: tuple[int, ...]) -> None:
    assert f"{len(items)} items" in _refused(tuple.__new__(Point, items)).why


def test_a_named_tuple_is_made_again_by_no_constructor_and_with_attributes_refused() -> None:
    value = tuple.__new__(Labelled, (1, 2))
    assert type(_again(value)) is Labelled
    assert tuple(_again(value)) == (1, 2)
    vars(value)["note"] = 3
    assert "note" in _refused(value).why


@pytest.mark.parametrize(
    "value",
    [OfDict(1), OfInt(1), OfException(1), OfTuple((1, 2)), OfRandom(), Nowhere()],
    ids=lambda v: type(v).__name__,
)
def test_a_dataclass_that_could_not_be_made_again_is_refused_at_capture_and_at_arrival(value: Any) -> None:
    assert is_record(type(value))
    why = _refused(value).why
    assert type(value).__name__ in why
    flat = flatten(WithProperty(1), {"kind": WithProperty})
    with pytest.raises(StateRefused, match=why):
        rebuild(flat.structure, iter(flat.values), {"kind": type(value)})


def test_a_default_factory_does_not_run_again() -> None:
    calls: list[int] = []

    @dataclass
    class Made:
        x: int = field(default_factory=lambda: calls.append(1) or 3)  # type: ignore[func-returns-value]

    assert _again(Made()).x == 3
    assert calls == [1]
