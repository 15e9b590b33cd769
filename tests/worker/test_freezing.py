"""A session that is frozen: what its engine says of it then."""

from typing import Any

from tests.worker.counting import CountingEngine
from worldmove.engine.base import Rolled
from worldmove.worker.freezing import rolled_in


class Rolling(CountingEngine):
    """Says of what it has rolled whatever it likes."""

    def __init__(self, said: dict[Any, Rolled]) -> None:
        super().__init__()
        self._said = said

    def rolled(self, session: Any) -> dict[Any, Rolled]:
        return self._said


def test_what_an_engine_says_of_what_it_has_rolled_is_told_only_as_far_as_a_message_can_say_it() -> None:
    """An axis counted from the end, a path that is none: each would end the link of every world of the worker."""
    odd: dict[Any, Rolled] = {
        "numbers": Rolled(axis=-1, block=1),
        "block": Rolled(axis=0, block=-1),
        "number": Rolled(axis=0, block=1, sink=1 << 62),
        5: Rolled(axis=0, block=1),
        "\ud800": Rolled(axis=0, block=1),
        "x" * 3000: Rolled(axis=0, block=1),
    }
    even = {"caches[0].keys": Rolled(axis=1, block=2, sink=3)}
    assert rolled_in(Rolling({**odd, **even}), None) == {"caches[0].keys": (1, 2, 3)}
