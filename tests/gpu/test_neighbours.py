"""On a GPU: neighbours of a real move are untouched, and a source that is killed in mid-pull takes nobody along."""

import asyncio

import pytest

from tests.gpu.neighbours import beside
from tests.worker.device_engine import build_cuda
from worldmove.fleet.reports import Outcome

ENGINE = "python:tests.worker.device_engine:build_cuda"

pytestmark = pytest.mark.timeout(240)


def test_a_neighbour_of_real_moves_plays_on_as_if_nothing_had_moved() -> None:
    ended = asyncio.run(beside(ENGINE, build_cuda(1), [None, None, None]))
    assert ended == [Outcome.COMMITTED] * 3


def test_a_source_killed_at_any_instant_of_a_move_leaves_the_destinations_neighbour_whole() -> None:
    asyncio.run(beside(ENGINE, build_cuda(1), [0.0, 0.02, 0.05, 0.1, 0.2]))
