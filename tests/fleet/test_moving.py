"""The one report that comes of a move."""

import asyncio
from dataclasses import replace

import msgspec
import pytest

from tests.fleet.fakes import server_of
from tests.move.endings import ended
from worldmove.errors import MoveRefused
from worldmove.fleet.moving import expectation, report, require, said_of_frames
from worldmove.fleet.reports import MoveReport, Outcome
from worldmove.fleet.tries import Ending, Plan
from worldmove.move.admission import admit
from worldmove.move.measured import Measured
from worldmove.move.strategy import Strategy
from worldmove.serve.follows import FollowBook


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


def test_what_was_expected_is_told_with_its_terms() -> None:
    known = Measured(num_bytes=10**9, source_hash_rate=1e10, path_rate=1e9, destination_hash_rate=1e10, horizon_s=2.0)
    told = expectation(admit(known))
    assert told is not None
    assert told.strategy == "boundary copy"
    assert [name for name, _ in told.terms] == ["freeze", "boundary", "land", "install", "verify", "commit"]
    assert told.pause_s == pytest.approx(sum(seconds for _, seconds in told.terms))
    assert expectation(None) is None
    assert expectation(admit(replace(known, path_rate=None))) is None


def test_a_follower_of_which_no_other_frames_are_known_is_not_said_to_have_made_the_same() -> None:
    """A world that rests is met where it stands: the follower has made no frame at all."""
    book = FollowBook()
    assert said_of_frames(book.first_difference("00000001-x")) == "no other frames of it were seen"
    book.shown(3, [b"shown"])
    book.stepped("00000001-x", 3, [b"other"])
    assert said_of_frames(book.first_difference("00000001-x")) == "its frames were others from block 3 on"
