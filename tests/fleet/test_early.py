"""What comes before the boundary, as the controller conducts it."""

import asyncio
from collections.abc import Callable
from itertools import pairwise

import pytest

from tests.fleet.fakes import Server
from tests.fleet.test_attempts import Ends, tried
from worldmove.fleet.reports import Outcome
from worldmove.fleet.tries import CancelAsked, Died, Ending
from worldmove.move.messages import Begin, Cancel, Inquire, MoveMessage, Offer, Prepare, Ready, Start
from worldmove.move.strategy import Strategy


def begun(arrange: Callable[[Ends], None], **waits: float) -> tuple[Ending, Server]:
    """Conduct a try by replay. Unless ``arrange`` has it otherwise, the destination is ready at once."""

    def both(ends: Ends) -> None:
        b = ends.server.wires["b"]
        ends.says[Begin] = lambda message: ends.say("b", Ready) if message.to == "b" and len(b.of(Begin)) == 1 else None
        arrange(ends)

    times = {"patience_s": 2.0, "begin_every_s": 0.2, "told_s": 0.1, "lease_s": 0.5, **waits}
    return tried(both, strategy=Strategy.REPLAY, **times)


def kinds(server: Server, worker: str) -> list[type]:
    return [type(message) for message in server.wires[worker].sent]


def test_both_ends_begin_once_it_is_open_and_the_source_starts_once_the_destination_is_ready() -> None:
    ending, server = begun(lambda ends: None)
    assert ending.outcome is Outcome.COMMITTED
    assert kinds(server, "a") == [Prepare, Begin, Start]
    assert kinds(server, "b") == [Offer, Begin]
    phases = [told[1] for told in server.gateway.told if told[0] == "phase"]
    assert phases == ["prepare", "reserve", "follow", "transfer"]


def test_both_ends_are_told_again_and_again_that_it_goes_on() -> None:
    def arrange(ends: Ends) -> None:
        def heard(message: MoveMessage) -> None:
            if message.to == "b" and len(ends.server.wires["b"].of(Begin)) == 4:
                ends.say("b", Ready)

        ends.says[Begin] = heard

    ending, server = begun(arrange)
    assert ending.outcome is Outcome.COMMITTED
    assert len(server.wires["a"].of(Begin)) == len(server.wires["b"].of(Begin)) == 4
    assert len({(message.nonce, message.patience_s) for message in server.wires["a"].of(Begin)}) == 1


def test_a_start_that_was_lost_is_said_again_when_the_destination_is_still_ready() -> None:
    def arrange(ends: Ends) -> None:
        def started(message: MoveMessage) -> None:
            if len(ends.server.wires["a"].of(Start)) == 1:
                ends.say("b", Ready)
            else:
                ends.commit()

        ends.says[Start] = started

    ending, server = begun(arrange)
    assert ending.outcome is Outcome.COMMITTED
    assert len(server.wires["a"].of(Start)) == 2


def test_a_destination_that_waits_longer_than_its_lease_for_the_boundary_hears_that_the_move_goes_on() -> None:
    """A source comes to its boundary when its next list is there: that may take longer than ``lease_s``."""
    heard_at: list[float] = []

    def arrange(ends: Ends) -> None:
        loop = asyncio.get_running_loop()

        def began(message: MoveMessage) -> None:
            if message.to != "b":
                return
            heard_at.append(loop.time())
            if len(heard_at) == 1:
                ends.say("b", Ready)

        ends.says[Begin] = began
        for number in range(1, 8):
            loop.call_later(0.2 * number, ends.say, "b", Ready)
        loop.call_later(1.5, ends.commit)
        ends.says[Start] = lambda message: None

    ending, _ = begun(arrange, move_s=10.0)
    assert ending.outcome is Outcome.COMMITTED
    assert max(after - before for before, after in pairwise(heard_at)) < 0.5
    assert heard_at[-1] - heard_at[0] > 1.0


@pytest.mark.parametrize("side", ["source", "destination"])
def test_an_end_that_gives_up_before_the_boundary_aborts_the_move_by_its_own_word(side: str) -> None:
    def arrange(ends: Ends) -> None:
        ends.says[Begin] = lambda message: ends.ended(side, "aborted", "its_word") if message.to == "b" else None

    ending, server = begun(arrange)
    assert (ending.outcome, ending.reason) == (Outcome.ABORTED, "its_word")
    assert all(wire.of(Cancel) for wire in server.wires.values())
    assert server.wires["a"].of(Start) == []
    found = server.desk.row("s")
    assert found is not None
    assert found.attempt is None


def test_a_destination_that_is_never_ready_is_given_up_when_the_patience_is_over() -> None:
    def arrange(ends: Ends) -> None:
        ends.says[Begin] = lambda message: None
        ends.says[Cancel] = lambda message: ends.ended(
            "source" if message.to == "a" else "destination", "aborted", "cancelled"
        )

    ending, server = begun(arrange)
    assert ending.outcome is Outcome.ABORTED
    assert 8 <= len(server.wires["a"].of(Begin)) <= 12
    assert server.wires["a"].of(Start) == []


def test_a_cancel_before_the_boundary_is_an_abort_and_nothing_starts() -> None:
    def arrange(ends: Ends) -> None:
        ends.says[Begin] = lambda message: ends.attempt.take(CancelAsked()) if message.to == "b" else None
        ends.says[Cancel] = lambda message: ends.ended(
            "source" if message.to == "a" else "destination", "aborted", "cancelled"
        )

    ending, server = begun(arrange)
    assert (ending.outcome, ending.reason) == (Outcome.ABORTED, "cancelled")
    assert server.wires["a"].of(Start) == []


@pytest.mark.parametrize("worker", ["a", "b"])
def test_a_death_before_the_boundary_closes_the_attempt_and_wakes_the_other_end(worker: str) -> None:
    def arrange(ends: Ends) -> None:
        def dies(message: MoveMessage) -> None:
            if message.to == "b":
                ends.server.dies(worker)
                ends.attempt.take(Died(worker=worker))

        ends.says[Begin] = dies
        ends.says[Cancel] = lambda message: (
            ends.ended("source" if message.to == "a" else "destination", "aborted", "cancelled")
            if message.to != worker
            else None
        )

    ending, server = begun(arrange)
    other = "b" if worker == "a" else "a"
    assert (ending.outcome, ending.reason) == (Outcome.ABORTED, "worker_gone")
    assert server.wires[other].of(Inquire)
    assert server.wires["a"].of(Start) == []
    found = server.desk.row("s")
    assert found is not None
    assert found.attempt is None
