"""One try of a move, as the controller conducts it between two ends that say what a test lets them say."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from tests.fleet.fakes import ENVIRONMENT, Server, copy_of, server_of
from tests.move import virtual
from worldmove.errors import LedgerError, MoveRefused
from worldmove.fleet.attempts import Attempt
from worldmove.fleet.config import FleetConfig
from worldmove.fleet.reports import Outcome
from worldmove.fleet.tries import CancelAsked, Died, Ending, LinkedAgain, Plan
from worldmove.move.ledger_messages import CommitAttempt
from worldmove.move.messages import (
    AnyMoveMessage,
    Begin,
    Cancel,
    Declined,
    Ended,
    Inquire,
    MoveMessage,
    Offer,
    Prepare,
    Prepared,
    Reserved,
    Start,
)
from worldmove.move.strategy import Strategy
from worldmove.state.capture import capture
from worldmove.state.layout import Layout

ATTEMPT = "00000001-x"
LAYOUT = Layout.of(capture({"number": 1}).manifest).to_bytes()


def ignored(message: MoveMessage) -> None:
    """Say nothing."""


class Ends:
    """Both ends. ``says`` maps the kind of a message to what is done when one arrives."""

    def __init__(self, server: Server, attempt: Attempt) -> None:
        self.server, self.attempt = server, attempt
        self.environment = dict(ENVIRONMENT)
        self.says: dict[type, Callable[[MoveMessage], None]] = {
            Prepare: lambda message: self.say(
                "a", Prepared, layout=LAYOUT, environment=self.environment, ticket=b"", block_s=0.01
            ),
            Offer: lambda message: self.say("b", Reserved),
            Start: lambda message: self.commit(),
        }
        for wire in server.wires.values():
            wire.react = self.hear
        self.tasks: list[asyncio.Task[None]] = []

    def hear(self, message: MoveMessage) -> None:
        self.says.get(type(message), ignored)(message)

    def say(self, worker: str, kind: Callable[..., AnyMoveMessage], **fields: object) -> None:
        names = {"to": "controller", "sender": worker, "incarnation": 1, "session": "s", "attempt": ATTEMPT, "epoch": 1}
        self.attempt.take(kind(**names, **fields))

    def ended(self, side: str, outcome: str, reason: str = "done", *phases: str) -> None:
        self.say(
            "a" if side == "source" else "b",
            Ended,
            side=side,
            outcome=outcome,
            reason=reason,
            detail=reason,
            phases=tuple((name, 0.0, 1.0) for name in phases),
            clock=0.0,
            num_bytes=1,
            num_leaves=1,
            num_groups=1,
            state_digest="",
        )

    def commit(self) -> None:
        async def both() -> None:
            question = CommitAttempt(session="s", attempt=ATTEMPT, epoch=1, boundary=5, worker="b", incarnation=1)
            await self.server.desk.ask(question)
            self.ended("destination", "committed")
            self.ended("source", "committed")

        self.tasks.append(asyncio.ensure_future(both()))


def tried(
    arrange: Callable[[Ends], None],
    *,
    strategy: Strategy = Strategy.BOUNDARY_COPY,
    within_s: float = 5.0,
    **waits: float,
) -> tuple[Ending, Server]:
    """Conduct a try with two ends that behave, but for what ``arrange`` changes."""

    async def run() -> tuple[Ending, Server]:
        server = await server_of("a", "b")
        plan = Plan(
            session="s",
            epoch=1,
            attempt=ATTEMPT,
            nonce=bytes(32),
            transport="shm",
            strategy=strategy,
            source=server.workers.get("a"),
            destination=server.workers.get("b"),
        )
        times = {"prepare_s": 0.05, "reserve_s": 0.05, "move_s": 0.05, "doubt_s": 0.05, "owner_s": 0.05, **waits}
        attempt = Attempt(
            plan,
            config=FleetConfig(**times),  # type: ignore[arg-type]
            desk=server.desk,
            send=server.workers.send,
            admit=lambda plan, prepared: None,
            on_phase=lambda plan, phase: server.gateway.told.append(("phase", phase)),
        )
        arrange(Ends(server, attempt))
        return await asyncio.wait_for(attempt.run(), within_s), server

    return virtual.run(run())


def test_two_ends_that_behave_commit_in_the_order_of_the_picture() -> None:
    ending, server = tried(lambda ends: None)
    assert ending.outcome is Outcome.COMMITTED
    assert [type(message) for message in server.wires["a"].sent] == [Prepare, Start]
    assert [type(message) for message in server.wires["b"].sent] == [Offer]
    assert server.gateway.told[-3:] == [("phase", "prepare"), ("phase", "reserve"), ("phase", "transfer")]


def test_an_environment_that_differs_is_refused_by_field_and_nothing_is_offered() -> None:
    def arrange(ends: Ends) -> None:
        ends.environment = {"engine.name": "none", "torch": "2.12.0", "extra": "1"}

    ending, server = tried(arrange)
    assert (ending.outcome, ending.reason) == (Outcome.REFUSED, "environment")
    assert "torch is 2.12.0 here and 2.13.0 there" in ending.detail
    assert "extra is 1 here and not set there" in ending.detail
    assert server.wires["b"].of(Offer) == []


@pytest.mark.parametrize("kind", [Prepare, Offer])
def test_silence_before_the_start_is_a_refusal_and_both_ends_are_told(kind: type) -> None:
    def arrange(ends: Ends) -> None:
        del ends.says[kind]

    ending, server = tried(arrange)
    assert (ending.outcome, ending.reason) == (Outcome.REFUSED, "silent")
    assert all(wire.of(Cancel) for wire in server.wires.values())
    found = server.desk.row("s")
    assert found is not None
    assert found.attempt is None


def test_a_destination_that_declines_gives_the_words_of_the_refusal() -> None:
    def arrange(ends: Ends) -> None:
        ends.says[Offer] = lambda message: ends.say("b", Declined, reason="no_slot", detail="all 3 slots are taken")

    ending, _ = tried(arrange)
    assert (ending.outcome, ending.reason, ending.detail) == (Outcome.REFUSED, "no_slot", "all 3 slots are taken")


WITHIN_S = 2.0
ASKED: dict[str, tuple[type[MoveMessage], type[AnyMoveMessage], dict[str, object]]] = {
    "a": (Prepare, Prepared, {"layout": LAYOUT, "environment": dict(ENVIRONMENT), "ticket": b"", "block_s": 0.01}),
    "b": (Offer, Reserved, {}),
}


@pytest.mark.parametrize("worker", ["a", "b"])
@pytest.mark.parametrize(
    ("answers_after_s", "gets_on_with", "outcome", "took_s"),
    [
        (1.0, "", Outcome.COMMITTED, 1.0),
        (11.0, "others' openings", Outcome.COMMITTED, 11.0),  # they are before it at the engine
        (11.0, "this", Outcome.COMMITTED, 11.0),  # a large slot is made ready
        (11.0, "", Outcome.REFUSED, WITHIN_S),
        (11.0, "others' states", Outcome.REFUSED, WITHIN_S),  # no engine has a part in that
        (1e6, "others' openings", Outcome.REFUSED, 30.0),
    ],
)
def test_an_end_is_waited_for_while_it_gets_on_with_what_is_before_this_or_with_this(
    worker: str, answers_after_s: float, gets_on_with: str, outcome: Outcome, took_s: float
) -> None:
    asked, answer, fields = ASKED[worker]

    def arrange(ends: Ends) -> None:
        record, loop = ends.server.workers.get(worker), asyncio.get_running_loop()

        async def get_on() -> None:
            while True:
                await asyncio.sleep(0.9 * WITHIN_S)
                record.num_done += gets_on_with == "others' openings"
                record.num_pulled += gets_on_with == "others' states"
                ends.attempt.num_steps += gets_on_with == "this"

        def take(message: MoveMessage) -> None:
            loops.append(loop)
            asked_at.append(loop.time())
            loop.call_later(answers_after_s, lambda: ends.say(worker, answer, **fields))
            ends.tasks.append(loop.create_task(get_on()))

        ends.says[asked] = take

    loops: list[asyncio.AbstractEventLoop] = []
    asked_at: list[float] = []
    ending, _ = tried(arrange, within_s=60.0, prepare_s=WITHIN_S, reserve_s=WITHIN_S, patience_s=30.0)
    assert (ending.outcome, ending.reason) == (outcome, "silent" if outcome is Outcome.REFUSED else "done")
    assert loops[0].time() - asked_at[0] == pytest.approx(took_s, abs=0.6)


@pytest.mark.parametrize(("linked", "took_s"), [("a", 1.0 + WITHIN_S), ("b", 30.0)])
def test_one_whose_word_may_be_lost_with_its_link_is_not_waited_for_though_it_gets_on_with_others(
    linked: str, took_s: float
) -> None:
    loops: list[asyncio.AbstractEventLoop] = []

    def arrange(ends: Ends) -> None:
        record, loop = ends.server.workers.get("a"), asyncio.get_running_loop()

        async def get_on() -> None:
            while True:
                await asyncio.sleep(0.5)
                record.num_done += 1

        def take(message: MoveMessage) -> None:
            loops.append(loop)
            loop.call_later(1.0, ends.attempt.take, LinkedAgain(worker=linked))
            ends.tasks.append(loop.create_task(get_on()))

        ends.says[Prepare] = take

    ending, _ = tried(arrange, within_s=60.0, prepare_s=WITHIN_S, patience_s=30.0)
    assert (ending.outcome, ending.reason) == (Outcome.REFUSED, "silent")
    assert loops[0].time() == pytest.approx(took_s, abs=0.6)


@pytest.mark.parametrize("event", [CancelAsked(), Died(worker="a")])
def test_a_cancel_or_a_death_before_the_start_is_a_refusal(event: CancelAsked | Died) -> None:
    def arrange(ends: Ends) -> None:
        ends.says[Offer] = lambda message: ends.attempt.take(event)

    ending, server = tried(arrange)
    assert ending.outcome is Outcome.REFUSED
    assert server.wires["a"].of(Start) == []


def unreachable(ends: Ends, meanwhile: Callable[[], None]) -> None:
    """The destination cannot reach the source; a moment after it has said so, something happens."""

    def decline(message: MoveMessage) -> None:
        ends.say("b", Declined, reason="transport", detail="no answer at the socket")
        asyncio.get_running_loop().call_later(0.02, meanwhile)

    ends.says[Offer] = decline


def test_a_source_that_could_not_be_reached_and_turns_out_dead_is_named() -> None:
    ending, _ = tried(lambda ends: unreachable(ends, lambda: ends.server.dies("a")), owner_s=60.0, recover_every_s=0.01)
    assert (ending.outcome, ending.reason, ending.detail) == (Outcome.REFUSED, "worker_gone", "a ended")


def answers(ends: Ends, beat: int) -> None:
    """Both workers answer a beat."""
    for worker in ends.server.workers.all():
        worker.beat_answered = beat


def test_a_source_that_answers_a_beat_sent_after_the_word_that_it_cannot_be_reached_has_lived() -> None:
    ending, _ = tried(lambda ends: unreachable(ends, lambda: answers(ends, 1)), owner_s=60.0, recover_every_s=0.01)
    assert (ending.reason, ending.detail) == ("transport", "no answer at the socket")


def test_an_answer_to_an_earlier_beat_does_not_show_that_a_source_lives() -> None:
    def arrange(ends: Ends) -> None:
        for worker in ends.server.workers.all():
            worker.beat_sent = 1

        def answer() -> None:
            answers(ends, 1)
            asyncio.get_running_loop().call_later(0.05, ends.server.dies, "a")

        unreachable(ends, answer)

    ending, _ = tried(arrange, owner_s=60.0, recover_every_s=0.01)
    assert (ending.reason, ending.detail) == ("worker_gone", "a ended")


def test_a_source_of_which_nothing_is_heard_is_not_waited_for_for_ever() -> None:
    ending, _ = tried(lambda ends: unreachable(ends, lambda: None))
    assert (ending.reason, ending.detail) == ("transport", "no answer at the socket")


def test_the_death_of_an_end_whose_word_broke_the_move_is_told_though_it_is_heard_late() -> None:
    def arrange(ends: Ends) -> None:
        def start(message: MoveMessage) -> None:
            ends.ended("destination", "aborted", "transport")
            asyncio.get_running_loop().call_later(0.2, die)

        def die() -> None:
            ends.server.dies("a")
            ends.attempt.take(Died(worker="a"))

        ends.says[Start] = start

    ending, _ = tried(arrange, told_s=0.01, owner_s=60.0)
    assert (ending.outcome, ending.reason) == (Outcome.ABORTED, "worker_gone")
    assert ending.detail == "a ended in the middle of the move"


def test_a_word_of_doubt_is_not_the_end() -> None:
    def arrange(ends: Ends) -> None:
        def start(message: MoveMessage) -> None:
            ends.ended("source", "in_doubt", "no_answer")
            ends.commit()

        ends.says[Start] = start

    assert tried(arrange)[0].outcome is Outcome.COMMITTED


def test_ends_that_give_up_are_an_abort_with_the_destinations_reason() -> None:
    def arrange(ends: Ends) -> None:
        def start(message: MoveMessage) -> None:
            ends.ended("source", "aborted", "peer_gave_up")
            ends.ended("destination", "aborted", "mismatch")

        ends.says[Start] = start

    ending, server = tried(arrange)
    assert (ending.outcome, ending.reason) == (Outcome.ABORTED, "mismatch")
    found = server.desk.row("s")
    assert found is not None
    assert found.attempt is None  # closed, though neither end has said so


def test_a_silent_move_is_cancelled_and_closed_so_that_another_may_begin_and_is_in_doubt_like_its_commit() -> None:
    def arrange(ends: Ends) -> None:
        del ends.says[Start]

    ending, server = tried(arrange)
    assert (ending.outcome, ending.reason) == (Outcome.IN_DOUBT, "silent")
    assert all(wire.of(Cancel) for wire in server.wires.values())
    found = server.desk.row("s")
    assert found is not None
    assert found.attempt is None


def test_a_silent_move_under_a_ledger_that_does_not_answer_is_reported_as_a_doubt() -> None:
    def arrange(ends: Ends) -> None:
        def fail(message: MoveMessage) -> None:
            ends.server.desk.fail("s", LedgerError("the disk is full"))

        ends.says[Start] = fail

    ending, _ = tried(arrange)
    assert ending.outcome is Outcome.IN_DOUBT


def test_a_try_that_its_source_has_given_up_is_aborted_soon_though_its_destination_is_stalled() -> None:
    def arrange(ends: Ends) -> None:
        ends.says[Start] = lambda message: ends.ended("source", "aborted", "time_out")

    ending, server = tried(arrange, move_s=60.0, doubt_s=60.0, told_s=0.05)
    assert (ending.outcome, ending.reason) == (Outcome.ABORTED, "time_out")
    found = server.desk.row("s")
    assert found is not None
    assert (found.owner, found.epoch, found.attempt) == ("a", 1, None)


def test_when_an_end_dies_the_attempt_is_closed_in_its_place_and_the_other_end_is_told_to_ask() -> None:
    def arrange(ends: Ends) -> None:
        def die(message: MoveMessage) -> None:
            ends.server.dies("b")
            ends.attempt.take(Died(worker="b"))

        ends.says[Start] = die
        ends.says[Cancel] = lambda message: ends.ended("source", "aborted", "cancelled")

    ending, server = tried(arrange, move_s=2.0)
    assert (ending.outcome, ending.reason) == (Outcome.ABORTED, "worker_gone")  # nobody has cancelled it
    assert ending.detail == "b ended in the middle of the move"
    assert [type(message) for message in server.wires["a"].sent][-2:] == [Cancel, Inquire]
    found = server.desk.row("s")
    assert found is not None
    assert (found.owner, found.epoch, found.attempt) == ("a", 1, None)


@pytest.mark.parametrize("owner_dies", [True, False])
def test_the_commit_of_a_destination_that_has_died_is_waited_for_while_it_waits_for_the_ledger(
    *, owner_dies: bool
) -> None:
    """It is granted where its source has died by then: until it is answered nobody knows how the move has ended."""
    question = CommitAttempt(session="s", attempt=ATTEMPT, epoch=1, boundary=5, worker="b", incarnation=1)

    def arrange(ends: Ends) -> None:
        async def asked_late() -> None:
            await asyncio.sleep(1.0)
            if owner_dies:
                ends.server.dies("a")
            await ends.server.desk.ask(question)

        def die(message: MoveMessage) -> None:
            ends.server.desk.carries(question, asyncio.ensure_future(asked_late()))
            ends.ended("source", "aborted", "closed", "freeze", "doubt")
            ends.server.dies("b")
            ends.attempt.take(Died(worker="b"))

        ends.says[Start] = die

    ending, server = tried(arrange, doubt_s=3.0)
    found = server.desk.row("s")
    assert found is not None
    assert (found.granted_by == ATTEMPT) == owner_dies
    assert ending.outcome is (Outcome.COMMITTED if owner_dies else Outcome.ABORTED)


def test_a_move_that_admission_refuses_is_refused_with_its_words() -> None:
    async def run() -> Ending:
        server = await server_of("a", "b")
        plan = Plan(
            session="s",
            epoch=1,
            attempt=ATTEMPT,
            nonce=bytes(32),
            transport="shm",
            strategy=Strategy.BOUNDARY_COPY,
            source=server.workers.get("a"),
            destination=server.workers.get("b"),
        )

        def refuse(plan: Plan, prepared: Prepared) -> None:
            raise MoveRefused("too_slow", "it takes too long")

        attempt = Attempt(
            plan,
            config=FleetConfig(),
            desk=server.desk,
            send=server.workers.send,
            admit=refuse,
            on_phase=lambda plan, phase: None,
        )
        Ends(server, attempt)
        return await asyncio.wait_for(attempt.run(), 5)

    ending = virtual.run(run())
    assert (ending.outcome, ending.reason, ending.detail) == (Outcome.REFUSED, "too_slow", "it takes too long")


def test_a_move_whose_ends_words_are_lost_with_its_link_is_reported_by_the_row_and_soon() -> None:
    def arrange(ends: Ends) -> None:
        async def commit() -> None:
            question = CommitAttempt(session="s", attempt=ATTEMPT, epoch=1, boundary=5, worker="b", incarnation=1)
            await ends.server.desk.ask(question)
            ends.attempt.take(LinkedAgain(worker="b"))
            ends.ended("source", "committed")

        ends.says[Start] = lambda message: ends.tasks.append(asyncio.ensure_future(commit()))

    ending, _ = tried(arrange, move_s=60.0, doubt_s=60.0, told_s=0.05)
    assert ending.outcome is Outcome.COMMITTED


def test_an_end_that_is_suspected_is_named_when_its_move_is_closed() -> None:
    def arrange(ends: Ends) -> None:
        def hang(message: MoveMessage) -> None:
            ends.server.workers.get("b").suspected = True
            ends.ended("source", "aborted", "time_out")

        ends.says[Start] = hang

    ending, _ = tried(arrange, told_s=0.05)
    assert (ending.outcome, ending.reason) == (Outcome.ABORTED, "silent")
    assert ending.detail == "b does not answer, and the move was closed"


def given_up_after_its_proof(then: Callable[[Ends], Awaitable[None]]) -> Ending:
    """Conduct a try that its source gives up in doubt, while its destination, with a verified state, is silent."""

    def arrange(ends: Ends) -> None:
        async def give_up() -> None:
            ends.ended("source", "aborted", "closed", "doubt")
            await asyncio.sleep(0.1)
            await then(ends)

        ends.says[Start] = lambda message: ends.tasks.append(asyncio.ensure_future(give_up()))

    return tried(arrange, move_s=0.5, doubt_s=0.5, told_s=0.02, recover_every_s=0.02)[0]


def test_a_closed_try_whose_owner_dies_before_its_next_block_is_committed_by_its_silent_destination() -> None:
    async def die(ends: Ends) -> None:
        ends.server.dies("a")
        ends.attempt.take(Died(worker="a"))
        ends.commit()

    assert given_up_after_its_proof(die).outcome is Outcome.COMMITTED


def test_a_closed_try_is_aborted_once_its_owner_has_shown_a_block_whatever_its_destination_holds() -> None:
    async def play(ends: Ends) -> None:
        ends.server.gateway.block = 6

    ending = given_up_after_its_proof(play)
    assert (ending.outcome, ending.reason) == (Outcome.ABORTED, "closed")


def test_a_closed_try_is_in_doubt_while_its_owner_shows_nothing_and_its_destination_says_nothing() -> None:
    async def nothing(ends: Ends) -> None:
        """Nobody does anything."""

    assert given_up_after_its_proof(nothing).outcome is Outcome.IN_DOUBT


@pytest.mark.parametrize("holds", [True, False])
def test_a_move_that_both_ends_have_given_up_over_links_that_are_no_more_is_over_soon(*, holds: bool) -> None:
    """It had a minute and more: what its destination holds since, as it says, is no shadow."""

    def arrange(ends: Ends) -> None:
        async def joins_again() -> None:
            ends.attempt.take(LinkedAgain(worker="b"))
            ends.server.holds("b", *([copy_of("s", "shadow")] if holds else []))
            ends.server.workers.has_reported("b", 1)

        ends.says[Begin] = lambda message: ends.tasks.append(asyncio.ensure_future(joins_again()))

    waits = {"patience_s": 3.0, "begin_every_s": 0.1, "told_s": 0.1, "recover_every_s": 0.02}
    ending, server = tried(arrange, strategy=Strategy.REPLAY, **waits)
    row = server.desk.row("s")
    assert row is not None
    assert row.attempt is None
    assert ending.outcome is (Outcome.IN_DOUBT if holds else Outcome.ABORTED)  # a shadow may yet be granted
    asked = [message for message in server.wires["b"].sent if isinstance(message, Begin)]
    assert (len(asked) > 10) is holds
