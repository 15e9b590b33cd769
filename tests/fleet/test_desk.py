"""The ledger's desk: rows as they are, facts as the server knows them."""

import pytest

from tests.fleet.fakes import server_of
from tests.move import virtual
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

    before, answer, after, epochs = virtual.run(run())
    assert before == Owner(worker="a", incarnation=1, epoch=1)
    assert answer == Yours(session="s", epoch=2)
    assert after == Owner(worker="b", incarnation=1, epoch=2)
    assert epochs == [1, 1, 2]


def test_who_has_asked_hears_the_answer_before_anybody_hears_of_the_row() -> None:
    """A destination stands still until it is allowed to go on."""

    async def run() -> list[int]:
        server = await server_of("a", "b")
        await server.desk.ask(OPEN)
        heard: list[int] = []
        await server.desk.ask(COMMIT, answered=lambda answer: heard.append(len(server.rows)))
        return [*heard, len(server.rows)]

    assert virtual.run(run()) == [2, 3]


def test_a_row_is_told_of_though_its_answer_cannot_be_sent() -> None:
    def raises(answer: Answer) -> None:
        raise ValueError("no link")

    async def run() -> list[int]:
        server = await server_of("a", "b")
        await server.desk.ask(OPEN)
        with pytest.raises(ValueError, match="no link"):
            await server.desk.ask(COMMIT, answered=raises)
        return [row.epoch for row in server.rows]

    assert virtual.run(run()) == [1, 1, 2]


def test_what_changes_nothing_is_told_to_nobody() -> None:
    async def run() -> tuple[list[Answer | None], int]:
        server = await server_of("a", "b")
        answers = [await server.desk.ask(MarkShown(session="s", epoch=1)) for _ in range(3)]
        return answers, len(server.rows)

    answers, told = virtual.run(run())
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

    alive, dead = virtual.run(run())
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

    answer, row, failures = virtual.run(run())
    assert answer is None
    assert row == Row(session="s", owner="a", incarnation=1, epoch=1)
    assert failures == ["the disk is full"]


def test_a_forgotten_session_has_no_owner() -> None:
    async def run() -> tuple[Owner | None, Answer | None]:
        server = await server_of("a")
        await server.desk.forget("s")
        return server.desk.owner("s"), await server.desk.ask(OPEN)

    assert virtual.run(run()) == (None, None)


class Breaking(MemoryLedger):
    """A ledger that fails while it is told to, after it has done what was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.broken = False
        self.asked = 0

    async def ask(self, operation: Operation, facts: Facts) -> Ruling:
        self.asked += 1
        ruling = await super().ask(operation, facts)
        self.probe()
        return ruling

    def probe(self) -> None:
        if self.broken:
            raise LedgerError("the disk is full")


async def breaking_desk() -> tuple[Breaking, LedgerDesk, list[str]]:
    """Return a desk over a ledger that can be broken, and what is said of it."""
    server, ledger, said = await server_of("a", "b"), Breaking(), list[str]()
    desk = LedgerDesk(
        ledger=ledger,
        workers=server.workers,
        on_row=lambda old, new: said.append(f"epoch {new.epoch}"),
        on_error=lambda session, error: said.append(str(error)),
        probe=ledger.probe,
    )
    await desk.create(Row(session="s", owner="a", incarnation=1, epoch=1))
    await desk.ask(OPEN)
    return ledger, desk, said


def test_a_ledger_that_has_failed_is_left_alone_until_it_works_and_said_once() -> None:
    async def run() -> None:
        ledger, desk, said = await breaking_desk()
        ledger.broken = True
        assert [await desk.ask(COMMIT) for _ in range(3)] == [None] * 3
        assert (ledger.asked, said[2:]) == (2, ["the disk is full"])
        assert str(await desk.check()) == "the disk is full"
        with pytest.raises(LedgerError):
            await desk.create(Row(session="t", owner="a", incarnation=1, epoch=1))
        ledger.broken = False
        await desk.until_it_works(0.001)
        assert desk.failure is None
        assert await desk.ask(MarkShown(session="s", epoch=2)) == Done(session="s", epoch=2)

    virtual.run(run())


def test_what_a_failed_question_has_done_all_the_same_is_known_once_the_ledger_works() -> None:
    async def run() -> None:
        ledger, desk, said = await breaking_desk()
        ledger.broken = True
        await desk.ask(COMMIT)
        assert desk.owner("s") == Owner(worker="a", incarnation=1, epoch=1)
        ledger.broken = False
        await desk.check()
        assert desk.owner("s") == Owner(worker="b", incarnation=1, epoch=2)
        assert said[-1] == "epoch 2"

    virtual.run(run())
