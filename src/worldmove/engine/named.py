"""The engines that are part of WorldMove, by the names under which they are served, recorded and audited."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from worldmove.engine import matrix, reference
from worldmove.engine.base import Engine

ENGINES: Mapping[str, Callable[[int], Engine[Any]]] = MappingProxyType(
    {
        "reference:island": reference.island,
        "reference:tiny": reference.tiny,
        "reference:matrix-game-2": matrix.matrix_game_2,
        "reference:matrix-game-2-latents": matrix.matrix_game_2_latents,
        "reference:matrix-tiny": matrix.tiny,
        "reference:matrix-tiny-latents": matrix.tiny_latents,
    }
)
"""Each is made with a number of threads."""
