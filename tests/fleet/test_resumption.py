"""Sessions of an earlier server in the controller: whose report is waited for, and what is said by then."""

import asyncio
from dataclasses import dataclass, field
from typing import Any

from tests.fleet.fakes import Server, SilentGateway, copy_of, server_of
from tests.move import virtual
from worldmove.fleet.resumption import Resumption
from worldmove.move.ledger_messages import CommitAttempt, OpenAttempt
from worldmove.worker.messages import Copy, TakeOver

Asked = tuple[str, Any]


@dataclass
class Permits(SilentGateway):
    """A gateway that writes down what it may do."""

    permits: list[Asked] = field(default_factory=list)
    following: int | None = 9
    reaches: int | None = 9

    def may_show(self, session: str, *, owner_lives: bool) -> None:
        if ("show", owner_lives) not in self.permits:
            self.permits.append(("show", owner_lives))

    def may_close(self, session: str) -> None:
        if ("close", None) not in self.permits:
            self.permits.append(("close", None))

    def next_block(self, session: str) -> int | None:
        return self.following


@dataclass
class Resumed:
    server: Server
    gateway: Permits
    task: "asyncio.Task[None]"
    said: list[str]

    async def waits_for(self) -> str:
        """Return what it is said to wait for by now."""
        await self.permits()
        return self.said[-1]

    def reports(self, worker: str, *copies: Copy) -> None:
        """A worker has said all that it holds on its new link."""
        if copies:
            self.server.holds(worker, *copies)
        self.server.workers.has_reported(worker, self.server.workers.get(worker).incarnation)

    async def permits(self) -> list[Asked]:
        for _ in range(20):
            await asyncio.sleep(0)
        return list(self.gateway.permits)


async def resumed(*holders: str) -> Resumed:
    """Begin to resume session ``s``, that ``a`` owns and that these are noted to hold."""
    server, gateway = await server_of("a", "b", "c"), Permits()
    server.desk.attach(gateway)
    resumption = Resumption(workers=server.workers, desk=server.desk, gateway=lambda: gateway)
    said = list[str]()
    task = asyncio.create_task(resumption.resume("s", [(holder, 1) for holder in holders], said.append))
    return Resumed(server=server, gateway=gateway, task=task, said=said)


def test_showing_waits_for_the_owner_and_closing_for_every_noted_holder() -> None:
    async def run() -> None:
        session = await resumed("a", "b")
        assert await session.permits() == []
        session.reports("c")
        session.reports("a", copy_of("s", "live"))
        assert await session.permits() == [("show", True)]
        assert not session.task.done()
        session.reports("b", copy_of("s", "retired"))
        assert await session.permits() == [("show", True), ("close", None)]
        await session.task
        assert session.server.wires["a"].of(TakeOver) == []

    virtual.run(run())


def test_who_asks_is_told_which_report_is_waited_for_and_that_it_is_the_players_once_no_other_is() -> None:
    async def run() -> None:
        session = await resumed("a", "b", "c")
        session.gateway.following = None
        assert await session.waits_for() == "a, which plays it, has not reported yet; try again soon"
        session.reports("a", copy_of("s", "live"))
        assert (await session.waits_for()).startswith("what b, c may hold of it has not been reported yet")
        session.reports("b")
        assert (await session.waits_for()).startswith("what c may hold of it has not been reported yet")
        session.reports("c")
        player = "no player has said yet what it has seen: open /play/s"
        assert await session.waits_for() == f"{player}, or try again in some seconds"
        session.server.dies("a")
        assert await session.waits_for() == f"its worker has died, and {player}"
        session.gateway.following = 9
        session.reports("b")
        await session.task

    virtual.run(run())


def test_a_death_is_as_good_as_a_report() -> None:
    async def run() -> None:
        session = await resumed("a", "b")
        session.server.dies("b")
        assert await session.permits() == []
        session.server.dies("a")
        assert await session.permits() == [("show", False), ("close", None)]

    virtual.run(run())


def test_an_owner_that_was_granted_the_session_meanwhile_is_the_one_that_is_waited_for() -> None:
    async def run() -> None:
        session = await resumed("a", "b")
        desk = session.server.desk
        asked = OpenAttempt(session="s", attempt="1-x", epoch=1, destination="b", destination_incarnation=1)
        await desk.ask(asked)
        await desk.ask(CommitAttempt(session="s", attempt="1-x", epoch=1, boundary=9, worker="b", incarnation=1))
        session.reports("a", copy_of("s", "frozen"))
        assert await session.permits() == []
        session.reports("b", copy_of("s", "live", epoch=2))
        assert await session.permits() == [("show", True), ("close", None)]

    virtual.run(run())


def test_an_owner_that_dies_before_the_client_has_come_back_is_said_to_be_dead() -> None:
    async def run() -> None:
        session = await resumed("a")
        session.gateway.following = None
        session.reports("a", copy_of("s", "live"))
        assert await session.permits() == [("show", True), ("close", None)]
        session.server.dies("a")
        assert ("show", False) in await session.permits()
        assert not session.task.done()
        session.task.cancel()

    virtual.run(run())


def test_an_owner_that_has_not_heard_of_its_grant_is_told_with_the_next_block() -> None:
    async def run() -> list[TakeOver]:
        session = await resumed("a")
        session.reports("a", copy_of("s", "retired", epoch=0))
        await session.task
        found: list[TakeOver] = session.server.wires["a"].of(TakeOver)
        return found

    assert virtual.run(run()) == [TakeOver(session="s", epoch=1, block=9)]


def test_an_owner_that_has_yet_to_replay_is_no_measure_of_what_was_shown() -> None:
    async def run() -> list[Asked]:
        session = await resumed("a", "b")
        session.reports("a", copy_of("s", "retired", epoch=0))
        assert await session.permits() == [("show", False)]
        session.reports("b")
        return await session.permits()

    assert virtual.run(run()) == [("show", False), ("close", None)]


def test_an_owner_that_lacks_a_list_of_what_it_is_to_replay_is_taken_for_gone() -> None:
    async def run() -> None:
        session = await resumed("a")
        session.gateway.reaches = 8
        session.reports("a", copy_of("s", "retired", epoch=0))
        await session.task
        row = session.server.desk.row("s")
        assert row is not None
        assert session.server.desk.owner_is_gone(row)
        assert session.server.wires["a"].of(TakeOver) == []

    virtual.run(run())


def test_an_owner_that_holds_nothing_is_told_too_and_will_say_so() -> None:
    async def run() -> int:
        session = await resumed("a")
        session.reports("a")
        await session.task
        return len(session.server.wires["a"].of(TakeOver))

    assert virtual.run(run()) == 1


def test_a_session_that_is_forgotten_is_waited_for_no_more() -> None:
    async def run() -> None:
        session = await resumed("a")
        await session.server.desk.forget("s")
        async with asyncio.timeout(2):
            await session.task
        assert session.gateway.permits == []

    virtual.run(run())
