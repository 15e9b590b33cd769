"""What a worker finds out before its hello."""

import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import torch

from tests.worker.counting import CountingEngine, World
from worldmove.errors import UserError
from worldmove.fleet.warmed_up import warmed_up
from worldmove.move.admission import admit
from worldmove.move.strategy import Strategy
from worldmove.worker.engines import build_engine
from worldmove.worker.warm_up import warm_up


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def clock() -> float:
    return float(next(_ticks))


_ticks = itertools.count()


def test_two_engines_of_one_kind_have_one_canary() -> None:
    first, second = (warm_up(CountingEngine(), clock).environment for _ in range(2))
    assert first == second


def test_an_engine_that_computes_otherwise_has_another_canary_and_no_other_difference() -> None:
    class Other(CountingEngine):
        def open(self, seed: int) -> World:
            world = super().open(seed)
            world.numbers[0] += 1e-6
            return world

    here, there = (warm_up(engine, clock).environment for engine in (CountingEngine(), Other()))
    assert {name for name in here if here[name] != there[name]} == {"engine.canary.frames", "engine.canary.state"}


def test_an_arena_holds_the_state_and_room_to_grow() -> None:
    engine = build_engine("reference:tiny", 1)
    assert warm_up(engine, clock).arena_bytes >= 1.25 * 18_432


def test_every_rate_is_measured() -> None:
    rates = warm_up(CountingEngine(), clock).rates
    timed = ["block_s", "copy_bytes_per_s", "freeze_s", "hash_bytes_per_s", "install_s", "period_s", "row_bytes_per_s"]
    assert sorted(rates) == sorted([*timed, "dirty_bytes", "further_bytes", "new_bytes"])
    assert all(rate > 0 for name, rate in rates.items() if name != "further_bytes")


class OfNumbersAlone(CountingEngine):
    """Nothing of its state is memory."""

    def state(self, session: World) -> dict[str, object]:
        return {"block": session.block, "number": session.block * 7, "empty": torch.empty(0)}

    def install(self, state: Any, into: World | None = None) -> World:
        return self.open(state["number"])


def test_a_state_without_bytes_is_moved_by_what_is_known_of_others() -> None:
    """No rate was measured over nothing."""
    rates = warm_up(OfNumbersAlone(), clock).rates
    assert rates["hash_bytes_per_s"] > 0
    known = warmed_up(rates, rates)
    assert known.row_rate is None
    measured = replace(known, path_rate=1e9, horizon_s=60.0)
    found = {strategy: admit(measured, strategy) for strategy in Strategy}
    assert found[Strategy.BOUNDARY_COPY].admitted
    assert found[Strategy.REPLAY].reason == "not_measured"


class NoSpec(CountingEngine):
    """Its spec is something else."""

    def __init__(self, num_threads: int) -> None:
        super().__init__()

    @property
    def spec(self) -> Any:
        return 5


class Raising(NoSpec):
    @property
    def spec(self) -> Any:
        raise SystemExit("it has none yet")


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("python:os:system", "calling it raised TypeError: "),
        ("python:os:strerror", "python:os:strerror is no engine: str has no spec, state_types, "),
        ("python:os:sep", "it is of type str, and cannot be called"),
        ("python:sys:exit", "calling it raised SystemExit: 1"),
        ("python::x", "importing  raised ValueError"),
        ("python:.x:y", "importing .x raised TypeError"),
        ("python:tests.worker.raises_when_imported:x", "raised SystemExit: this module ends whoever imports it"),
        ("python:tests.worker.test_warm_up:NoSpec", "its spec is no EngineSpec, and of type int"),
        ("python:tests.worker.test_warm_up:Raising", "its spec raised SystemExit: it has none yet"),
        ("scattered:python:os:strerror", "is no engine"),
    ],
)
def test_what_makes_no_engine_is_said_in_one_sentence(name: str, why: str) -> None:
    with pytest.raises(UserError) as refused:
        build_engine(name, 1)
    assert why in str(refused.value)
    assert "\n" not in str(refused.value)


def test_an_engine_is_built_by_its_name() -> None:
    assert build_engine("python:tests.worker.counting:CountingEngine", 3).spec.num_threads == 3
    for name in (
        "reference:nothing",
        "island",
        "python:tests.worker.counting",
        "python:no.such:thing",
        "python:tests:x",
    ):
        with pytest.raises(UserError, match="engine"):
            build_engine(name, 1)
