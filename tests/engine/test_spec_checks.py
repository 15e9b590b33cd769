"""A spec that cannot be served is refused in one sentence, before anything is begun with its engine."""

from dataclasses import replace
from enum import StrEnum
from typing import Any

import pytest

from tests.worker.counting import CountingEngine
from worldmove.engine.base import EngineSpec
from worldmove.engine.made import required
from worldmove.engine.named import ENGINES
from worldmove.engine.spec_checks import COUNTS, TEXTS, fault_of
from worldmove.errors import UserError
from worldmove.limits import MAX_FRAMES, MAX_KEYS
from worldmove.serve.frames import FrameHeader, Kind, action_index, pack

NONE, NAN, INFINITE = None, float("nan"), float("inf")
SPEC = CountingEngine().spec


class Named(str):
    __slots__ = ()


class Counted(int):
    pass


class Direction(StrEnum):
    UP = "up"
    DOWN = "down"


WRONG: list[tuple[str, Any]] = [
    *((name, value) for name in TEXTS for value in (NONE, 3, b"x", "\ud800", Named("x"))),
    *((name, value) for name in COUNTS for value in (NONE, 0, -1, 2.0, True, "2", NAN, Counted(2), COUNTS[name] + 1)),
    *(("frames_per_s", value) for value in (NONE, 0, 0.0, -1.0, NAN, INFINITE, "40", True, 1e-320, 1e-4, 1e5, 10**400)),
    *(("keys", value) for value in (NONE, "up", ["up"], ("up", 3), ("",), ("x" * 65,), ("\ud800",), ("up", "up"))),
    *((name, "x" * 257) for name in TEXTS),
    ("keys", tuple(str(number) for number in range(MAX_KEYS + 1))),
]


@pytest.mark.parametrize(("field", "value"), WRONG)
def test_a_spec_that_cannot_be_served_is_refused_by_the_name_of_its_field(field: str, value: Any) -> None:
    class Engine(CountingEngine):
        @property
        def spec(self) -> EngineSpec:
            return replace(SPEC, **{field: value})

    with pytest.raises(UserError, match=f"^x cannot be served: its {field} ") as refused:
        required("x", Engine())
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("name", [name for name in ENGINES if "matrix-game-2" not in name])  # gigabytes of weights
def test_every_engine_of_ours_can_be_served(name: str) -> None:
    assert fault_of(ENGINES[name](1).spec) is None


def test_keys_may_be_members_of_an_enumeration_of_names() -> None:
    assert fault_of(replace(SPEC, keys=tuple(Direction))) is None


def test_the_most_that_a_spec_may_have_can_be_sent() -> None:
    keys = tuple(str(number) for number in range(MAX_KEYS))
    spec = replace(SPEC, keys=keys, frames_per_block=MAX_FRAMES, height=1, width=1)
    assert fault_of(spec) is None
    header = FrameHeader(
        kind=Kind.LIVE,
        action=action_index(keys[-1], keys),
        index=MAX_FRAMES - 1,
        width=1,
        height=1,
        show_after_ms=0,
        epoch=1,
        block=0,
        frame=0,
        number=0,
        pose=(0, 0),
        server_life=1,
        sha256=bytes(32),
        receipt=bytes(8),
    )
    assert pack(header, bytes(3))
