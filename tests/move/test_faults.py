"""A fault at each seam and in each phase: whatever happens, one copy goes on, and it is the same world.

After every fault the fleet must be well again: the session is played by one worker, the blocks that it makes are
shown and are those of a world that never moved, and a next move without faults is committed.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from tests.move.faulty_post import every, first
from tests.move.harness import SESSION, Copy, Fleet, LedgerFault, Outcome, Plays, Worker, reference
from tests.move.virtual import run
from worldmove.move.ledger_rules import CloseAttempt, CommitAttempt, Failover, Operation, Reclaim
from worldmove.move.messages import (
    Abandon,
    AnyMoveMessage,
    Boundary,
    Cancel,
    Ended,
    Gone,
    Inquire,
    Landed,
    Offer,
    Prepare,
    Prepared,
    Proof,
    Reserved,
    Start,
)
from worldmove.move.source import TakenOver

OF_A_MOVE = [Prepare, Prepared, Offer, Reserved, Start, Boundary, Landed, Proof, Inquire, Ended]
BEFORE_THE_PROOF = [Prepare, Prepared, Offer, Reserved, Start, Boundary, Landed]

Story = Callable[[Fleet], Coroutine[Any, Any, None]]


def tell(story: Story) -> None:
    async def main() -> None:
        fleet = Fleet()
        await fleet.play(3)
        await story(fleet)
        assert fleet.gateway.shown == reference(fleet), "the world is another one"

    run(main())


async def is_well_again(fleet: Fleet) -> None:
    """One worker plays, nobody else holds a copy, and the session can be moved."""
    fleet.post_fault = lambda message: (0.0005,)
    fleet.ledger_fault = lambda worker, operation: None
    fleet.on_post = lambda message: None
    fleet.on_promote = lambda copy: None
    at = await fleet.one_goes_on()
    await fleet.settled()
    outcome = await fleet.move("B" if at == "A" else "A")
    assert outcome.outcomes == ("committed", "committed")
    assert await fleet.one_goes_on() != at


# the post


@pytest.mark.parametrize("kind", OF_A_MOVE)
def test_one_message_is_lost(kind: type) -> None:
    async def story(fleet: Fleet) -> None:
        fleet.post_fault = first(kind, ())
        outcome = await fleet.move("B")
        if kind in (Boundary, Landed, Proof, Inquire):
            assert outcome.outcomes == ("committed", "committed"), "it is sent again"
        await is_well_again(fleet)

    tell(story)


@pytest.mark.parametrize("kind", OF_A_MOVE)
def test_every_message_of_a_kind_is_lost(kind: type) -> None:
    async def story(fleet: Fleet) -> None:
        fleet.post_fault = every(kind, ())
        outcome = await fleet.move("B")
        if kind in BEFORE_THE_PROOF:
            assert "committed" not in outcome.outcomes
            assert fleet.row.epoch == 1
        await is_well_again(fleet)

    tell(story)


@pytest.mark.parametrize("kind", OF_A_MOVE)
def test_every_message_of_a_kind_comes_twice_and_once_more_much_later(kind: type) -> None:
    async def story(fleet: Fleet) -> None:
        fleet.post_fault = every(kind, (0.0005, 0.0011, 0.4, 7.0))
        outcome = await fleet.move("B")
        assert outcome.outcomes == ("committed", "committed")
        await fleet.play(5)
        await fleet.settled()
        assert (await fleet.move("A")).outcomes == ("committed", "committed")
        await fleet.play(500)  # while the last repetitions come in
        await is_well_again(fleet)

    tell(story)


@pytest.mark.parametrize("delay_s", [0.6, 3.0, 12.0, 35.0])
@pytest.mark.parametrize("kind", OF_A_MOVE)
def test_every_message_of_a_kind_is_late(kind: type, delay_s: float) -> None:
    async def story(fleet: Fleet) -> None:
        fleet.post_fault = every(kind, (delay_s,))
        await fleet.move("B", limit_s=30.0)
        await is_well_again(fleet)

    tell(story)


def test_messages_of_an_attempt_long_over_do_nothing() -> None:
    async def story(fleet: Fleet) -> None:
        await fleet.move("B")
        await fleet.play(5)
        await fleet.settled()
        await fleet.move("A")
        await fleet.play(5)
        await fleet.settled()
        for message in list(fleet.sent):
            if message.to in fleet.workers and not isinstance(message, Offer):
                fleet.workers[message.to].deliver(message)
        await fleet.wait(5.0)
        assert fleet.row.epoch == 3
        await is_well_again(fleet)

    tell(story)


def test_an_old_offer_takes_a_slot_for_its_lease_and_no_longer() -> None:
    async def story(fleet: Fleet) -> None:
        await fleet.move("B")
        await fleet.play(5)
        await fleet.settled()
        await fleet.move("A")
        await fleet.play(5)
        await fleet.settled()
        (old,) = [message for message in fleet.sent if isinstance(message, Offer) and message.to == "B"]
        fleet.workers["B"].offers.clear()
        fleet.workers["B"].deliver(old)
        await fleet.wait(10.0)
        assert fleet.workers["B"].copies == []
        await is_well_again(fleet)

    tell(story)


@pytest.mark.parametrize("field", ["session", "attempt", "epoch", "incarnation"])
def test_a_message_that_differs_in_one_name_is_none_of_this_attempts(field: str) -> None:
    """An Abandon that is foreign in one field, at the moment when a true one would end the move."""

    async def story(fleet: Fleet) -> None:
        def intrude(message: AnyMoveMessage) -> None:
            if isinstance(message, Boundary):
                names = {name: getattr(message, name) for name in ("session", "attempt", "epoch", "incarnation")}
                names["incarnation"] = 1
                names[field] = {"session": "s-2", "attempt": "00000009-t", "epoch": 7, "incarnation": 9}[field]
                foreign = Abandon(to="A", sender="B", reason="foreign", detail="", **names)
                fleet.workers["A"].deliver(foreign)

        fleet.on_post = intrude
        assert (await fleet.move("B")).outcomes == ("committed", "committed")
        await is_well_again(fleet)

    tell(story)


# the ledger


def silent(kind: type[Operation], fault: LedgerFault, times: int) -> Callable[[Worker, Operation], LedgerFault | None]:
    asked: list[Operation] = []

    def ledger(worker: Worker, operation: Operation) -> LedgerFault | None:
        if not isinstance(operation, kind) or len(asked) >= times:
            return None
        asked.append(operation)
        return fault

    return ledger


@pytest.mark.parametrize("times", [1, 4, 12])
@pytest.mark.parametrize("fault", list(LedgerFault))
def test_the_ledger_is_silent_about_the_commit(fault: LedgerFault, times: int) -> None:
    async def story(fleet: Fleet) -> None:
        fleet.ledger_fault = silent(CommitAttempt, fault, times)
        outcome = await fleet.move("B", limit_s=60.0)
        granted = fault is LedgerFault.AFTER_EFFECT or times == 1
        assert outcome.outcomes == (("committed", "committed") if granted else ("aborted", "aborted"))
        assert "in_doubt" in [ended.outcome for ended in outcome.ended if ended.side == "destination"]
        await is_well_again(fleet)

    tell(story)


@pytest.mark.parametrize("times", [1, 4])
@pytest.mark.parametrize("fault", list(LedgerFault))
def test_the_ledger_is_silent_about_an_inquiry(fault: LedgerFault, times: int) -> None:
    async def story(fleet: Fleet) -> None:
        fleet.ledger_fault = silent(CloseAttempt, fault, times)
        fleet.post_fault = every(Proof, ())  # so that the source has to inquire
        outcome = await fleet.move("B", limit_s=60.0)
        assert outcome.outcomes == ("aborted", "aborted")
        await is_well_again(fleet)

    tell(story)


def test_a_source_in_doubt_never_goes_on_by_itself_however_long_the_ledger_is_silent() -> None:
    async def story(fleet: Fleet) -> None:
        fleet.ledger_fault = lambda worker, operation: LedgerFault.BEFORE_EFFECT
        outcome = await fleet.move("B", limit_s=600.0)
        assert fleet.copies(Plays.LIVE) == []
        assert outcome.outcomes == ("in_doubt", "in_doubt")
        assert [copy.worker.name for copy in fleet.copies(Plays.FROZEN)] == ["A"]
        assert [copy.worker.name for copy in fleet.copies(Plays.SHADOW)] == ["B"]
        await is_well_again(fleet)

    tell(story)


# cancel


async def cancelled_at(fleet: Fleet, kind: type, *, by_ledger: bool = False) -> Outcome:
    """Move, and cancel the attempt when the first message of a kind is sent."""
    seen: list[AnyMoveMessage] = []

    def cancel(message: AnyMoveMessage) -> None:
        if not isinstance(message, kind) or seen:
            return
        seen.append(message)
        for name in ("A", "B"):
            fleet.say(Cancel, name, message.attempt, message.epoch)
        if by_ledger:
            close = CloseAttempt(
                session=message.session,
                attempt=message.attempt,
                epoch=message.epoch,
                worker="controller",
                incarnation=1,
                boundary=0,
            )
            fleet.decide(close)

    fleet.on_post = cancel
    return await fleet.move("B", limit_s=30.0)


@pytest.mark.parametrize("by_ledger", [False, True])
@pytest.mark.parametrize("kind", OF_A_MOVE)
def test_a_move_is_cancelled_while_this_message_is_under_way(kind: type, *, by_ledger: bool) -> None:
    async def story(fleet: Fleet) -> None:
        outcome = await cancelled_at(fleet, kind, by_ledger=by_ledger)
        if kind in BEFORE_THE_PROOF:
            assert "committed" not in outcome.outcomes
            assert fleet.row.epoch == 1
        elif kind in (Inquire, Ended):
            assert outcome.outcomes == ("committed", "committed"), "it was too late"
        else:
            assert outcome.outcomes in (("committed", "committed"), ("aborted", "aborted"))
        await is_well_again(fleet)

    tell(story)


def test_before_its_proof_a_cancelled_source_thaws_at_once() -> None:
    async def story(fleet: Fleet) -> None:
        frozen_at: list[float] = []
        loop = asyncio.get_running_loop()

        def note(message: AnyMoveMessage) -> None:
            if isinstance(message, Boundary):
                frozen_at.append(loop.time())
                fleet.say(Cancel, "A", message.attempt, message.epoch)

        fleet.on_post = note
        fleet.ledger_fault = lambda worker, operation: LedgerFault.BEFORE_EFFECT  # it does not wait for the ledger
        moving = asyncio.create_task(fleet.move("B", limit_s=5.0))
        while not frozen_at:  # noqa: ASYNC110
            await asyncio.sleep(0.0001)
        await asyncio.sleep(0.002)
        assert fleet.owner.worker.name == "A"
        await moving
        await is_well_again(fleet)

    tell(story)


# death


@pytest.mark.parametrize("noticed_after_s", [0.0, 3.0])
@pytest.mark.parametrize("kind", OF_A_MOVE)
def test_the_destination_dies_while_this_message_is_under_way(kind: type, noticed_after_s: float) -> None:
    async def story(fleet: Fleet) -> None:
        def kill(message: AnyMoveMessage) -> None:
            if isinstance(message, kind) and "B" not in fleet.suspected:
                fleet.kill("B", noticed_after_s=noticed_after_s)

        fleet.on_post = kill
        outcome = await fleet.move("B", limit_s=30.0)
        at = await fleet.one_goes_on()
        assert at == "A", outcome.outcomes
        fleet.restart("B")
        await is_well_again(fleet)

    tell(story)


def test_the_destination_dies_right_after_its_grant_and_the_source_reclaims() -> None:
    async def story(fleet: Fleet) -> None:
        fleet.on_promote = lambda copy: fleet.kill("B")
        outcome = await fleet.move("B", limit_s=30.0)
        assert (fleet.row.owner, fleet.row.epoch, fleet.row.granted_by) == ("A", 3, "reclaim")
        assert await fleet.one_goes_on() == "A"
        end = outcome.of("source")
        assert end is not None
        assert (end.outcome, end.reason) == ("aborted", "reclaimed")
        fleet.restart("B")
        await is_well_again(fleet)

    tell(story)


@pytest.mark.parametrize("noticed_after_s", [0.0, 3.0])
@pytest.mark.parametrize("kind", [Proof, Inquire])
def test_the_source_dies_after_its_proof_and_the_destination_goes_on(kind: type, noticed_after_s: float) -> None:
    async def story(fleet: Fleet) -> None:
        def kill(message: AnyMoveMessage) -> None:
            if isinstance(message, kind) and "A" not in fleet.suspected:
                fleet.kill("A", noticed_after_s=noticed_after_s)

        fleet.on_post = kill
        await fleet.move("B", limit_s=10.0)
        assert await fleet.one_goes_on() == "B"
        fleet.restart("A")
        await is_well_again(fleet)

    tell(story)


@pytest.mark.parametrize("noticed_after_s", [0.0, 3.0])
def test_r4_the_source_dies_after_its_proof_and_the_attempt_was_closed_and_the_destination_goes_on(
    noticed_after_s: float,
) -> None:
    async def story(fleet: Fleet) -> None:
        def kill(message: AnyMoveMessage) -> None:
            if isinstance(message, Proof) and "A" not in fleet.suspected:
                fleet.kill("A", noticed_after_s=noticed_after_s)
                fleet.decide(
                    CloseAttempt(
                        session=message.session,
                        attempt=message.attempt,
                        epoch=message.epoch,
                        worker="controller",
                        incarnation=1,
                        boundary=0,
                    )
                )

        fleet.on_post = kill
        await fleet.move("B", limit_s=10.0)
        assert await fleet.one_goes_on() == "B"
        fleet.restart("A")
        await is_well_again(fleet)

    tell(story)


@pytest.mark.parametrize("kind", [Start, Boundary, Landed])
def test_a_source_that_dies_before_its_proof_leaves_no_half_copy_behind(kind: type) -> None:
    async def story(fleet: Fleet) -> None:
        def kill(message: AnyMoveMessage) -> None:
            if isinstance(message, kind) and "A" not in fleet.suspected:
                fleet.kill("A")

        fleet.on_post = kill
        await fleet.move("B", limit_s=10.0)
        await fleet.wait(20.0)
        assert fleet.row.owner == "A"
        assert [copy for worker in fleet.workers.values() for copy in worker.copies] == []

    tell(story)


# suspicion


def test_r5_a_suspected_owner_is_reclaimed_from_and_keeps_its_copy_until_it_is_passed() -> None:
    async def story(fleet: Fleet) -> None:
        def suspect(copy: Copy) -> None:
            fleet.suspected.append("B")

        fleet.on_promote = suspect
        await fleet.move("B", limit_s=10.0)
        await fleet.wait(2.0)
        assert (fleet.row.owner, fleet.row.granted_by) == ("A", "reclaim")
        beaten = fleet.workers["B"].copies[0]
        assert beaten in fleet.copies(Plays.LIVE)  # it does not know yet
        beaten.play()
        await fleet.wait(1.0)
        assert beaten in fleet.copies(Plays.SUPERSEDED)
        fleet.suspected.clear()
        await fleet.play(2)
        await fleet.wait(1.0)
        assert beaten.plays in (Plays.RETIRED, Plays.GONE)
        await is_well_again(fleet)

    tell(story)


def test_r5_the_loser_of_a_suspicion_reclaims_back_when_the_winner_is_gone() -> None:
    async def story(fleet: Fleet) -> None:
        fleet.on_promote = lambda copy: fleet.suspected.append("B")
        await fleet.move("B", limit_s=10.0)
        await fleet.wait(2.0)
        assert (fleet.row.owner, fleet.row.epoch) == ("A", 3)
        beaten = fleet.workers["B"].copies[0]
        beaten.play()
        await fleet.wait(1.0)
        fleet.suspected.clear()
        fleet.kill("A")
        assert await fleet.one_goes_on() == "B"
        assert (fleet.row.epoch, fleet.row.granted_by) == (4, "reclaim")
        fleet.restart("A")
        await is_well_again(fleet)

    tell(story)


def test_a_frozen_source_that_another_copy_has_replaced_never_says_that_its_move_was_committed() -> None:
    async def story(fleet: Fleet) -> None:
        fleet.workers["C"] = Worker(fleet, "C")
        fleet.owner.passed = checks_are_owed  # type: ignore[assignment,method-assign]
        await fleet.move("B")
        await fleet.play(4)
        await fleet.wait(1.0)
        beaten, fleet.post_fault = fleet.owner, every(Landed, ())
        moving = asyncio.create_task(fleet.move("C", limit_s=1.0))
        await fleet.wait(0.5)
        assert beaten.plays is Plays.FROZEN
        fleet.suspected.append("B")
        fleet.gateway.closed_epoch = 2
        fleet.decide(CloseAttempt(session=SESSION, attempt="00000002-t", epoch=2, worker="", incarnation=0, boundary=7))
        fleet.decide(Failover(session=SESSION, epoch=2, worker="A", incarnation=1, log_reaches=7))
        assert fleet.row.owner == "A"
        fleet.workers["B"].refuse(3)
        outcome = await moving
        fleet.suspected.clear()
        assert await fleet.one_goes_on() == "A"
        await fleet.wait(1.0)
        assert beaten.retired_by == "", "its blocks are no check of a move"
        told = [m.outcome for m in fleet.sent if isinstance(m, Ended) and m.attempt == outcome.attempt]
        assert set(told) == {"aborted"}

    tell(story)


# acknowledgements


def test_r12_no_proof_is_sent_before_the_gateway_has_taken_every_frame() -> None:
    async def story(fleet: Fleet) -> None:
        fleet.gateway.deaf = True
        fleet.owner.play()
        moving = asyncio.create_task(fleet.move("B"))
        await fleet.wait(1.0)
        assert [message for message in fleet.sent if isinstance(message, Landed)]
        assert [message for message in fleet.sent if isinstance(message, Proof)] == []
        fleet.gateway.deaf = False
        fleet.copies(Plays.FROZEN)[0].send_again()
        assert (await moving).outcomes == ("committed", "committed")
        await is_well_again(fleet)

    tell(story)


def test_a_gateway_that_never_takes_the_frames_ends_the_move_and_not_the_session() -> None:
    async def story(fleet: Fleet) -> None:
        fleet.gateway.deaf = True
        fleet.owner.play()
        outcome = await fleet.move("B", limit_s=30.0)
        assert outcome.outcomes == ("aborted", "aborted")
        end = outcome.of("source")
        assert end is not None
        assert end.reason == "time_out"
        fleet.gateway.deaf = False
        fleet.owner.send_again()
        await is_well_again(fleet)

    tell(story)


def test_a_destination_that_is_stalled_before_any_proof_holds_the_player_no_longer_than_two_seconds() -> None:
    async def story(fleet: Fleet) -> None:
        fleet.post_fault = lambda message: () if isinstance(message, Boundary) else (0.0005,)
        moving = asyncio.create_task(fleet.move("B", limit_s=30.0))
        await fleet.wait(1.5)
        assert len(fleet.copies(Plays.FROZEN)) == 1
        await fleet.wait(1.0)
        assert fleet.copies(Plays.FROZEN) == []
        outcome = await moving
        end = outcome.of("source")
        assert end is not None
        assert (end.outcome, end.reason) == ("aborted", "time_out")
        await is_well_again(fleet)

    tell(story)


# late grants


def test_r13_a_destination_told_that_it_owns_what_it_discarded_says_that_it_is_gone() -> None:
    async def story(fleet: Fleet) -> None:
        def grant_it_all_the_same(worker: Worker, operation: Operation) -> None:
            if isinstance(operation, CloseAttempt) and worker.name == "B":
                commit = CommitAttempt(
                    session=operation.session,
                    attempt=operation.attempt,
                    epoch=operation.epoch,
                    boundary=3,
                    worker="B",
                    incarnation=1,
                )
                fleet.decide(commit)

        def cancel(message: AnyMoveMessage) -> None:
            if isinstance(message, Boundary):
                fleet.say(Cancel, "B", message.attempt, message.epoch)

        fleet.ledger_fault = grant_it_all_the_same
        fleet.on_post = cancel
        await fleet.move("B", limit_s=10.0)
        (gone,) = [message for message in fleet.sent if isinstance(message, Gone)]
        assert (gone.sender, gone.owned_epoch) == ("B", 2)
        fleet.ledger_fault = lambda worker, operation: None
        fleet.gone.append(("B", 1))
        await fleet.play(1)  # refused: that is how it hears of it
        assert await fleet.one_goes_on() == "A"

    tell(story)


def test_a_destination_that_has_given_up_says_nothing_of_what_a_failover_gave_to_another_copy_of_its_worker() -> None:
    """A snapshot that its worker kept plays by then: that the session is gone would be untrue."""

    async def story(fleet: Fleet) -> None:
        def fail_over(worker: Worker, operation: Operation) -> None:
            if isinstance(operation, CloseAttempt) and worker.name == "B" and fleet.row.epoch == 1:
                fleet.decide(operation)
                fleet.suspected.append("A")
                fleet.gateway.closed_epoch = 1
                fleet.decide(Failover(session=SESSION, epoch=1, worker="B", incarnation=1, log_reaches=7))

        def cancel(message: AnyMoveMessage) -> None:
            if isinstance(message, Boundary):
                fleet.say(Cancel, "B", message.attempt, message.epoch)

        fleet.ledger_fault = fail_over
        fleet.on_post = cancel
        await fleet.move("B", limit_s=10.0)
        assert (fleet.row.owner, fleet.row.epoch, fleet.row.granted_by) == ("B", 2, "failover")
        assert [message for message in fleet.sent if isinstance(message, Gone)] == []
        assert fleet.workers["B"].destinations == []  # its slot is given back

    tell(story)


async def checks_are_owed(_block: int) -> None:
    await asyncio.Event().wait()


def test_a_retired_copy_that_was_not_told_of_its_failover_hears_of_it_when_it_asks_and_replays_first() -> None:
    async def story(fleet: Fleet) -> None:
        kept = fleet.owner
        kept.passed = checks_are_owed  # type: ignore[assignment,method-assign]
        await fleet.move("B")
        await fleet.play(4)
        await fleet.wait(1.0)
        assert kept.plays is Plays.RETIRED
        assert kept.world.block == 3
        fleet.kill("B")
        await fleet.wait(0.1)
        fleet.gateway.closed_epoch = 2
        fleet.decide(Failover(session=SESSION, epoch=2, worker="A", incarnation=1, log_reaches=7))
        assert await fleet.one_goes_on() == "A"
        assert (fleet.row.epoch, fleet.row.granted_by, kept.epoch) == (3, "failover", 3)

    tell(story)


@pytest.mark.parametrize("is_told", [True, False])
def test_an_owner_that_a_failover_was_given_to_a_second_time_replays_and_plays_on_in_its_epoch(is_told: bool) -> None:
    """The word that it held nothing was of a copy before this one, and came late."""

    async def story(fleet: Fleet) -> None:
        owner = fleet.owner
        await fleet.play(3)
        fleet.suspected.append("A")
        fleet.gateway.closed_epoch = 1
        fleet.decide(Failover(session=SESSION, epoch=1, worker="A", incarnation=1, log_reaches=7))
        fleet.suspected.clear()
        fleet.workers["A"].refuse(2)
        await fleet.wait(0.001)
        if is_told:
            fleet.workers["A"].sources[0].deliver(TakenOver(epoch=2, block=len(fleet.gateway.shown)))
        assert await fleet.one_goes_on() == "A"
        assert (fleet.row.epoch, fleet.row.granted_by, owner.epoch) == (2, "failover", 2)

    tell(story)


def test_a_reclaim_is_asked_only_with_what_the_holder_has() -> None:
    async def story(fleet: Fleet) -> None:
        asked: list[Reclaim] = []

        def note(worker: Worker, operation: Operation) -> None:
            if isinstance(operation, Reclaim):
                asked.append(operation)

        fleet.ledger_fault = note
        await fleet.move("B")
        await fleet.wait(2.0)
        assert asked
        assert {(reclaim.worker, reclaim.epoch, reclaim.acknowledged, reclaim.computed) for reclaim in asked} == {
            ("A", 2, 3, 3)
        }
        assert fleet.row.owner == "B"
        await is_well_again(fleet)

    tell(story)
