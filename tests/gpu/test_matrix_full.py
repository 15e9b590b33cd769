"""The matrix engine at full size: finite, captured as launched, and equal worlds in one process, in two, and installed.

The figures that go with it are ``bench.gpu_engine``'s, which asks the same without ``--quick``.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
import torch

from bench.gpu_engine import finite, sizes
from bench.gpu_twins import SEED, captured_against_eager, installed_copy, two_processes, two_sessions
from worldmove.engine.matrix.engine import MatrixEngine
from worldmove.engine.matrix.presets import matrix_game_2

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def engine() -> Iterator[MatrixEngine]:
    deterministic = torch.are_deterministic_algorithms_enabled()
    made = MatrixEngine(matrix_game_2())
    made.warm_up()
    yield made
    torch.use_deterministic_algorithms(deterministic)


def played(engine: MatrixEngine, num_blocks: int) -> Any:
    session = engine.open(SEED)
    for _ in range(num_blocks):
        engine.step(session, ())
    return session


def test_the_state_has_every_leaf_and_byte_and_stays_finite(engine: MatrixEngine) -> None:
    session = played(engine, 3)
    found = sizes(engine, session)
    assert (found["latents"]["num_leaves"], found["latents"]["allocated"]) == (450, 1_670_124_960)
    assert found["complete"]["allocated"] >= 2_735_000_000
    assert finite(engine, session, 60)["is_finite"]


@pytest.mark.parametrize(
    "ask",
    [
        lambda engine: two_sessions(engine, 6),
        lambda engine: installed_copy(engine, played(engine, 3)),
        lambda engine: captured_against_eager(engine, matrix_game_2()),
    ],
    ids=["two sessions", "an installed copy", "captured and launched"],
)
def test_equal_worlds_are_equal_in_every_frame_and_byte(engine: MatrixEngine, ask: Any) -> None:
    found = ask(engine)
    assert all(found["frames_equal"])
    assert found["states_equal"]


def test_equal_worlds_are_equal_in_two_processes(engine: MatrixEngine) -> None:
    found = partial(two_processes, engine, "matrix-game-2", 4)()
    assert found.get("error") is None
    assert all(found["frames_equal"])
    assert all(found["states_equal"].values())
