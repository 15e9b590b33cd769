"""An engine whose tensors are bound anew keeps the contract, and nothing of a session stays where it lay."""

from typing import Any

from tests.engine.contract import EngineContract, addresses, copied, play, walk
from worldmove.engine.base import Engine
from worldmove.engine.matrix import tiny_latents
from worldmove.engine.scattered import ScatteredEngine


class TestScatteredEngine(EngineContract):
    NUM_BLOCKS = 3

    def make_engine(self) -> Engine[Any]:
        return ScatteredEngine(tiny_latents())

    def test_a_step_keeps_the_addresses_of_an_adopted_state(self, engine: Engine[Any]) -> None:
        """It is made to keep none."""
        session = engine.install(copied(engine, engine.open(5)))
        held, places = engine.state(session), dict(addresses(engine, session))
        play(engine, session, walk(engine, 1))
        after = dict(addresses(engine, session))
        assert held
        assert len(places) == len(after) > 40
        assert [path for path in places if places[path] == after[path]] == []
