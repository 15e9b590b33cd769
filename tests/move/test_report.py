"""The report of a move: both ends on one axis."""

import pytest

from tests.move.endings import ended
from worldmove.move.messages import Ended
from worldmove.move.report import PhaseTime, merge_phases, pause_s

SOURCE = ended("source", 100.0, ("freeze", 0.0, 0.002), ("boundary", 0.002, 0.010))
DESTINATION = ended("destination", 97.0, ("reserve", 0.0, 0.5), ("land", 3.003, 3.009), ("promote", 3.015, 3.016))


def test_both_ends_are_put_on_the_sources_axis_in_the_order_of_their_beginnings() -> None:
    merged = merge_phases(SOURCE, DESTINATION)
    assert [(phase.side, phase.name) for phase in merged] == [
        ("destination", "reserve"),
        ("source", "freeze"),
        ("source", "boundary"),
        ("destination", "land"),
        ("destination", "promote"),
    ]
    assert [phase.start_s for phase in merged] == pytest.approx([-3.0, 0.0, 0.002, 0.003, 0.015])


def test_the_pause_is_from_the_freeze_to_the_end_of_the_promotion() -> None:
    assert pause_s(merge_phases(SOURCE, DESTINATION)) == pytest.approx(0.016)


@pytest.mark.parametrize("ends", [(SOURCE, None), (None, DESTINATION), (None, None)])
def test_without_both_ends_there_is_no_pause(ends: tuple[Ended | None, Ended | None]) -> None:
    assert pause_s(merge_phases(*ends)) is None


def test_one_end_alone_is_on_its_own_axis() -> None:
    assert merge_phases(None, DESTINATION)[0] == PhaseTime(side="destination", name="reserve", start_s=0.0, end_s=0.5)
