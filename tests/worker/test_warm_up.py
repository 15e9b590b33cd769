"""What a worker finds out before its hello."""

import itertools
from collections.abc import Iterator

import pytest
import torch

from tests.worker.counting import CountingEngine, World
from worldmove.errors import UserError
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
    assert sorted(rates) == sorted([*timed, "dirty_bytes", "new_bytes"])
    assert all(rate > 0 for rate in rates.values())


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
