"""SIGSTOP of either end of a move, at every phase of it: suspected, replaced where that can be, woken, and fenced."""

import pytest

from tests.faults.conftest import Ground
from tests.faults.hurting import DESTINATION, SOURCE, Hurt, hurt
from tests.faults.points import Action, point_of
from worldmove.fleet.reports import Outcome
from worldmove.fleet.views import SessionState
from worldmove.move.protocol import DestinationEffect as G
from worldmove.move.protocol import DestinationPhase as D
from worldmove.move.protocol import SourceEffect as F
from worldmove.move.protocol import SourcePhase as S

ONLY_COPY = (
    "heard: Prepare",
    point_of("source", S.FROZEN, F.FREEZE),
    "sent: Boundary",
    "at: second_digest",
    point_of("source", S.DOUBT, F.SEND_PROOF),
)
PROVEN = ("sent: Proof", point_of("source", S.DOUBT, F.INQUIRE), point_of("source", S.RETIRED, F.CHECK))
UNPROVEN = (
    "heard: Offer",
    point_of("destination", D.SHADOW, G.RESERVE),
    "heard: Boundary",
    "at: land",
    "at: wait_proof",
    point_of("destination", D.VERIFIED, G.NOTHING),
    point_of("destination", D.DOUBT, G.COMMIT),
)
GRANTED = (
    "sent: CommitAttempt",
    point_of("destination", D.LIVE, G.PROMOTE),
    "engine: in mid-step",
    "sent: BlockDone",
)


def stopped(ground: Ground, worker: str, point: str, *, until_told: bool = False, until_at: str = "") -> Hurt:
    found = ground.run(hurt(ground.house, worker, Action.STOP, point, until_told=until_told, until_at=until_at))
    assert not found.outcome.lost_why  # a worker that does not answer may hold the only copy
    return found


@pytest.mark.parametrize("point", ONLY_COPY)
def test_a_world_waits_for_a_source_that_hangs_with_the_only_copy(ground: Ground, point: str) -> None:
    found = stopped(ground, SOURCE, point)
    assert found.asleep is not None
    assert found.asleep[0] in (SessionState.MOVING, SessionState.IN_DOUBT)
    assert (found.outcome.owner, found.outcome.epoch) in ((SOURCE, 1), (DESTINATION, 2))


def test_the_operator_is_told_that_a_world_waits_for_a_source_that_hangs(ground: Ground) -> None:
    found = stopped(ground, SOURCE, "sent: Boundary", until_told=True)
    report = found.outcome.report
    assert found.asleep == (SessionState.IN_DOUBT, SOURCE)
    assert (report.outcome, report.reason, report.runs_at) == (Outcome.IN_DOUBT, "silent", None)
    assert report.detail == "worker-1 does not answer and no copy has taken over yet"
    assert (found.outcome.owner, found.outcome.epoch) == (SOURCE, 1)


@pytest.mark.parametrize("point", PROVEN)
def test_a_source_that_hangs_after_its_proof_is_not_missed(ground: Ground, point: str) -> None:
    found = stopped(ground, SOURCE, point, until_at=DESTINATION)
    assert (found.outcome.owner, found.outcome.epoch) == (DESTINATION, 2)
    assert found.outcome.report.outcome is Outcome.COMMITTED


@pytest.mark.parametrize("point", UNPROVEN)
def test_a_source_plays_on_when_the_destination_hangs_before_it_asked(ground: Ground, point: str) -> None:
    found = stopped(ground, DESTINATION, point, until_told=True)
    assert found.asleep == (SessionState.LIVE, SOURCE)
    assert (found.outcome.owner, found.outcome.epoch) == (SOURCE, 1)
    assert found.outcome.report.outcome in (Outcome.REFUSED, Outcome.ABORTED)
    assert found.outcome.report.runs_at == SOURCE


@pytest.mark.parametrize("point", GRANTED)
def test_a_destination_that_hangs_after_its_grant_is_replaced_and_fenced_when_it_wakes(
    ground: Ground, point: str
) -> None:
    found = stopped(ground, DESTINATION, point, until_at=SOURCE)
    assert (found.outcome.owner, found.outcome.epoch) == (SOURCE, 3)
