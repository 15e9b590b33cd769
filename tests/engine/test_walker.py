"""The example engine takes whatever a session's key changes may be."""

import importlib.util
from pathlib import Path
from types import ModuleType

from worldmove.engine.base import KeyChange

EXAMPLE = Path(__file__).parents[2] / "examples" / "walker.py"


def walker() -> ModuleType:
    spec = importlib.util.spec_from_file_location("walker", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_keys_may_be_released_that_are_not_down_and_pressed_that_are() -> None:
    """A server that was started again releases every key, since it does not know which were down."""
    engine = walker().make(1)
    session = engine.open(1)
    for down in (False, True, True, False, False):
        engine.step(session, [KeyChange(number=1, key=key, down=down) for key in engine.spec.keys])
        assert sorted(session.held) == (sorted(engine.spec.keys) if down else [])
