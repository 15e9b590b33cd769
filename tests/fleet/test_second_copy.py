"""A protected session is said to outlive the death of any one worker only where that is certain, and else why not."""

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from tests.fleet.fakes import Server, copy_of, server_of
from tests.move import virtual
from worldmove.fleet.behind import Ahead
from worldmove.fleet.second_copy import LONG_S, SecondCopy
from worldmove.fleet.sessions import SessionRecord
from worldmove.fleet.views import WorkerState
from worldmove.worker import inputs
from worldmove.worker.messages import KEPT, Expect, GiveUp, LetGo, Revive

Change = Callable[[Server, SessionRecord], None]


async def said_after(*changes: Change) -> tuple[str, Server, SecondCopy, SessionRecord]:
    """``a`` plays it, ``b`` keeps a snapshot; then something changes."""
    server = await server_of("a", "b")
    record = SessionRecord(name="s", seed=1, worker="a", incarnation=1, throwaway=False, protect_every=4)
    server.holds("a", copy_of("s", "live", 9))
    server.holds("b", copy_of("s", KEPT, 4))
    for change in changes:
        change(server, record)
    books: Any = SimpleNamespace(workers=server.workers, desk=server.desk, gateway=lambda: server.gateway)
    second = SecondCopy(books)
    return second.why_none(record), server, second, record


def of_worker(name: str, **changed: Any) -> Change:
    def change(server: Server, record: SessionRecord) -> None:
        found = server.workers.find(name)
        assert found is not None
        for field, value in changed.items():
            setattr(found, field, value)

    return change


def of_record(**changed: Any) -> Change:
    def change(server: Server, record: SessionRecord) -> None:
        for field, value in changed.items():
            setattr(record, field, value)

    return change


def of_gateway(**changed: Any) -> Change:
    return lambda server, record: server.gateway.__dict__.update(changed)


def of_row(**changed: Any) -> Change:
    return lambda server, record: server.desk._rows.update(s=replace(server.desk._rows["s"], **changed))


def holds(worker: str, *copies: Any) -> Change:
    return lambda server, record: server.holds(worker, *copies)


def told(worker: str, message: Any) -> Change:
    return lambda server, record: server.workers.send(worker, message)


def only_its_owner_keeps_one(server: Server, record: SessionRecord) -> None:
    server.holds("a", copy_of("s", "live", 9), copy_of("s", KEPT))
    server.holds("b")


def its_keeper_plays_it(server: Server, record: SessionRecord) -> None:
    of_row(owner="b", epoch=2)(server, record)
    server.holds("b", copy_of("s", KEPT, 4), copy_of("s", "live", 9, epoch=2))


def none_could_be_kept(server: Server, record: SessionRecord) -> None:
    server.holds("b")
    record.unkept_why = "no_slot: No other worker has room."


def its_engine_is_stuck(server: Server, record: SessionRecord) -> None:
    server.holds("b", copy_of("s", KEPT, 4), copy_of("other", "live"))
    server.workers.is_stalled = lambda session: session == "other"


