"""A move's report in a visitor's words."""

from dataclasses import replace

import pytest

from worldmove.fleet.reports import MoveReport, Outcome, PhaseTime
from worldmove.serve.results import proof, result_of, sentence, visitor_phases

FRAME_S = 0.125
MOVED = MoveReport(
    session="s-1",
    attempt="m-1",
    source="worker-1",
    destination="worker-2",
    outcome=Outcome.COMMITTED,
    reason="done",
    detail="Moved to worker-2",
    epoch=2,
    tries=1,
    transport="shm",
    started_at=0.0,
    took_s=0.1,
    pause_s=0.0118,
    gap_s=0.0,
    num_bytes=1_000,
    num_leaves=450,
    num_groups=1,
    source_digest="d",
    destination_digest="d",
    num_checked=450,
    runs_at="worker-2",
)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        (
            {},
            "Moved. Your world now runs at worker-2. You waited 0 frames. The pause was 11.8 ms. "
            "All 450 parts are identical (checked).",
        ),
        ({"runs_at": "worker-1"}, "Moved to worker-2. Your world now runs at worker-1. You waited 0 frames."),
        ({"runs_at": None}, "Moved to worker-2. No worker runs it now."),
        ({"gap_s": 0.2}, "You waited 2 frames."),
        ({"gap_s": 0.01}, "You waited 1 frame."),
        (
            {"outcome": Outcome.REFUSED, "detail": "torch.mkl is 1 here and 2 there", "runs_at": "worker-1"},
            "Not moved, nothing changed. torch.mkl is 1 here and 2 there. Your world goes on at worker-1.",
        ),
        (
            {"outcome": Outcome.REFUSED, "detail": "worker-1 ended", "runs_at": None},
            "Not moved, nothing changed. worker-1 ended. No worker runs it now.",
        ),
        (
            {"outcome": Outcome.ABORTED, "detail": "One part arrived damaged (3 tries)", "runs_at": "worker-1"},
            "Not moved, nothing changed. One part arrived damaged (3 tries). Your world goes on at worker-1.",
        ),
        ({"outcome": Outcome.IN_DOUBT}, "Holding. We are making sure that only one copy goes on."),
        ({"outcome": Outcome.LOST, "detail": "no copy is left"}, "This world could not be recovered. No copy is left."),
    ],
)
def test_a_sentence_begins_with_what_did_or_did_not_happen(changes: dict[str, object], says: str) -> None:
    said = sentence(replace(MOVED, **changes), FRAME_S)  # type: ignore[arg-type]
    assert says in said
    assert said.startswith(("Moved", "Not moved", "Holding", "This world could not"))


def test_nothing_is_said_of_a_wait_that_was_not_measured() -> None:
    report = replace(MOVED, gap_s=None, pause_s=None)
    assert "waited" not in sentence(report, FRAME_S)
    result = result_of(report, FRAME_S)
    assert (result.gap_ms, result.pause_ms, result.missed_frames) == (None, None, None)


@pytest.mark.parametrize("outcome", list(Outcome))
def test_proof_is_checked_n_of_n_or_not_checked_and_never_a_third(outcome: Outcome) -> None:
    said = proof(replace(MOVED, outcome=outcome))
    assert said == ("checked 450/450" if outcome is Outcome.COMMITTED else f"not checked ({outcome.value})")


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"num_checked": 0}, "worker-2 has not reported a comparison"),
        ({"num_checked": 0, "num_leaves": 0}, "worker-2 has not reported a comparison"),
        ({"num_checked": 449}, "worker-2 has compared 449 of 450 parts"),
        ({"destination_digest": "e"}, "the state digests of both ends differ"),
    ],
)
def test_a_committed_move_without_the_destinations_comparison_claims_no_identical_part(
    changes: dict[str, object], why: str
) -> None:
    report = replace(MOVED, **changes)  # type: ignore[arg-type]
    assert proof(report) == f"not checked ({why})"
    assert sentence(report, FRAME_S).endswith(f"Its parts: not checked ({why}).")
    assert "identical" not in sentence(report, FRAME_S)


def test_phases_of_both_ends_become_five_in_the_order_of_a_move() -> None:
    phases = (
        PhaseTime(side="destination", name="reserve", start_s=-0.03, end_s=-0.01),
        PhaseTime(side="source", name="freeze", start_s=0.0, end_s=0.001),
        PhaseTime(side="source", name="digest", start_s=0.001, end_s=0.009),
        PhaseTime(side="destination", name="land", start_s=0.002, end_s=0.005),
        PhaseTime(side="destination", name="verify", start_s=0.005, end_s=0.008),
        PhaseTime(side="destination", name="wait_proof", start_s=0.008, end_s=0.01),
        PhaseTime(side="destination", name="commit", start_s=0.01, end_s=0.011),
        PhaseTime(side="source", name="doubt", start_s=0.01, end_s=0.5),
    )
    assert [(phase.name, phase.ms) for phase in visitor_phases(phases)] == [
        ("Copying", 20.0),
        ("Holding", 5.0),
        ("Checking", 5.0),
        ("Handing over", 1.0),
    ]
