"""The one report that comes of a move."""

import asyncio
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from tests.fleet.fakes import RATES, server_of
from worldmove.errors import MoveRefused
from worldmove.fleet.moving import RATE_AGE_S, RATE_FROM_BYTES, path_rate, report, require
from worldmove.fleet.reports import MoveReport, Outcome
from worldmove.fleet.tries import Ending, Plan
from worldmove.move.admission import admit
from worldmove.move.measured import Measured
from worldmove.move.messages import Ended
from worldmove.move.strategy import Strategy


def ended(side: str, clock: float, *phases: tuple[str, float, float]) -> Ended:
    return Ended(
        to="controller",
        sender="a",
        incarnation=1,
        session="s",
        attempt="00000001-x",
        epoch=1,
        side=side,
        outcome="committed",
        reason="done",
        detail="",
        phases=phases,
        clock=clock,
        num_bytes=100,
        num_leaves=3,
        num_groups=1,
        state_digest=f"digest of the {side}",
    )


def plan_over(transport: str, attempt: str = "00000001-x") -> Plan:
    async def run() -> Plan:
        server = await server_of("a", "b")
        return Plan(
            session="s",
            epoch=1,
            attempt=attempt,
            nonce=b"",
            transport=transport,
            strategy=Strategy.BOUNDARY_COPY,
            source=server.workers.get("a"),
            destination=server.workers.get("b"),
        )

    return asyncio.run(run())


def made(ending: Ending, *, transport: str = "shm", tries: int = 1, attempt: str = "00000001-x") -> MoveReport:
    return report(plan_over(transport, attempt), ending, epoch=2, tries=tries, started_at=5.0, took_s=0.5)


COMMITTED = Ending(
    outcome=Outcome.COMMITTED,
    reason="done",
    detail="",
    source=ended("source", 100.0, ("freeze", 0.0, 0.004), ("doubt", 0.02, 0.05)),
    destination=ended("destination", 100.010, ("reserve", -0.05, -0.04), ("land", 0.0, 0.01), ("promote", 0.02, 0.03)),
)


def test_both_ends_stand_on_one_axis_that_begins_with_the_freeze() -> None:
    phases = [(phase.side, phase.name, round(phase.start_s, 6)) for phase in made(COMMITTED).phases]
    assert phases == [
        ("destination", "reserve", -0.04),
        ("source", "freeze", 0.0),
        ("destination", "land", 0.01),
        ("source", "doubt", 0.02),
        ("destination", "promote", 0.03),
    ]


def test_the_pause_lasts_from_the_freeze_to_the_permission_to_compute() -> None:
    pause_s = made(COMMITTED).pause_s
    assert pause_s is not None
    assert round(pause_s, 6) == 0.04


def test_what_was_checked_is_the_destinations_own_word() -> None:
    assert made(COMMITTED).num_checked == 3
    unsaid = replace(COMMITTED, destination=None)
    assert (made(unsaid).num_leaves, made(unsaid).num_checked) == (3, 0)
    assert COMMITTED.destination is not None
    without_groups = msgspec.structs.replace(COMMITTED.destination, num_groups=0)
    assert made(replace(COMMITTED, destination=without_groups)).num_checked == 0


def test_a_move_that_did_not_happen_has_no_pause() -> None:
    aborted = Ending(outcome=Outcome.ABORTED, reason="mismatch", detail="group 3 differs", source=COMMITTED.source)
    assert made(aborted).pause_s is None
    assert made(aborted).detail == "group 3 differs"


def test_a_damaging_path_is_said_in_plain_words() -> None:
    aborted = Ending(outcome=Outcome.ABORTED, reason="mismatch", detail="group 3 differs")
    assert made(aborted, transport="corrupting-shm", tries=3).detail == "One part arrived damaged (3 tries)"
    dead = Ending(outcome=Outcome.ABORTED, reason="worker_gone", detail="a worker ended in the middle of the move")
    assert made(dead, transport="corrupting-shm", tries=1).detail == dead.detail


def test_a_move_that_would_make_a_block_late_is_refused_with_what_would_help() -> None:
    slow = Measured(num_bytes=10**9, source_hash_rate=1e10, path_rate=1e9, destination_hash_rate=1e10, horizon_s=0.9)
    with pytest.raises(MoveRefused, match=r"the next block is due in .*; it would take") as refused:
        require(admit(slow), slow)
    assert refused.value.reason == "too_slow"
    patient = replace(slow, horizon_s=10.0)
    require(admit(patient), patient)


def test_a_report_says_which_environment_both_ends_shared() -> None:
    assert len(made(COMMITTED).environment_digest) == 64
    assert made(Ending(outcome=Outcome.REFUSED, reason="environment", detail="")).environment_digest == ""


SHM_RATE = RATES["shm_bytes_per_s"]


def rate_over(transport: str, *told: MoveReport, now: float = 10.0) -> float | None:
    return path_rate(plan_over(transport), told, now)


def landed(rate: float, transport: str = "tcp", num_bytes: int = RATE_FROM_BYTES, **changes: Any) -> MoveReport:
    """A move over a path that landed at a rate."""
    source = ended("source", 100.0, ("freeze", 0.0, 0.1))
    destination = ended("destination", 100.0, ("land", 0.2, 0.2 + num_bytes / rate), ("promote", 1.0, 1.1))
    told = made(replace(COMMITTED, source=source, destination=destination), transport=transport)
    return replace(told, num_bytes=num_bytes, **changes)


def test_a_path_carries_what_its_destination_measured_of_it_and_another_path_says_nothing() -> None:
    assert rate_over("shm") == SHM_RATE
    assert rate_over("tcp") is None
    assert rate_over("corrupting-shm") == SHM_RATE


def test_what_the_last_moves_measured_counts_before_what_the_destination_did() -> None:
    slow = [landed(rate, "shm") for rate in (3e6, 1e6, 2e6)]
    assert rate_over("shm", *slow) == pytest.approx(2e6)


@pytest.mark.parametrize(
    "told",
    [
        landed(1e6, "shm"),
        landed(1e6, destination="c"),
        landed(1e6, source="b", destination="a"),
        landed(1e6, num_bytes=RATE_FROM_BYTES - 1),
        landed(1e6, outcome=Outcome.ABORTED),
        landed(1e6, started_at=9.0 - RATE_AGE_S),
    ],
    ids=["another path", "another pair", "the other way", "too small", "aborted", "too long ago"],
)
def test_a_move_that_says_nothing_of_this_path_does_not_count(told: MoveReport) -> None:
    assert rate_over("tcp", told) is None
    assert rate_over("tcp", told, landed(5e6)) == pytest.approx(5e6)
