"""With the double in a GPU's place: neighbours of a real move, and of a source that is killed in its middle."""

import pytest

from tests.gpu.neighbours import beside
from tests.nursed import Nursed
from tests.worker.device_engine import build_calm
from worldmove.fleet.reports import Outcome


@pytest.mark.slow
def test_a_neighbour_plays_on_beside_a_move_and_beside_one_whose_source_is_killed(nursed: Nursed) -> None:
    ended = nursed.serve(beside("python:tests.worker.device_engine:build_calm", build_calm(1), [None, 0.02]))
    assert ended[0] is Outcome.COMMITTED
