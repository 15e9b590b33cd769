"""What became of a try, by its session's rows; what the two ends say explains it and does not decide it."""

import asyncio
import dataclasses
from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.fleet.fakes import Server, copy_of, server_of
from tests.move import virtual
from worldmove.fleet import testimony
from worldmove.fleet.reports import Outcome
from worldmove.fleet.tries import Ending, Plan, Raised, by_row
from worldmove.move.ledger_messages import CommitAttempt, OpenAttempt, Operation, Reclaim
from worldmove.move.ledger_row import Row
from worldmove.move.messages import Ended
from worldmove.move.strategy import Strategy

ATTEMPT = "00000001-x"
ROW = Row(session="s", owner="a", incarnation=1, epoch=1, last_attempt=ATTEMPT)
GRANTED = replace(ROW, owner="b", epoch=2, granted_by=ATTEMPT)
RECLAIMED = replace(ROW, owner="a", epoch=3, granted_by="reclaim")
FAILED_OVER = replace(ROW, owner="a", epoch=3, granted_by="failover")
BACK_AGAIN = replace(ROW, owner="b", epoch=4, granted_by="reclaim")


def plan_of(server: Server) -> Plan:
    return Plan(
        session="s",
        epoch=1,
        attempt=ATTEMPT,
        nonce=bytes(32),
        transport="shm",
        strategy=Strategy.BOUNDARY_COPY,
        source=server.workers.get("a"),
        destination=server.workers.get("b"),
    )


