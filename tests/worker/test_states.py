"""Where an engine's sessions meet the slots' memory: what a foreign engine raises."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.worker.counting import CountingEngine
from worldmove.errors import StateRefused
from worldmove.state.arena import Arena
from worldmove.units import MIB
from worldmove.worker.states import freeze_in, install_in, open_in


def fails(*_arguments: Any, **_options: Any) -> Any:
    raise RuntimeError("of its own making")


def frozen(engine: CountingEngine, arena: Arena) -> Callable[[], object]:
    session, _ = open_in(engine, engine.open(1), arena)
    return lambda: freeze_in(engine, session, arena)


def installed(engine: CountingEngine, arena: Arena) -> Callable[[], object]:
    session, _ = open_in(engine, engine.open(1), arena)
    captured, placement = freeze_in(engine, session, arena)
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
