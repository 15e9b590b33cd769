"""What yields its slot to a world that would end with its worker: second copies of those that go on without them."""

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from tests.fleet.fakes import Server, copy_of, server_of
from tests.move import virtual
from worldmove.fleet.config import FleetConfig
from worldmove.fleet.second_copy import SecondCopy
from worldmove.fleet.sessions import SessionRecord, SessionTable
from worldmove.fleet.succession import Succession
from worldmove.fleet.views import WorkerState
from worldmove.fleet.yielding import LASTING, MOST_IN_VAIN, Yielding
from worldmove.move.ledger_row import OpenedFor, Row
from worldmove.worker.messages import KEPT, Copy, LetGo, Pass

NAMES = ("a", "b", "c")
STAYS = Copy(session="t", phase="retired", epoch=1, block=5, stays=True)
OPENED = OpenedFor(attempt="1-x", destination="b", incarnation=1)


class Fleet:
    """``a`` is to end and plays ``s``; ``c`` plays ``t``, and ``b`` holds something of that. All slots are taken."""

    def __init__(self, server: Server, held: Copy) -> None:
        self.server, self.logged = server, list[tuple[str, dict[str, object]]]()
        self.sessions = SessionTable()
        for name, owner in (("s", "a"), ("t", "c")):
            record = SessionRecord(name=name, seed=1, worker=owner, incarnation=1, throwaway=False, protect_every=4)
            self.sessions.add(record)
        owners = (("s", "a"), ("t", "c"))
        self.rows = {name: Row(session=name, owner=owner, incarnation=1, epoch=1) for name, owner in owners}
        self.is_missing = False
        books: Any = SimpleNamespace(
            config=FleetConfig(workers=NAMES),
            workers=server.workers,
            sessions=self.sessions,
            desk=SimpleNamespace(row=self.rows.get, owner_is_missing=lambda row: self.is_missing),
            gateway=lambda: server.gateway,
        )
        server.holds("a", copy_of("s", "live"))
        server.holds("c", copy_of("t", "live"), copy_of("c-1", "live"), copy_of("c-2", "live"))
        server.holds("b", copy_of("b-1", "live"), copy_of("b-2", "live"), held)
        for worker in server.workers.all():
            worker.beat_sent = worker.beat_answered = 7
        self.leaving = server.workers.get("a")
        self.leaving.leaving, self.leaving.leaving_since = True, 1.0
        self.yielding = Yielding(
            books, Succession(books), self.leaving, lambda event, fields: self.logged.append((event, fields))
        )
        self.second = SecondCopy(books)

    def make_way(self) -> list[Any]:
        """Return what ``b`` is told by then."""
        self.yielding.make_way("s", [self.server.workers.get("b")])
        return self.server.wires["b"].sent

    def why_unprotected(self) -> str:
        return self.second.why_none(self.sessions.get("t"))


def test_a_snapshot_yields_and_from_that_instant_its_session_is_not_said_to_be_protected() -> None:
    async def run() -> None:
        found = Fleet(await server_of(*NAMES), copy_of("t", KEPT))
        assert found.why_unprotected() == ""
        assert found.make_way() == [LetGo(session="t")]
        assert "told to let it go" in found.why_unprotected()
        assert found.logged == [("copy_yields", {"session": "t", "worker": "b", "phase": KEPT, "to": "s"})]

    virtual.run(run())


def test_the_slot_is_for_whom_it_was_freed_and_for_nobody_else_until_that_one_has_ended() -> None:
    async def run() -> None:
        found = Fleet(await server_of(*NAMES), copy_of("t", KEPT))
        worker = found.server.workers.get("b")
        found.make_way()
        found.server.holds("b", copy_of("b-1", "live"), copy_of("b-2", "live"))
        assert (worker.slots_free, worker.room, worker.room_for("t"), worker.room_for("s")) == (1, 0, 0, 1)
        found.server.holds("b", copy_of("b-1", "live"), copy_of("s", "shadow"))
        assert (worker.slots_free, worker.room, worker.room_for("s")) == (1, 1, 1)  # it has the one, and one is left
        found.server.holds("b", copy_of("b-1", "live"), copy_of("b-2", "live"))
        found.yielding.ended_but(["another"])
        assert (worker.room, worker.promised) == (1, {})

    virtual.run(run())


def test_it_is_told_again_only_once_the_word_has_come_and_what_lies_there_has_not_gone() -> None:
    async def run() -> None:
        found = Fleet(await server_of(*NAMES), copy_of("t", KEPT))
        worker = found.server.workers.get("b")
        for answered, num_told in ((7, 1), (8, 1), (9, 2)):
            worker.beat_sent = worker.beat_answered = answered
            assert len(found.make_way()) == num_told

    virtual.run(run())


def test_no_two_are_promised_the_same_slot() -> None:
    async def run() -> None:
        found = Fleet(await server_of(*NAMES), copy_of("t", KEPT))
        found.make_way()
        found.yielding.make_way("another", [found.server.workers.get("b")])
        assert found.server.wires["b"].sent == [LetGo(session="t")]
        assert list(found.server.workers.get("b").promised) == ["s"]

    virtual.run(run())