REVIVE = Revive(session="s", epoch=1, block=4, next_block=5)
FLAWS: dict[str, tuple[str, Change]] = {
    "nobody keeps one": ("renewing", holds("b")),
    "only its owner does": ("renewing", only_its_owner_keeps_one),
    "a retired copy goes by rules of its own": ("renewing", holds("b", copy_of("s", "retired"))),
    "a move's copy does": ("renewing", holds("b", copy_of("s", "shadow"))),
    "its keeper plays it": ("renewing", its_keeper_plays_it),
    "its keeper is dead": ("renewing", lambda server, record: server.dies("b")),
    "its keeper is silent": ("unsafe", of_worker("b", suspected=True)),
    "its keeper ends": ("unsafe", of_worker("b", leaving=True)),
    "its keeper has yet to report": ("unsafe", of_worker("b", state=WorkerState.AWAITED)),
    "its keeper is at one thing for long": ("unsafe", of_worker("b", taken_s=LONG_S + 1)),
    "its keeper's engine does not return": ("unsafe", its_engine_is_stuck),
    "its keeper was told to let go": ("unsafe", told("b", LetGo(session="s"))),
    "its keeper was told to make a copy of it": ("unsafe", told("b", REVIVE)),
    "lists since are lost": ("unsafe", of_gateway(reaches=4)),
    "lists are not known": ("unsafe", of_gateway(reaches=None)),
    "what is next is not known": ("unsafe", of_gateway(block=None)),
    "it is ahead of what was shown": ("unsafe", of_gateway(block=3)),
    "it is too old": ("unsafe", of_gateway(reaches=4 + inputs.MAX_LISTS + 1)),
    "why none could be kept is known": ("no_slot", none_could_be_kept),
    "its owner is dead": ("in_doubt", lambda server, record: server.dies("a")),
    "its owner is silent": ("in_doubt", of_worker("a", suspected=True)),
    "its owner says that it is gone": ("in_doubt", lambda server, record: server.desk.owner_says_gone("s", 1)),
    "its owner has yet to take over": ("in_doubt", holds("a", copy_of("s", "retired", 9))),
    "its owner was granted it for a copy that it has let go": ("in_doubt", holds("a")),
    "its owner played an earlier epoch": ("in_doubt", of_row(epoch=2)),
    "its owner was told to give it up": ("in_doubt", told("a", GiveUp(session="s", epoch=1, why="another block"))),
    "an earlier server's has yet to be reported": ("resuming", of_record(resuming=True)),
    "the ledger is behind": ("ledger_behind", of_record(ahead=Ahead(worker="b", epoch=2))),
    "it is being closed": ("not_open", of_record(closing=True)),
    "it has no row yet": ("not_open", lambda server, record: server.desk._rows.clear()),
    "it is lost": ("lost", of_row(lost=True)),
}


def test_it_is_while_its_owner_plays_it_and_another_keeps_one_with_all_lists_since() -> None:
    async def run() -> None:
        assert (await said_after())[0] == ""
        for change in (of_gateway(block=4, reaches=4), of_gateway(reaches=4 + inputs.MAX_LISTS)):
            assert (await said_after(change))[0] == ""
        assert (await said_after(told("b", Expect(session="s")), told("b", LetGo(session="another"))))[0] == ""
        assert (await said_after(told("a", LetGo(session="s"))))[0] == ""  # its own snapshot saves it from nothing
        assert (await said_after(of_record(unkept_why="no_slot: a newer one has no room.")))[0] == ""

    virtual.run(run())


@pytest.mark.parametrize("name", FLAWS)
def test_it_is_not_and_that_is_said_where(name: str) -> None:
    async def run() -> str:
        return (await said_after(FLAWS[name][1]))[0]

    code, _, sentence = virtual.run(run()).partition(": ")
    assert code == FLAWS[name][0]
    assert sentence.endswith(".")


@pytest.mark.parametrize("message", [LetGo(session="s"), REVIVE])
def test_what_was_told_to_go_counts_again_once_its_worker_has_answered_two_beats_and_keeps_it_yet(message: Any) -> None:
    async def run() -> list[bool]:
        _, server, second, record = await said_after(of_worker("b", beat_sent=7, beat_answered=7), told("b", message))
        found = []
        for beat in (7, 8, 9):
            server.workers.get("b").beat_answered = beat
            found.append(second.why_none(record) == "")
        return found

    assert virtual.run(run()) == [False, False, True]


def test_who_drains_goes_by_the_same() -> None:
    async def run() -> None:
        _, server, second, _ = await said_after()
        row = server.desk.row("s")
        assert row is not None
        assert [worker.name for worker, _ in second.kept(row)] == ["b"]
        assert second.kept(row, but="b") == ()
        server.workers.get("b").leaving = True
        assert second.kept(row) == ()

    virtual.run(run())
