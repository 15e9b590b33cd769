"""Engines by name: what a worker's configuration says is what its process builds."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from worldmove.engine.base import Engine
from worldmove.engine.reference.engine import ReferenceEngine
from worldmove.engine.reference.presets import Preset, island, tiny
from worldmove.errors import UserError

PRESETS: Mapping[str, Callable[[], Preset]] = {"island": island, "tiny": tiny}


def build_engine(name: str, num_threads: int) -> Engine[Any]:
    """Build ``reference:PRESET``, or call ``python:package.module:factory`` with the number of threads.

    Raises UserError for a name that is neither, WeightsError for weights that are not the pinned ones.
    """
    kind, _, rest = name.partition(":")
    if kind == "reference" and rest in PRESETS:
        return ReferenceEngine(PRESETS[rest](), num_threads=num_threads)
    if kind == "python" and rest.count(":") == 1:
        return _imported(name, *rest.split(":"))(num_threads)
    known = ", ".join(f"reference:{preset}" for preset in PRESETS)
    raise UserError(f"there is no engine {name}; there are {known}, and python:package.module:factory")


def _imported(name: str, module: str, factory: str) -> Callable[[int], Engine[Any]]:
    try:
        found: Callable[[int], Engine[Any]] = getattr(import_module(module), factory)
    except (ImportError, AttributeError) as error:
        raise UserError(f"the engine {name} cannot be imported: {error}") from error
    return found
