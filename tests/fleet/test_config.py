"""Times of the controller that do not go together are refused."""

import pytest

from worldmove.errors import UserError
from worldmove.fleet.config import FleetConfig


@pytest.mark.parametrize("times", [{"beat_s": 0.51}, {"let_go_s": 0.9}, {"worker_lease_s": 0.9}, {"beat_s": 2.0}])
def test_beats_that_are_too_slow_for_what_waits_for_them_are_refused_in_one_sentence(times: dict[str, float]) -> None:
    with pytest.raises(
        UserError, match=r"^(let_go_s|worker_lease_s) is [0-9.]+ s, and takes two beats at least: "
    ) as no:
        FleetConfig(**times)  # type: ignore[arg-type]
    assert str(no.value).count(". ") == 0


@pytest.mark.parametrize("times", [{}, {"beat_s": 0.5, "let_go_s": 1.0}, {"beat_s": 1.5, "let_go_s": 3.0}])
def test_two_beats_are_enough(times: dict[str, float]) -> None:
    FleetConfig(**times)  # type: ignore[arg-type]
