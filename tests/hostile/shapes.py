"""Strategies out of msgspec types: messages as they may be, and what somebody hostile makes of them."""

from collections.abc import Sequence
from typing import Any

import msgspec
from hypothesis import strategies as st
from msgspec import inspect as shape

EDGES = (-(1 << 70), -1, 0, 1, (1 << 53) - 1, 1 << 53, (1 << 62) - 1, 1 << 62, (1 << 64) - 1, 1 << 64)
"""Numbers at which something that counts may break."""


def messages(kinds: Any) -> st.SearchStrategy[Any]:
    """Return messages of a tagged union, every field within its bounds."""
    return st.one_of([_struct(kind) for kind in _members(shape.type_info(kinds))])


def plain(kinds: Any) -> st.SearchStrategy[Any]:
    """Return messages as dictionaries, one thing in each perhaps not as it should be."""
    return messages(kinds).flatmap(lambda message: _spoilt(msgspec.to_builtins(message, builtin_types=(bytes,))))


def junk() -> st.SearchStrategy[Any]:
    """Return anything that JSON and msgpack both can say."""
    leaves = (
        st.none() | st.booleans() | st.sampled_from(EDGES[3:-1]) | st.floats(allow_nan=False) | st.text(max_size=20)
    )
    return st.recursive(
        leaves, lambda some: st.lists(some, max_size=4) | st.dictionaries(st.text(max_size=9), some, max_size=4)
    )


def damaged(data: bytes) -> st.SearchStrategy[bytes]:
    """Return bytes with a part changed, cut out, or doubled."""
    places = st.tuples(st.integers(0, len(data)), st.integers(0, len(data)), st.binary(max_size=8))

    def damage(place: tuple[int, int, bytes]) -> bytes:
        first, last = sorted(place[:2])
        return data[:first] + place[2] + data[last:] + (data[first:last] if not place[2] else b"")

    return places.map(damage)


def _members(info: Any) -> Sequence[Any]:
    return info.types if isinstance(info, shape.UnionType) else [info]


def _struct(info: Any) -> st.SearchStrategy[Any]:
    return st.builds(info.cls, **{field.name: _value(field.type) for field in info.fields})


def _value(info: Any) -> st.SearchStrategy[Any]:
    match info:
        case shape.Metadata(type=inner):
            return _value(inner)
        case shape.VarTupleType(item_type=item):
            return st.lists(_value(item), max_size=3).map(tuple)
        case shape.TupleType(item_types=items):
            return st.tuples(*(_value(item) for item in items))
        case shape.DictType(key_type=key, value_type=value):
            return st.dictionaries(_value(key), _value(value), max_size=3)
        case shape.UnionType(types=types):
            return st.one_of([_value(kind) for kind in types])
        case shape.StructType():
            return _struct(info)
    return _scalar(info)


def _scalar(info: Any) -> st.SearchStrategy[Any]:
    match info:
        case shape.IntType(ge=low, le=high, gt=above, lt=below):
            least = low if low is not None else above + 1 if above is not None else -(1 << 63)
            most = high if high is not None else below - 1 if below is not None else (1 << 63) - 1
            return st.integers(least, most) | st.sampled_from((least, most))
        case shape.FloatType():
            return st.floats(allow_nan=False)
        case shape.BoolType():
            return st.booleans()
        case shape.NoneType():
            return st.none()
        case shape.StrType(pattern=str(pattern)):
            return st.from_regex(pattern, fullmatch=True).map(lambda text: text.rstrip("\n"))
        case shape.StrType(min_length=low, max_length=high):
            return st.text(min_size=low or 0, max_size=min(high or 12, max(12, low or 0)))
        case shape.BytesType(min_length=low, max_length=high):
            return st.binary(min_size=low or 0, max_size=min(high or 64, max(64, low or 0)))
    raise NotImplementedError(info)


def _spoilt(message: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Return a message, perhaps with one field of another value, one left out, or one too many."""
    names = st.sampled_from(sorted(message))
    odd = junk() | st.sampled_from(EDGES) | st.text(max_size=3000) | st.binary(max_size=99)
    return st.one_of(
        st.just(message),
        st.tuples(names, odd).map(lambda change: {**message, change[0]: change[1]}),
        names.map(lambda name: {key: value for key, value in message.items() if key != name}),
        st.tuples(st.text(max_size=9), odd).map(lambda more: {**message, more[0]: more[1]}),
    )
