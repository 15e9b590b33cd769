"""The matrix engine on a device: captured layers do what launched ones do, for every session and from any thread."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
import torch

from tests.engine.contract import copied, play, walk
from worldmove.engine.matrix.engine import MatrixEngine
from worldmove.engine.matrix.presets import Preset, tiny
from worldmove.engine.matrix.session import Session
from worldmove.state.tree import flatten


def on_device() -> Preset:
    small = tiny()
    return replace(small, config=replace(small.config, device="cuda", decoder_dtype=torch.float16))


@pytest.fixture(scope="module")
def captured() -> MatrixEngine:
    engine = MatrixEngine(on_device())
    engine.warm_up()
    return engine


@pytest.fixture(autouse=True)
def settings() -> Iterator[None]:
    """The engine's settings are the process's: leave them as they were."""
    deterministic = torch.are_deterministic_algorithms_enabled()
    yield
    torch.use_deterministic_algorithms(deterministic)


def values(engine: MatrixEngine, session: Session) -> dict[str, Any]:
    engine.quiesce(session)
    flat = flatten(engine.state(session), engine.state_types)
    found = {}
    for path, value in zip(flat.paths, flat.values, strict=True):
        if isinstance(value, torch.Generator):
            value = value.get_state()
        found[path] = value.flatten().tolist() if isinstance(value, torch.Tensor) else value
    return found


def test_captured_layers_do_what_launched_ones_do(captured: MatrixEngine) -> None:
    launched = MatrixEngine(on_device())
    inputs = walk(captured, 6)
    one, two = captured.open(3), launched.open(3)
    assert play(captured, one, inputs) == play(launched, two, inputs)
    assert values(captured, one) == values(launched, two)


def test_a_session_goes_on_wherever_its_memory_lies(captured: MatrixEngine) -> None:
    inputs = walk(captured, 8)
    session = captured.open(3)
    play(captured, session, inputs[:4])
    captured.quiesce(session)
    moved = captured.install(copied(captured, session))
    assert play(captured, moved, inputs[4:]) == play(captured, session, inputs[4:])
    assert values(captured, moved) == values(captured, session)


def test_sessions_that_are_stepped_in_turn_do_not_meet_in_the_workspace(captured: MatrixEngine) -> None:
    inputs = walk(captured, 6)
    alone, beside, other = captured.open(3), captured.open(3), captured.open(4)
    expected = play(captured, alone, inputs)
    shown = []
    for changes in inputs:
        shown += play(captured, beside, [changes])
        play(captured, other, [changes[::-1]])
    assert shown == expected


def test_blocks_from_another_thread_are_the_same_blocks(captured: MatrixEngine) -> None:
    inputs = walk(captured, 6)
    one, two = captured.open(3), captured.open(3)
    expected = play(captured, one, inputs)
    with ThreadPoolExecutor(1) as thread:
        shown = play(captured, two, inputs[:3])
        shown += thread.submit(play, captured, two, inputs[3:]).result()
    assert shown == expected


def test_nothing_draws_from_the_devices_own_generator(captured: MatrixEngine) -> None:
    before = torch.cuda.get_rng_state().tolist()
    session = captured.open(3)
    play(captured, session, walk(captured, 4))
    assert torch.cuda.get_rng_state().tolist() == before