def word(side: str, outcome: str, reason: str = "done", *phases: str) -> Ended:
    return Ended(
        to="controller",
        sender="a" if side == "source" else "b",
        incarnation=1,
        session="s",
        attempt=ATTEMPT,
        epoch=1,
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


@pytest.mark.parametrize(
    ("rows", "outcome", "reason"),
    [
        ((GRANTED,), Outcome.COMMITTED, "done"),
        ((GRANTED, FAILED_OVER), Outcome.COMMITTED, "done"),
        ((GRANTED, FAILED_OVER, BACK_AGAIN), Outcome.COMMITTED, "done"),
        ((GRANTED, RECLAIMED), Outcome.ABORTED, "reclaimed"),
        ((GRANTED, RECLAIMED, BACK_AGAIN), Outcome.ABORTED, "reclaimed"),
        ((replace(GRANTED, granted_by="failover"),), Outcome.ABORTED, "silent"),
    ],
)
def test_a_try_ended_as_the_rows_say_in_turn_whatever_an_end_says_of_it(
    rows: tuple[Row, ...], outcome: Outcome, reason: str
) -> None:
    async def run() -> Ending:
        server = await server_of("a", "b")
        said = testimony.Testimony(plan_of(server), server.desk)
        said.take(word("destination", "committed"))
        for row in rows:
            said.row_changed(row)
        server.desk._rows["s"] = rows[-1]
        return said.ending()

    ending = virtual.run(run())
    assert (ending.outcome, ending.reason) == (outcome, reason)


def test_a_destination_that_has_the_session_back_after_its_source_had_it_was_not_given_it_by_the_move() -> None:
    async def run() -> tuple[Ending, Row | None]:
        server = await server_of("a", "b")
        said = testimony.Testimony(plan_of(server), server.desk)

        async def ask(operation: Operation) -> None:
            await server.desk.ask(operation)
            said.row_changed(server.rows[-1])

        await ask(OpenAttempt(session="s", attempt=ATTEMPT, epoch=1, destination="b", destination_incarnation=1))
        await ask(CommitAttempt(session="s", attempt=ATTEMPT, epoch=1, boundary=5, worker="b", incarnation=1))
        a, b = server.workers.get("a"), server.workers.get("b")
        b.suspected = True
        await ask(Reclaim(session="s", epoch=2, worker="a", incarnation=1, acknowledged=5, computed=5))
        b.suspected, a.suspected = False, True
        await ask(Reclaim(session="s", epoch=3, worker="b", incarnation=1, acknowledged=5, computed=5))
        said.take(word("destination", "committed"))
        return said.ending(), server.desk.row("s")

    ending, row = virtual.run(run())
    assert row is not None
    assert (row.owner, row.epoch) == ("b", 4)
    assert (ending.outcome, ending.reason) == (Outcome.ABORTED, "reclaimed")
    assert ending.detail.endswith("another copy had the session back, and b has it since")


@pytest.mark.parametrize(("row", "owner"), [(RECLAIMED, "a"), (BACK_AGAIN, "b")])
def test_a_grant_that_is_taken_back_after_the_try_is_not_reported_as_one(row: Row, owner: str) -> None:
    async def run() -> Ending:
        committed = Ending(outcome=Outcome.COMMITTED, reason="done", detail="")
        return by_row(plan_of(await server_of("a", "b")), committed, row, granted=False, missing="silent")

    ending = virtual.run(run())
    assert (ending.outcome, ending.reason) == (Outcome.ABORTED, "reclaimed")
    assert owner in ending.detail.rpartition("and")[2]


@pytest.mark.parametrize(
    ("raised", "said"),
    [
        (None, "b ended or did not answer before it had shown a block"),
        (Raised(worker="b", incarnation=1, why="it failed: E()"), "b had shown no block, for it failed: E()"),
        (Raised(worker="b", incarnation=2, why="-"), "b ended or did not answer before it had shown a block"),
        (Raised(worker="a", incarnation=1, why="-"), "b ended or did not answer before it had shown a block"),
    ],
)
def test_a_grant_that_was_taken_back_for_the_new_owners_engine_raised_says_what_it_raised(
    raised: Raised | None, said: str
) -> None:
    async def run() -> Ending:
        committed = Ending(outcome=Outcome.COMMITTED, reason="done", detail="")
        plan = plan_of(await server_of("a", "b"))
        return by_row(plan, committed, RECLAIMED, granted=False, missing="", raised=raised)

    assert virtual.run(run()).detail == f"{said}, and a went on"


PROVED = word("source", "aborted", "closed", "freeze", "doubt")
UNPROVED = word("source", "aborted", "time_out", "freeze")


def silent(server: Server, said: testimony.Testimony) -> None:
    """The destination says nothing."""


def shows_a_block(server: Server, said: testimony.Testimony) -> None:
    server.gateway.block = 6


def gives_up(server: Server, said: testimony.Testimony) -> None:
    said.take(word("destination", "aborted", "closed"))


def dies(server: Server, said: testimony.Testimony) -> None:
    server.dies("b")


def comes_back_without(server: Server, said: testimony.Testimony) -> None:
    server.workers.has_reported("b", 1)
    said.cut_off("b")


def comes_back_with_a_shadow(server: Server, said: testimony.Testimony) -> None:
    server.holds("b", copy_of("s", "shadow"))
    comes_back_without(server, said)


def comes_back_and_has_not_said_all(server: Server, said: testimony.Testimony) -> None:
    said.cut_off("b")


def having_asked(then: Callable[[Server, testimony.Testimony], None]) -> Callable[..., None]:
    """The same, of one whose commit is on its way through the desk."""

    def asked(server: Server, said: testimony.Testimony) -> None:
        commit = CommitAttempt(session="s", attempt=said._plan.attempt, epoch=1, boundary=5, worker="b", incarnation=1)
        server.desk.carries(commit, asyncio.ensure_future(asyncio.sleep(1.0)))
        then(server, said)

    return asked


@pytest.mark.parametrize(
    ("source", "then", "outcome"),
    [
        (PROVED, having_asked(gives_up), Outcome.IN_DOUBT),
        (PROVED, having_asked(dies), Outcome.IN_DOUBT),
        (PROVED, having_asked(comes_back_without), Outcome.IN_DOUBT),
        (None, having_asked(gives_up), Outcome.IN_DOUBT),
        (UNPROVED, silent, Outcome.ABORTED),
        (PROVED, silent, Outcome.IN_DOUBT),
        (PROVED, shows_a_block, Outcome.ABORTED),
        (PROVED, gives_up, Outcome.ABORTED),
        (PROVED, dies, Outcome.ABORTED),
        (PROVED, comes_back_without, Outcome.ABORTED),
        (PROVED, comes_back_with_a_shadow, Outcome.IN_DOUBT),
        (PROVED, comes_back_and_has_not_said_all, Outcome.IN_DOUBT),
        (None, silent, Outcome.IN_DOUBT),
        (None, shows_a_block, Outcome.IN_DOUBT),  # its freeze may be yet to come
        (None, gives_up, Outcome.ABORTED),
    ],
)
def test_a_closed_try_is_aborted_only_where_its_commit_can_never_be_granted(
    source: Ended | None, then: Callable[[Server, testimony.Testimony], None], outcome: Outcome
) -> None:
    async def run() -> tuple[Outcome, bool]:
        server = await server_of("a", "b")
        said = testimony.Testimony(plan_of(server), server.desk)
        if source is not None:
            said.take(source)
        then(server, said)
        return said.ending().outcome, said.is_needless

    assert virtual.run(run()) == (outcome, outcome is Outcome.ABORTED)


@pytest.mark.parametrize("granted", [False, True])
@pytest.mark.parametrize(
    ("names", "needless"), [(("a", "b"), (True, True)), (("a",), (False, True)), ((), (False, False))]
)
def test_nobody_waits_for_the_words_of_ends_that_do_not_answer(
    names: tuple[str, ...], needless: tuple[bool, bool], *, granted: bool
) -> None:
    """Closed, and not granted: while one end answers, it may still say how it ended."""

    async def run() -> bool:
        server = await server_of("a", "b")
        said = testimony.Testimony(plan_of(server), server.desk)
        found = server.desk.row("s")
        assert found is not None
        if granted:
            said.row_changed(dataclasses.replace(found, owner="b", epoch=2, granted_by=plan_of(server).attempt))
        for name in names:
            server.workers.get(name).suspected = True
        return said.is_needless

    assert virtual.run(run()) is needless[granted]


@pytest.mark.parametrize(
    ("of_source", "reason"),
    [("engine_wrote", "engine_wrote"), ("mismatch", "mismatch"), ("cancelled", "mismatch")],
)
def test_a_source_that_has_found_what_its_engine_wrote_is_believed_before_who_has_other_bytes(
    of_source: str, reason: str
) -> None:
    async def run() -> Ending:
        server = await server_of("a", "b")
        said = testimony.Testimony(plan_of(server), server.desk)
        said.take(word("destination", "aborted", "mismatch"))
        said.take(word("source", "aborted", of_source, "doubt"))
        return said.ending()

    ending = virtual.run(run())
    assert (ending.outcome, ending.reason, ending.detail) == (Outcome.ABORTED, reason, reason)
