"""A session whose owner is gone: who may have it, in which order, and when it is lost."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

import pytest

from tests.fleet.fakes import Server, copy_of, server_of
from tests.move import virtual
from worldmove.fleet.config import FleetConfig
from worldmove.fleet.recovery import Recovery
from worldmove.move.ledger_messages import CommitAttempt, OpenAttempt, Reclaim, Yours
from worldmove.move.ledger_row import Row
from worldmove.move.messages import Inquire
from worldmove.worker.messages import Close, Copy, LetGo, Pass, Poll, Revive, TakeOver, ToWorker

Before = Callable[[Server], Awaitable[None]]
React = Callable[[Server, object], None]


def recovered(*held: Copy, react: React | None = None, before: Before | None = None) -> Server:
    """Let ``a``, the owner, die, while ``b`` holds some copies of the session; return what became of it."""

    async def run() -> Server:
        server = await server_of("a", "b")
        if before is not None:
            await before(server)
        server.holds("b", *held)

        def answer(message: object) -> None:
            if react is not None:
                react(server, message)
            if isinstance(message, Poll):
                server.holds("b", *server.workers.get("b").copies, poll=message.poll)

        server.wires["b"].react = answer
        server.dies("a")
        config = FleetConfig(recover_every_s=0.01, poll_s=0.05)
        recovery = Recovery(config=config, workers=server.workers, desk=server.desk, gateway=lambda: server.gateway)
        await asyncio.wait_for(recovery.recover("s"), 5)
        return server

    return virtual.run(run())


def row(server: Server) -> Row:
    found = server.desk.row("s")
    assert found is not None
    return found


def test_without_any_copy_it_is_lost_and_the_gateway_hears_why() -> None:
    server = recovered()
    assert row(server).lost
    assert server.gateway.told[-1] == ("lost", "a ended and no other worker holds a copy")


def test_a_throw_away_copy_is_no_copy() -> None:
    assert row(recovered(copy_of("s~r1", "throwaway"), copy_of("other", "live"))).lost


def test_a_retired_copy_takes_over_once_the_dead_owners_epoch_is_closed_at_the_gateway() -> None:
    server = recovered(copy_of("s", "retired"), react=_plays_when_told(1))
    assert (row(server).owner, row(server).epoch, row(server).lost) == ("b", 2, False)
    assert server.gateway.told[0] == ("close_epoch", 1)
    assert server.wires["b"].of(TakeOver) == [TakeOver(session="s", epoch=2, block=5)]


def test_who_takes_over_is_sent_every_list_from_its_own_block_on_before_it_is_told() -> None:
    told = list[object]()

    plays = _plays_when_told(1)

    def notes_and_plays(server: Server, message: object) -> None:
        if isinstance(message, TakeOver) and not told:
            told.extend(server.gateway.told)
        plays(server, message)

    recovered(copy_of("s", "retired", block=3), react=notes_and_plays)
    assert ("linked_again", ("b", 3)) in told


def test_a_retired_copy_is_told_again_until_it_plays() -> None:
    server = recovered(copy_of("s", "retired"), react=_plays_when_told(3))
    assert server.wires["b"].of(TakeOver) == [TakeOver(session="s", epoch=2, block=5)] * 3


def _plays_when_told(num_times: int) -> React:
    """A worker that does not hear before the word has come so often."""

    def react(server: Server, message: object) -> None:
        if isinstance(message, TakeOver) and len(server.wires["b"].of(TakeOver)) >= num_times:
            server.holds("b", copy_of("s", "live", epoch=message.epoch))

    return react


async def _lists_reach(server: Server, block: int | None) -> None:
    server.gateway.reaches = block


def test_it_is_lost_where_nobody_has_the_lists_that_its_only_retired_copy_lacks_and_that_copy_is_let_go() -> None:
    server = recovered(copy_of("s", "retired", block=3), before=lambda server: _lists_reach(server, 3))
    assert row(server).lost
    why = "a ended and no other worker holds a copy that could go on: their key lists are lost"
    assert server.gateway.told[-1] == ("lost", why)
    assert server.wires["b"].of(Close) == [Close(session="s")]
    assert server.wires["b"].of(TakeOver) == []


@pytest.mark.parametrize(("reaches", "phase"), [(None, "retired"), (None, "frozen"), (3, "frozen")])
def test_it_is_not_lost_while_lists_may_still_be_reported_or_a_copy_is_there_that_needs_none(
    reaches: int | None, phase: str
) -> None:
    async def run() -> tuple[Row, list[object]]:
        server = await server_of("a", "b")
        server.gateway.reaches = reaches
        server.holds("b", copy_of("s", phase, block=3))

        def answer(message: object) -> None:
            if isinstance(message, Poll):
                server.holds("b", copy_of("s", phase, block=3), poll=message.poll)

        server.wires["b"].react = answer
        server.dies("a")
        recovery = Recovery(
            config=FleetConfig(recover_every_s=0.01, poll_s=0.02),
            workers=server.workers,
            desk=server.desk,
            gateway=lambda: server.gateway,
        )
        waiting = asyncio.create_task(recovery.recover("s"))
        await asyncio.sleep(0.2)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        return row(server), server.wires["b"].of(TakeOver)

    found, taken = virtual.run(run())
    assert (found.owner, found.lost, taken) == ("a", False, [])


def test_a_frozen_copy_is_told_to_ask_and_gets_the_session_by_its_own_question() -> None:
    asked: list[asyncio.Task[object]] = []

    def reclaim(server: Server, message: object) -> None:
        if isinstance(message, Inquire) and not asked:
            question = Reclaim(session="s", epoch=1, acknowledged=5, computed=5, worker="b", incarnation=1)
            asked.append(asyncio.ensure_future(server.desk.ask(question)))

    server = recovered(copy_of("s", "frozen"), react=reclaim)
    assert (row(server).owner, row(server).granted_by) == ("b", "reclaim")
    assert server.wires["b"].of(TakeOver) == []


def test_a_destination_in_doubt_is_granted_its_commit_though_the_attempt_was_closed() -> None:
    asked: list[asyncio.Task[object]] = []

    async def open_attempt(server: Server) -> None:
        await server.desk.ask(
            OpenAttempt(session="s", attempt="00000001-x", epoch=1, destination="b", destination_incarnation=1)
        )

    def commit(server: Server, message: object) -> None:
        if isinstance(message, Inquire) and not asked:
            question = CommitAttempt(session="s", attempt="00000001-x", epoch=1, boundary=5, worker="b", incarnation=1)
            asked.append(asyncio.ensure_future(server.desk.ask(question)))

    server = recovered(copy_of("s", "shadow"), react=commit, before=open_attempt)
    assert row(server).attempt is None
    assert asked[0].result() == Yours(session="s", epoch=2)


def test_a_worker_that_does_not_answer_the_poll_may_hold_the_last_copy_so_nothing_is_lost() -> None:
    async def run() -> bool:
        server = await server_of("a", "b")
        server.dies("a")
        recovery = Recovery(
            config=FleetConfig(recover_every_s=0.01, poll_s=0.02),
            workers=server.workers,
            desk=server.desk,
            gateway=lambda: server.gateway,
        )
        waiting = asyncio.create_task(recovery.recover("s"))
        await asyncio.sleep(0.2)
        before = row(server).lost
        server.dies("b")  # now it is proven to hold none
        await asyncio.wait_for(waiting, 5)
        assert row(server).lost
        return before

    assert virtual.run(run()) is False


def test_a_session_whose_owner_says_that_it_holds_no_copy_is_looked_after_like_a_dead_ones() -> None:
    async def run() -> bool:
        server = await server_of("a", "b")
        for name in ("a", "b"):
            wire = server.wires[name]
            wire.react = lambda message, name=name: server.holds(name, poll=message.poll)  # type: ignore[misc]
        server.desk.owner_says_gone("s", 1)
        recovery = Recovery(
            config=FleetConfig(recover_every_s=0.01, poll_s=0.05),
            workers=server.workers,
            desk=server.desk,
            gateway=lambda: server.gateway,
        )
        await asyncio.wait_for(recovery.recover("s"), 5)
        return row(server).lost

    assert virtual.run(run())


def _is_installed(server: Server, message: object) -> None:
    """A keeper that installs what it keeps, and plays when it is told to."""
    if isinstance(message, Revive):
        server.holds("b", copy_of("s", "retired", block=message.block))
    if isinstance(message, TakeOver):
        server.holds("b", copy_of("s", "live", epoch=message.epoch))


def test_a_snapshot_that_is_kept_is_installed_and_takes_over_where_nothing_else_is_left() -> None:
    server = recovered(copy_of("s", "kept", block=3), react=_is_installed)
    assert (row(server).owner, row(server).epoch, row(server).lost) == ("b", 2, False)
    assert server.wires["b"].of(Revive)[0] == Revive(session="s", epoch=1, block=3, next_block=5)
    assert server.wires["b"].of(TakeOver)[0] == TakeOver(session="s", epoch=2, block=5)
    assert ("linked_again", ("b", 3)) in server.gateway.told


def test_a_retired_copy_takes_over_before_a_snapshot_that_the_same_worker_keeps() -> None:
    server = recovered(copy_of("s", "retired", block=4), copy_of("s", "kept", block=3), react=_plays_when_told(1))
    assert (row(server).owner, row(server).epoch) == ("b", 2)
    assert server.wires["b"].of(Revive) == []


@pytest.mark.parametrize(
    ("word", "is_first"),
    [
        (Pass(session="s"), "kept"),  # it goes, and would own the session while it has gone
        (Pass(session="another"), "retired"),
        (LetGo(session="s"), "retired"),
        (None, "retired"),
    ],
)
def test_a_copy_that_is_just_being_let_go_is_left_for_one_that_stays(word: ToWorker | None, is_first: str) -> None:
    async def tell(server: Server) -> None:
        if word is not None:
            server.workers.send("b", word)

    held = (copy_of("s", "retired", block=4), copy_of("s", "kept", block=3))
    server = recovered(*held, react=_is_installed, before=tell)
    assert (row(server).owner, row(server).lost) == ("b", False)
    assert bool(server.wires["b"].of(Revive)) == (is_first == "kept")


@pytest.mark.parametrize("phase", ["retired", "kept"])
def test_a_copy_that_is_just_being_let_go_takes_over_where_there_is_no_other(phase: str) -> None:
    async def tell(server: Server) -> None:
        server.workers.send("b", Pass(session="s") if phase == "retired" else LetGo(session="s"))

    server = recovered(copy_of("s", phase, block=4), react=_is_installed, before=tell)
    assert (row(server).owner, row(server).epoch, row(server).lost) == ("b", 2, False)


@pytest.mark.parametrize(("block", "reaches"), [(3, 4), (3, 3)])
def test_a_snapshot_whose_lists_have_a_gap_is_of_no_use_and_the_session_is_lost(block: int, reaches: int) -> None:
    kept = copy_of("s", "kept", block=block)
    server = recovered(kept, react=_is_installed, before=lambda server: _lists_reach(server, reaches))
    assert row(server).lost
    assert server.wires["b"].of(Revive) == []


def test_a_retired_copy_whose_lists_are_lost_does_not_keep_a_snapshot_that_has_its_own_from_being_used() -> None:
    async def reaches_from_three(server: Server) -> None:
        reaches = {2: 2, 3: 9}
        server.gateway.log_reaches = lambda session, first=0: reaches[first]  # type: ignore[method-assign]

    held = (copy_of("s", "retired", block=2), copy_of("s", "kept", block=3))
    server = recovered(*held, react=_is_installed, before=reaches_from_three)
    assert (row(server).owner, row(server).epoch, row(server).lost) == ("b", 2, False)
    assert server.wires["b"].of(Revive)[0] == Revive(session="s", epoch=1, block=3, next_block=5)


def test_a_snapshot_that_cannot_be_installed_is_let_go_and_the_reason_is_said() -> None:
    def cannot(server: Server, message: object) -> None:
        if isinstance(message, Revive):
            server.holds("b")

    assert row(recovered(copy_of("s", "kept", block=3), react=cannot)).lost


def silent(*names: str, shadow: bool, granted: bool = False) -> Row:
    """Let ``a``, the owner, and others be silent in a move to ``b``, while ``c`` keeps a snapshot; return the row.

    ``shadow``: ``b`` still holds one. ``granted``: it was granted the session, and has shown nothing.
    """

    async def run() -> Row:
        server = await server_of("a", "b", "c")
        attempt = "00000001-x"
        await server.desk.ask(
            OpenAttempt(session="s", attempt=attempt, epoch=1, destination="b", destination_incarnation=1)
        )
        if granted:
            await server.desk.ask(
                CommitAttempt(session="s", attempt=attempt, epoch=1, boundary=5, worker="b", incarnation=1)
            )
        server.holds("b", *((copy_of("s", "shadow"),) if shadow else ()))
        server.holds("c", copy_of("s", "kept", block=3))

        def react(message: object) -> None:
            if isinstance(message, Revive):
                server.holds("c", copy_of("s", "retired", block=message.block))
            if isinstance(message, TakeOver):
                server.holds("c", copy_of("s", "live", epoch=message.epoch))

        server.wires["c"].react = react
        for name in names:
            server.workers.get(name).suspected = True
        config = FleetConfig(recover_every_s=0.01, poll_s=0.05)
        recovery = Recovery(config=config, workers=server.workers, desk=server.desk, gateway=lambda: server.gateway)
        with suppress(TimeoutError):
            await asyncio.wait_for(recovery.recover("s"), 1)
        return row(server)

    return virtual.run(run())


def test_where_both_ends_of_a_move_are_silent_it_is_closed_and_a_snapshot_takes_over() -> None:
    found = silent("a", "b", shadow=True)
    assert (found.owner, found.epoch, found.attempt) == ("c", 2, None)


def test_the_move_of_a_silent_source_is_left_open_while_its_destination_answers() -> None:
    found = silent("a", shadow=True)
    assert (found.owner, found.epoch) == ("a", 1)
    assert found.attempt is not None


def test_a_silent_owner_that_was_granted_the_session_and_has_shown_nothing_is_replaced() -> None:
    found = silent("a", "b", shadow=False, granted=True)
    assert (found.owner, found.epoch) == ("c", 3)


def test_a_copy_that_can_ask_for_the_session_itself_is_waited_for_before_a_snapshot() -> None:
    """The source answers again, frozen before the block that is next."""
    asked: list[asyncio.Task[object]] = []

    async def run() -> Row:
        server = await server_of("a", "b", "c")
        server.desk.owner_says_gone("s", 1)
        server.holds("b", copy_of("s", "frozen"))
        server.holds("c", copy_of("s", "kept", block=3))

        def reclaim(message: object) -> None:
            if isinstance(message, Inquire) and not asked:
                question = Reclaim(session="s", epoch=1, acknowledged=5, computed=5, worker="b", incarnation=1)
                asked.append(asyncio.ensure_future(server.desk.ask(question)))

        server.wires["b"].react = reclaim
        config = FleetConfig(recover_every_s=0.01, poll_s=0.05)
        recovery = Recovery(config=config, workers=server.workers, desk=server.desk, gateway=lambda: server.gateway)
        await asyncio.wait_for(recovery.recover("s"), 5)
        assert server.wires["c"].of(Revive) == []
        return row(server)

    assert virtual.run(run()).granted_by == "reclaim"
