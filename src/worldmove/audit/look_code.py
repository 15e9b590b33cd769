"""Looking at code that holds state: closures, defaults, bound methods, caches of functools, classes, iterators."""

import contextvars
import functools
import gc
import itertools
import weakref
from collections.abc import Callable, Mapping, Sequence
from types import (
    BuiltinMethodType,
    CoroutineType,
    FunctionType,
    GeneratorType,
    MethodType,
    ModuleType,
)
from typing import Any

from worldmove.audit.graph import CACHE, CACHE_PATH
from worldmove.audit.looks import Look, Part, attributes, text_of
from worldmove.state.structure import field_path, item_path

ITERATORS = tuple(
    type(made) for made in (iter([]), iter(()), iter(range(0)), iter({}), iter(""), reversed([]), iter(b""))
)
LAZY = (enumerate, zip, map, filter, *(getattr(itertools, name) for name in dir(itertools) if not name.startswith("_")))
_LAZY_TYPES = tuple(kind for kind in LAZY if isinstance(kind, type))
Own = frozenset[str]


def look_at_code(value: Any, path: str, own: Own) -> Look | None:
    """Look at an object of a kind that holds others where no attribute shows them, or return None."""
    for kinds, look in _LOOKS:
        if isinstance(value, kinds):
            return look(value, path, own)
    return None


def _function(value: FunctionType, path: str, own: Own) -> Look:
    """Its closure, its defaults and its attributes; what it does is code, and equal where the software is."""
    name = value.__qualname__.rpartition("<locals>.")[2]
    parts = [Part(f".__dict__.{key}", field_path(path, key), item) for key, item in value.__dict__.items()]
    for free, cell in zip(value.__code__.co_freevars, value.__closure__ or (), strict=True):
        try:
            parts.append(Part(f"closure {free}", f"closure of {name}: {free}", cell.cell_contents))
        except ValueError:  # a cell that is still empty
            continue
    for index, item in enumerate(value.__defaults__ or ()):
        argument = value.__code__.co_varnames[value.__code__.co_argcount - len(value.__defaults__ or ()) + index]
        parts.append(Part(f"default {argument}", f"default of {name}: {argument}", item))
    for argument, item in (value.__kwdefaults__ or {}).items():
        parts.append(Part(f"default {argument}", f"default of {name}: {argument}", item))
    return Look(kind="function", value=f"{value.__module__}.{value.__qualname__}", parts=parts)


def _cache(value: Any, path: str, own: Own) -> Look:
    """What a cache holds; how often it was asked is left out, since no answer depends on it."""
    entries = _entries(value)
    parts = [Part(f"[{i}]", item_path(f"{CACHE_PATH}{path}", i), item) for i, item in enumerate(entries)]
    function = value.__wrapped__
    return Look(kind=CACHE, whole=True, value="", parts=[*parts, Part(".__wrapped__", path, function)] if parts else ())


def _entries(cache: Any) -> list[Any]:
    """Keys and values, as far as the collector shows them."""
    referents = gc.get_referents(cache)
    inner = (type(None), type, FunctionType, ModuleType)
    num_entries = cache.cache_info().currsize
    found = [item for item in referents if not isinstance(item, inner) and item is not cache.__dict__]
    unbounded = next((item for item in found if type(item) is dict and len(item) == num_entries), {})
    if cache.cache_parameters()["maxsize"] is None:
        return [part for pair in unbounded.items() for part in pair]
    return found[: 2 * num_entries]


def _method(value: MethodType, path: str, own: Own) -> Look:
    parts = [Part(".__self__", path, value.__self__), Part(".__func__", path, value.__func__)]
    return Look(kind="method", value=text_of(value.__func__.__name__), parts=parts, has_identity=False)


def _built_in_method(value: BuiltinMethodType, path: str, own: Own) -> Look:
    """``items.append`` is a way to ``items``."""
    holder = value.__self__
    parts = () if holder is None or isinstance(holder, ModuleType | type) else (Part(".__self__", path, holder),)
    return Look(kind="method", value=value.__qualname__, parts=parts, has_identity=False)


