"""The report of a move: both ends on one axis, and its sentence."""

from dataclasses import replace

import pytest

from worldmove.move.messages import Ended
from worldmove.move.report import MoveReport, Outcome, PhaseTime, merge_phases, pause_s


def ended(side: str, clock: float, *phases: tuple[str, float, float]) -> Ended:
    return Ended(
        to="controller",
        sender="A",
        incarnation=1,
        session="s",
        attempt="a",
        epoch=1,
        side=side,
        outcome="committed",
        reason="done",
        detail="",
        phases=phases,
        clock=clock,
        num_bytes=0,
        num_leaves=0,
        num_groups=0,
        state_digest="",
    )


SOURCE = ended("source", 100.0, ("freeze", 0.0, 0.002), ("boundary", 0.002, 0.010))
DESTINATION = ended("destination", 97.0, ("reserve", 0.0, 0.5), ("land", 3.003, 3.009), ("promote", 3.015, 3.016))

REPORT = MoveReport(
    session="s",
    attempt="a",
    source="a/gpu0",
    destination="GPU 1",
    outcome=Outcome.COMMITTED,
    reason="done",
    detail="",
    epoch=2,
    tries=1,
    transport="shm",
    started_at=0.0,
    took_s=1.0,
    pause_s=0.0118,
    gap_s=0.0,
    num_leaves=450,
)


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


def test_a_committed_move_is_told_with_its_pause_and_its_proof() -> None:
    assert REPORT.sentence() == (
        "Moved. Your world now runs on GPU 1. No block came late. The pause was 11.8 ms. "
        "All 450 parts are identical (checked)."
    )


def test_a_late_block_is_said_and_what_is_not_known_is_not() -> None:
    assert "One block came 20.0 ms late." in replace(REPORT, gap_s=0.02).sentence()
    unknown = replace(REPORT, gap_s=None, pause_s=None).sentence()
    assert unknown == "Moved. Your world now runs on GPU 1. All 450 parts are identical (checked)."


@pytest.mark.parametrize(
    ("outcome", "reason", "detail", "tries", "sentence"),
    [
        (
            Outcome.REFUSED,
            "environment",
            "GPU 1 computes differently (driver 570 and 580)",
            1,
            "Not moved, nothing changed. GPU 1 computes differently (driver 570 and 580). "
            "Your world goes on at a/gpu0.",
        ),
        (
            Outcome.ABORTED,
            "mismatch",
            "1 of its groups arrived damaged: caches[0].key",
            3,
            "Not moved, nothing changed. A part arrived damaged (3 tries). We threw the copy away. "
            "Your world goes on at a/gpu0.",
        ),
        (
            Outcome.ABORTED,
            "engine_wrote",
            "the engine wrote after its block boundary: window",
            1,
            "Not moved, nothing changed. The engine wrote after its block boundary: window. "
            "Your world goes on at a/gpu0.",
        ),
    ],
)
def test_a_failure_begins_with_what_did_not_happen(
    outcome: Outcome, reason: str, detail: str, tries: int, sentence: str
) -> None:
    report = replace(REPORT, outcome=outcome, reason=reason, detail=detail, tries=tries)
    assert report.sentence() == sentence


@pytest.mark.parametrize("outcome", list(Outcome))
def test_no_sentence_boasts(outcome: Outcome) -> None:
    sentence = replace(REPORT, outcome=outcome).sentence()
    assert sentence.endswith(".")
    assert not any(word in sentence.lower() for word in ("success", "seamless", "0 ms "))
