"""What a renewed snapshot costs: which blocks lie beside it, and when that is good."""

import pytest

from bench.figures_renewal import renewal
from bench.renewal import options_of, server_of
from bench.renewal_found import Found, renewals_of, samples_of, summary_of
from worldmove.cli.benches.live_blocks import Segment
from worldmove.cli.benches.tap import Arrival

PERIOD_S = 0.48


def blocks(worker: str, first_s: float, longer: dict[int, float], late: int = -1) -> list[Arrival]:
    """Twelve blocks of 100 ms, some of them longer; one late, perhaps."""
    return [
        Arrival(
            worker=worker,
            block=block,
            epoch=1,
            arrived=first_s + PERIOD_S * block + longer.get(block, 0.0),
            margin_s=-0.01 if block == late else 0.2,
            compute_s=0.1 + longer.get(block, 0.0),
            frames=(),
        )
        for block in range(12)
    ]


def found(longer_s: float, late: int = -1) -> Found:
    """Six blocks without protection, six with: one snapshot of the state before block 8, kept 0.3 s later."""
    owner = blocks("worker-1", 1.0, {})
    resident = blocks("worker-2", 1.25, {7: longer_s}, late)
    half = 1.0 + 5.5 * PERIOD_S
    return Found(
        num_bytes=1000,
        owner=owner,
        resident=resident,
        segments=[
            Segment(with_moves=False, blocks=(0, 6), span=(0.5, half)),
            Segment(with_moves=True, blocks=(6, 12), span=(half, 9.0)),
        ],
        kept=[(8, owner[7].arrived + 0.3)],
    )


def test_a_renewal_begins_at_its_boundary_and_ends_when_it_is_seen_to_be_kept() -> None:
    assert renewals_of(found(0.0)) == [pytest.approx((1.0 + 7 * PERIOD_S, 1.3 + 7 * PERIOD_S))]


def test_a_snapshot_of_a_boundary_that_nobody_saw_is_no_span() -> None:
    it = found(0.0)
    it.kept.append((40, 8.0))
    assert len(renewals_of(it)) == 1


def test_a_residents_blocks_beside_a_renewal_are_compared_with_those_without_any() -> None:
    told = summary_of(found(0.002))
    assert (told["renewals"], told["resident"]["during"]["n"]) == (1, 1)
    assert told["resident"]["cost"] == pytest.approx(0.02)
    assert told["resident"]["control"]["n"] == 5  # one lies on the edge of the segments
    assert told["goal_met"]
    assert not summary_of(found(0.004))["goal_met"]
    assert summary_of(found(0.004), goal=0.05)["goal_met"]


def test_a_block_that_is_late_while_a_world_is_protected_is_not_good_and_one_in_the_control_is_no_matter() -> None:
    assert summary_of(found(0.0, late=10))["late_while_protected"] == 1
    assert not summary_of(found(0.0, late=10))["goal_met"]
    assert summary_of(found(0.0, late=2))["goal_met"]


def test_where_nothing_was_renewed_nothing_is_known_and_that_is_not_good() -> None:
    it = found(0.0)
    it.kept.clear()
    told = summary_of(it)
    assert (told["renewals"], told["resident"]["cost"], told["goal_met"]) == (0, None, False)


def test_every_block_is_in_the_samples_and_the_keeper_has_room_for_two_snapshots_beside_its_world() -> None:
    kept = samples_of(found(0.0))
    assert (len(kept["owner"]), len(kept["resident"]), len(kept["renewals_s"])) == (12, 12, 1)
    assert server_of(options_of([])).worker.num_slots >= 3


def told(it: Found) -> str:
    """Its section of the page of figures."""
    result = {
        "begun_at": "2026-01-02T03:04:05",
        "commit": {"sha": "c" * 40},
        "options": {"engine": "reference:x", "protect": 8},
        "summary": summary_of(it),
    }
    return " ".join("\n".join(renewal(result)).split())


def test_the_page_says_what_was_measured_and_whether_it_is_good() -> None:
    text = told(found(0.002))
    assert "every 8 blocks, 1 in all" in text
    assert "goes 300 ms (median)" in text
    assert "| the resident | beside a renewal | 1 | 0 | 102.0 | 102.0 |" in text
    assert "a block of the resident takes +2.0%" in text
    assert text.endswith("and none late: met.")
    assert told(found(0.0, late=10)).endswith("and none late: **not met**.")


def test_the_page_makes_no_number_of_what_was_not_measured() -> None:
    it = found(0.0)
    it.kept.clear()
    text = told(it)
    assert "goes an unknown time" in text
    assert "| the owner | beside a renewal | 0 | 0 | - | - |" in text
    assert "a block of the resident takes an unmeasured share" in text
