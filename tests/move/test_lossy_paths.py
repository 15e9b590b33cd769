"""Moves over paths that break, fall silent or are slow: each is committed whole, or ends in a clean abort."""

import random

import pytest

from tests.move.harness import Fleet
from tests.move.test_moves import goes_on, tell
from worldmove.transport.lossy import LossPlan, Lossy
from worldmove.transport.slow import Delay, Slow

PIECE = 256


@pytest.mark.parametrize(
    ("plan", "reasons"),
    [
        (LossPlan(cut=0.08, piece_bytes=PIECE), {"transport"}),
        (LossPlan(cut=0.0, silence=0.08, piece_bytes=PIECE), {"time_out"}),
    ],
    ids=["breaks", "falls silent"],
)
def test_a_try_over_a_path_that_loses_something_is_aborted_and_the_source_goes_on(
    plan: LossPlan, reasons: set[str]
) -> None:
    found: list[tuple[str, str]] = []

    async def story(fleet: Fleet) -> None:
        fleet.transports["loopback"] = Lossy(fleet.transports["loopback"], rng=random.Random(7), plan=plan)
        await fleet.play(2)
        for _ in range(25):
            at = fleet.owner.worker.name
            outcome = await fleet.move("B" if at == "A" else "A")
            source = outcome.of("source")
            assert source is not None
            found.append((outcome.outcomes[0], source.reason))
            committed = outcome.outcomes == ("committed", "committed")
            assert committed or outcome.outcomes == ("aborted", "aborted")
            await goes_on(fleet, {"A": "B", "B": "A"}[at] if committed else at, 2)
            await fleet.settled()  # no slot is lost

    tell(story)
    assert {reason for outcome, reason in found if outcome == "aborted"} == reasons
    assert {outcome for outcome, _ in found} == {"committed", "aborted"}


def test_a_slow_path_brings_the_same_world_later() -> None:
    async def story(fleet: Fleet) -> None:
        delay = Delay(least_s=0.001, most_s=0.02, piece_bytes=PIECE)
        fleet.transports["loopback"] = Slow(fleet.transports["loopback"], rng=random.Random(7), delay=delay)
        await fleet.play(2)
        for to in "BA":
            outcome = await fleet.move(to)
            assert outcome.outcomes == ("committed", "committed")
            end = outcome.of("destination")
            assert end is not None
            landed = next(end - begin for name, begin, end in end.phases if name == "land")
            assert landed > 0.005
            await goes_on(fleet, to, 2)
            await fleet.settled()

    tell(story)
