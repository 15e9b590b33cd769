"""What a foreign engine raises, of its own or in any way: who hears of it, and in which words."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import pytest

from tests.worker.counting import CountingEngine
from worldmove.errors import EngineFailed, StateRefused
from worldmove.state.arena import Arena
from worldmove.units import MIB
from worldmove.worker.foreign import engine_asked, engine_trusted
from worldmove.worker.freezing import freeze_in
from worldmove.worker.installing import install_in, open_in


def fails(*_arguments: Any, **_options: Any) -> Any:
    raise RuntimeError("of its own making")


def frozen(engine: CountingEngine, arena: Arena) -> Callable[[], object]:
    session, _ = open_in(engine, engine.open(1), arena)
    return lambda: freeze_in(engine, session, arena)


def installed(engine: CountingEngine, arena: Arena) -> Callable[[], object]:
    session, _ = open_in(engine, engine.open(1), arena)
    still = freeze_in(engine, session, arena)
    captured, placement = still.capture, still.placement
    return lambda: install_in(engine, captured.manifest, placement, arena)


@pytest.mark.parametrize(
    ("prepare", "method"),
    [(frozen, "quiesce"), (frozen, "state"), (installed, "install"), (installed, "state")],
)
def test_what_an_engine_raises_of_its_own_refuses_the_state_and_says_what_failed(
    prepare: Callable[[CountingEngine, Arena], Callable[[], object]], method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, arena = CountingEngine(), Arena(MIB, "test")
    act = prepare(engine, arena)
    monkeypatch.setattr(engine, method, fails)
    with pytest.raises(StateRefused, match="of its own making"):
        act()


@pytest.mark.parametrize(("call", "error"), [(engine_asked, StateRefused), (engine_trusted, EngineFailed)])
def test_an_engine_that_calls_exit_or_cancels_ends_its_session_and_not_the_worker(
    call: Callable[[str], AbstractContextManager[None]], error: type[Exception]
) -> None:
    for raised in (SystemExit("no more"), asyncio.CancelledError("no more")):
        with pytest.raises(error, match="no more"), call("step"):
            raise raised
    with pytest.raises(KeyboardInterrupt), call("step"):
        raise KeyboardInterrupt


class Unsayable(Exception):
    """Raises where it is to say what it is."""

    def __repr__(self) -> str:
        raise ValueError("no words")


@pytest.mark.parametrize(("call", "error"), [(engine_asked, StateRefused), (engine_trusted, EngineFailed)])
def test_an_error_that_cannot_say_what_it_is_is_told_by_its_kind(
    call: Callable[[str], AbstractContextManager[None]], error: type[Exception]
) -> None:
    with pytest.raises(error, match="Unsayable"), call("step"):
        raise Unsayable


@pytest.mark.parametrize("argument", [10**5000, 1 << 64, -(1 << 64)], ids=["no words", "long", "below"])
def test_an_error_of_ours_whose_words_are_a_number_without_end_is_told_all_the_same(argument: int) -> None:
    """Python writes no int of so many digits."""
    with pytest.raises(EngineFailed) as told, engine_trusted("step"):
        raise EngineFailed(argument)
    assert str(told.value).startswith("the engine failed to step: ")