def _partial(value: functools.partial[Any], path: str, own: Own) -> Look:
    parts = [Part(".func", path, value.func), Part(".args", f"{path}.args", value.args)]
    parts.append(Part(".keywords", f"{path}.keywords", value.keywords))
    return Look(kind="partial", parts=[*parts, *attributes(value, path)])


def _wrapper(value: Any, path: str, own: Own) -> Look:
    names = ("__func__", "fget", "fset", "fdel", "func")
    inner = [(name, getattr(value, name, None)) for name in names]
    return Look(kind=type(value).__name__, parts=[Part(f".{n}", path, item) for n, item in inner if item is not None])


def _module(value: ModuleType, path: str, own: Own) -> Look:
    if value.__name__ not in own:
        return Look(kind="module", value=value.__name__)
    return Look(kind="module", value=value.__name__, parts=_variables(vars(value), value.__name__))


def _class(value: type, path: str, own: Own) -> Look:
    name = f"{value.__module__}.{value.__qualname__}"
    if value.__module__ not in own:
        return Look(kind="class", value=name)
    return Look(kind="class", value=name, parts=_variables(vars(value), name))


def _variables(held: Mapping[str, Any], path: str) -> list[Part]:
    """The variables of a module or class, but for those that Python itself keeps there."""
    items = ((name, item) for name, item in list(held.items()) if not name.startswith(("__", "_abc_")))
    return [Part(f".{name}", field_path(path, name), item) for name, item in items]


def _suspended(value: Any, path: str, own: Own) -> Look:
    """A generator function's or coroutine's call that waits: its local variables, and where it stands."""
    frame = getattr(value, "gi_frame", None) or getattr(value, "cr_frame", None)
    if frame is None:
        return Look(kind=type(value).__name__, value="ended")
    local = [Part(f".{name}", field_path(path, name), item) for name, item in frame.f_locals.items()]
    return Look(kind=type(value).__name__, value=f"{value.__qualname__} at {frame.f_lasti}", parts=local, num_bytes=8)


def _iterator(value: Any, path: str, own: Own) -> Look:
    """What is left of it, in number; and what it goes through."""
    left = value.__length_hint__() if hasattr(value, "__length_hint__") else ""
    return Look(kind=type(value).__name__, value=f"{left} left", parts=_referents(value, path), num_bytes=8)


def _lazy(value: Any, path: str, own: Own) -> Look:
    return Look(kind=type(value).__name__, value=text_of(value), parts=_referents(value, path), num_bytes=8)


def _referents(value: Any, path: str) -> list[Part]:
    held = (item for item in gc.get_referents(value) if not isinstance(item, type | ModuleType))
    return [Part(f"held {i}", path, item) for i, item in enumerate(held)]


def _weak(value: weakref.ref[Any], path: str, own: Own) -> Look:
    target = value()
    return Look(kind="weak reference", value="dead" if target is None else "", parts=_one(path, target))


def _variable(value: contextvars.ContextVar[Any], path: str, own: Own) -> Look:
    return Look(kind="context variable", parts=_one(path, value.get(None)))


def _one(path: str, item: Any) -> Sequence[Part]:
    return () if item is None else (Part("()", path, item),)


_LOOKS: tuple[tuple[Any, Callable[[Any, str, Own], Look]], ...] = (
    (FunctionType, _function),
    (type(functools.lru_cache(lambda: None)), _cache),
    (MethodType, _method),
    (BuiltinMethodType, _built_in_method),
    (functools.partial, _partial),
    ((staticmethod, classmethod, property, functools.cached_property), _wrapper),
    (ModuleType, _module),
    (type, _class),
    ((GeneratorType, CoroutineType), _suspended),
    (ITERATORS, _iterator),
    (_LAZY_TYPES, _lazy),
    (weakref.ref, _weak),
    (contextvars.ContextVar, _variable),
)