def test_a_retired_copy_that_stays_goes_before_a_snapshot_and_one_of_two_snapshots_before_the_only_one() -> None:
    async def run() -> None:
        found = Fleet(await server_of(*NAMES), STAYS)
        found.server.holds("b", copy_of("t", KEPT), STAYS)
        assert found.make_way() == [Pass(session="t")]
        found = Fleet(await server_of(*NAMES), copy_of("t", KEPT))
        found.rows["u"] = Row(session="u", owner="c", incarnation=1, epoch=1)
        found.sessions.add(SessionRecord(name="u", seed=1, worker="c", incarnation=1, throwaway=False))
        found.server.holds("c", copy_of("t", "live"), copy_of("u", "live"))
        found.server.holds("b", copy_of("t", KEPT), copy_of("u", KEPT))
        found.server.holds("a", copy_of("s", "live"), copy_of("u", KEPT))
        assert found.make_way() == [LetGo(session="u")]

    virtual.run(run())


@pytest.mark.parametrize(
    "phase", ["live", "frozen", "superseded", "shadow", "following", "throwaway", "freeing", "retired"]
)
def test_nothing_yields_but_what_is_a_second_copy(phase: str) -> None:
    assert virtual.run(_told(lambda found: None, copy_of("t", phase))) == []


def _told(change: Any, held: Copy) -> Any:
    async def run() -> list[Any]:
        found = Fleet(await server_of(*NAMES), held)
        change(found)
        return found.make_way()

    return run()


def _leaves(found: Fleet, since: float) -> None:
    owner = found.server.workers.get("c")
    owner.leaving, owner.leaving_since = True, since


def _is_a_moves(found: Fleet) -> None:
    found.rows["t"] = replace(found.rows["t"], attempt=OPENED)


IN_THE_WAY: dict[str, Any] = {
    "its owner is gone": lambda found: found.server.dies("c"),
    "its owner is silent": lambda found: setattr(found.server.workers.get("c"), "suspected", True),
    "its owner is missed": lambda found: setattr(found, "is_missing", True),
    "its owner starts": lambda found: setattr(found.server.workers.get("c"), "state", WorkerState.STARTING),
    "its owner is stuck": lambda found: setattr(found.server.workers.get("c"), "taken_s", 60.0),
    "its owner does not play it yet": lambda found: found.server.holds("c", copy_of("t", "shadow")),
    "its owner plays it in another epoch": lambda found: found.server.holds("c", copy_of("t", "live", epoch=2)),
    "its owner ends before": lambda found: _leaves(found, 0.5),
    "its owner is who leaves": lambda found: found.rows.update(t=replace(found.rows["t"], owner="a")),
    "it moves": _is_a_moves,
    "it is an earlier server's": lambda found: setattr(found.sessions.get("t"), "resuming", True),
    "it is in no ledger": lambda found: found.rows.pop("t"),
}


@pytest.mark.parametrize("held", [copy_of("t", KEPT), STAYS], ids=["snapshot", "retired"])
@pytest.mark.parametrize("what", IN_THE_WAY)
def test_nothing_yields_whose_session_may_need_it(what: str, held: Copy) -> None:
    assert virtual.run(_told(IN_THE_WAY[what], held)) == []


@pytest.mark.parametrize("since", [None, 1.5])
def test_it_yields_where_its_owner_stays_or_ends_only_afterwards(since: float | None) -> None:
    change = (lambda found: None) if since is None else lambda found: _leaves(found, since)
    assert virtual.run(_told(change, copy_of("t", KEPT))) == [LetGo(session="t")]


PASSING = ("no_slot", "resuming", "moving", "silent", "cancelled", "copy_held", "closed", "worker_suspected", "ledger")


@pytest.mark.parametrize("why", [*PASSING, *LASTING])
def test_something_yields_where_one_has_not_come_before_unless_what_was_in_its_way_lasts(why: str) -> None:
    def not_come(found: Fleet) -> None:
        for _ in range(9):
            found.yielding.did_not_come("s", found.server.workers.get("b"), why)

    assert virtual.run(_told(not_come, copy_of("t", KEPT))) == ([] if why in LASTING else [LetGo(session="t")])


def test_nothing_yields_for_ever_to_one_that_does_not_come() -> None:
    async def run() -> None:
        found = Fleet(await server_of(*NAMES), copy_of("t", KEPT))
        for _ in range(MOST_IN_VAIN + 3):
            sent = found.make_way()
            found.yielding.did_not_come("s", found.server.workers.get("b"), "transport")
            found.yielding.ended("s")
        assert sent == [LetGo(session="t")] * MOST_IN_VAIN

    virtual.run(run())


GONE_SILENT: dict[str, Callable[[Server], None]] = {
    "is silent": lambda server: setattr(server.workers.get("d"), "suspected", True),
    "dies": lambda server: server.dies("d"),
    "is started anew": lambda server: setattr(server.workers.begin("d"), "state", WorkerState.READY),
    "is told to end": lambda server: setattr(server.workers.get("d"), "leaving", True),
}


@pytest.mark.parametrize("what", GONE_SILENT)
def test_where_the_word_to_yield_may_never_be_read_another_is_asked_at_once(what: str) -> None:
    async def run() -> None:
        server = await server_of(*NAMES, "d")
        found = Fleet(server, copy_of("t", KEPT))
        server.holds("d", copy_of("t", KEPT))
        asked = server.workers.get("d")
        havens = [server.workers.get("b"), asked]
        for _ in range(2):
            found.yielding.make_way("s", havens)
        assert (list(asked.promised), server.wires["b"].sent) == (["s"], [])
        GONE_SILENT[what](server)
        able = [worker for worker in server.workers.answering() if worker.name in ("b", "d")]
        found.yielding.make_way("s", able)
        assert (list(asked.promised), server.wires["b"].sent) == ([], [LetGo(session="t")])
        assert list(server.workers.get("b").promised) == ["s"]

    virtual.run(run())
