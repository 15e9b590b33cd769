"""The ledger's desk: rows as they are, facts as the server knows them."""

import asyncio

from tests.fleet.fakes import server_of
from worldmove.errors import LedgerError
from worldmove.fleet.desk import LedgerDesk
from worldmove.fleet.ledger_memory import MemoryLedger
from worldmove.fleet.ports import Owner
from worldmove.move.ledger_messages import (
    Answer,
    CloseAttempt,
    Closed,
    CommitAttempt,
    Done,
    MarkShown,
    OpenAttempt,
    Operation,
    Yours,
)
from worldmove.move.ledger_row import Facts, Row
from worldmove.move.ledger_rules import Ruling

OPEN = OpenAttempt(session="s", attempt="00000001-x", epoch=1, destination="b", destination_incarnation=1)
CLOSE = CloseAttempt(session="s", attempt="00000001-x", epoch=1, worker="a", incarnation=1, boundary=5)
COMMIT = CommitAttempt(session="s", attempt="00000001-x", epoch=1, boundary=5, worker="b", incarnation=1)


def test_a_grant_names_the_new_owner_to_whoever_reads_the_row_next() -> None:
    async def run() -> tuple[Owner | None, Answer | None, Owner | None, list[int]]:
        server = await server_of("a", "b")
        before = server.desk.owner("s")
        await server.desk.ask(OPEN)
        answer = await server.desk.ask(COMMIT)
        return before, answer, server.desk.owner("s"), [row.epoch for row in server.rows]

    before, answer, after, epochs = asyncio.run(run())
    assert before == Owner(worker="a", incarnation=1, epoch=1)
    assert answer == Yours(session="s", epoch=2)
    assert after == Owner(worker="b", incarnation=1, epoch=2)
    assert epochs == [1, 1, 2]


def test_what_changes_nothing_is_told_to_nobody() -> None:
    async def run() -> tuple[list[Answer | None], int]:
        server = await server_of("a", "b")
        answers = [await server.desk.ask(MarkShown(session="s", epoch=1)) for _ in range(3)]
        return answers, len(server.rows)

    answers, told = asyncio.run(run())
    assert answers == [Done(session="s", epoch=1)] * 3
    assert told == 2  # created, shown


def test_a_late_commit_is_refused_while_the_owner_lives_and_granted_once_it_is_dead() -> None:
    async def run() -> tuple[Answer | None, Answer | None]:
        server = await server_of("a", "b")
        await server.desk.ask(OPEN)
        await server.desk.ask(CLOSE)
        alive = await server.desk.ask(COMMIT)
        server.dies("a")
        return alive, await server.desk.ask(COMMIT)

    alive, dead = asyncio.run(run())
    assert alive == Closed(session="s", attempt="00000001-x")
    assert dead == Yours(session="s", epoch=2)


def test_a_ledger_that_fails_is_silence_and_the_row_stays_as_it_was_known() -> None:
    class Failing(MemoryLedger):
        async def ask(self, operation: Operation, facts: Facts) -> Ruling:
            raise LedgerError("the disk is full")

    async def run() -> tuple[Answer | None, Row | None, list[str]]:
        server = await server_of("a", "b")
        failures: list[str] = []
        desk = LedgerDesk(
            ledger=Failing(),
            workers=server.workers,
            on_row=lambda old, new: None,
            on_error=lambda session, error: failures.append(str(error)),
        )
        await desk.create(Row(session="s", owner="a", incarnation=1, epoch=1))
        return await desk.ask(OPEN), desk.row("s"), failures

    answer, row, failures = asyncio.run(run())
    assert answer is None
    assert row == Row(session="s", owner="a", incarnation=1, epoch=1)
    assert failures == ["the disk is full"]


def test_a_forgotten_session_has_no_owner() -> None:
    async def run() -> tuple[Owner | None, Answer | None]:
        server = await server_of("a")
        await server.desk.forget("s")
        return server.desk.owner("s"), await server.desk.ask(OPEN)

    assert asyncio.run(run()) == (None, None)
