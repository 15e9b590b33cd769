"""Of several workers that are to end one goes first, whoever would wait for it does, and no two wait for each other."""

from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from tests.fleet.fakes import Server, copy_of, server_of
from tests.move import virtual
from worldmove.fleet.config import FleetConfig
from worldmove.fleet.keeper_choice import KeeperChoice
from worldmove.fleet.sessions import SessionRecord, SessionTable
from worldmove.fleet.succession import Succession
from worldmove.fleet.views import WorkerState
from worldmove.move.ledger_row import Row
from worldmove.worker.messages import KEPT

NAMES = ("a", "b", "c")


class Fleet:
    """Workers ``a``, ``b`` and ``c``; ``a`` is to end. ``plays``: who plays each session."""

    def __init__(self, server: Server, plays: dict[str, str], *, restart: bool) -> None:
        self.server = server
        sessions = SessionTable()
        for name, worker in plays.items():
            sessions.add(SessionRecord(name=name, seed=1, worker=worker, incarnation=1, throwaway=False))
        self.rows = {name: Row(session=name, owner=worker, incarnation=1, epoch=1) for name, worker in plays.items()}
        books: Any = SimpleNamespace(
            config=FleetConfig(workers=NAMES, restart=restart),
            workers=server.workers,
            sessions=sessions,
            desk=SimpleNamespace(row=self.rows.get, owner_is_missing=lambda row: False),
        )
        self.succession, self.choice = Succession(books), KeeperChoice(books)
        self.told_to_end("a", 1.0)

    def told_to_end(self, name: str, at: float) -> None:
        worker = self.server.workers.get(name)
        worker.leaving, worker.is_emptied, worker.leaving_since = True, True, at

    def full(self, *names: str) -> None:
        for name in names:
            self.server.holds(name, *(copy_of(f"{name}-{number}", "live") for number in range(3)))

    @property
    def is_awaited(self) -> bool:
        return self.succession.is_awaited(self.server.workers.get("a"))

    @property
    def havens(self) -> list[str]:
        return [worker.name for worker in self.succession.havens(self.server.workers.get("a"))]


def fleet(plays: dict[str, str], *, restart: bool = True) -> Fleet:
    async def made() -> Fleet:
        return Fleet(await server_of(*NAMES), plays, restart=restart)

    return virtual.run(made())


@pytest.mark.parametrize("state", [WorkerState.STARTING, WorkerState.AWAITED, WorkerState.GONE])
@pytest.mark.parametrize("restart", [True, False])
def test_who_starts_is_awaited_and_who_has_ended_where_it_is_started_anew(state: WorkerState, *, restart: bool) -> None:
    found = fleet({"s": "a"}, restart=restart)
    assert not found.is_awaited
    found.server.workers.get("b").state = state
    assert found.is_awaited == (restart or state is not WorkerState.GONE)


@pytest.mark.parametrize("plays", [True, False])
@pytest.mark.parametrize("told_at", [0.5, 1.5])
@pytest.mark.parametrize("is_alike", [True, False])
def test_who_is_to_end_as_well_is_awaited_where_it_plays_nothing_or_was_told_before(
    told_at: float, *, plays: bool, is_alike: bool
) -> None:
    found = fleet({"s": "a", "t": "b"} if plays else {"s": "a"})
    found.told_to_end("b", told_at)
    worker = found.server.workers.get("b")
    assert worker.hello is not None
    if not is_alike:
        worker.hello = msgspec.structs.replace(worker.hello, environment={"engine.name": "another"})
    assert found.is_awaited == (is_alike and (not plays or told_at < 1.0))


@pytest.mark.parametrize("order", [1, -1])
def test_of_workers_that_are_all_to_end_one_alone_moves_what_it_plays_to_the_others_and_each_waits_for_it(
    order: int,
) -> None:
    """Whenever each was told to: a session never goes there and back between two of them."""
    found = fleet({"s": "a", "t": "b", "u": "c"})
    for number, name in enumerate(NAMES[::order]):
        found.told_to_end(name, float(number))
    workers = [found.server.workers.get(name) for name in NAMES[::order]]
    assert [found.succession.is_awaited(worker) for worker in workers] == [False, True, True]
    havens = [[to.name for to in found.succession.havens(worker)] for worker in workers]
    assert (sorted(havens[0]), havens[1:]) == (sorted(NAMES[::order][1:]), [[], []])


def test_one_that_is_to_end_takes_nothing_while_another_has_room_and_all_while_one_only_starts() -> None:
    found = fleet({"s": "a", "t": "b"})
    found.told_to_end("b", 2.0)
    assert found.havens == ["c"]
    found.full("c")
    assert found.havens == ["b"]
    found.server.workers.get("c").state = WorkerState.STARTING  # and may never come up
    assert found.havens == ["b"]


@pytest.mark.parametrize(
    ("holds", "told_at", "plays", "may_renew"),
    [
        (False, 0.5, False, True),  # it ends at once, whoever was told before
        (False, 1.5, False, True),
        (True, 0.5, False, True),  # it waits as this one does, and goes before it
        (True, 1.5, False, False),
        (True, 0.5, True, False),  # what it plays has no room anywhere, before one of the two has ended
    ],
)
def test_what_is_kept_waits_for_one_that_is_to_end_only_where_that_does_not_wait_for_this_one(
    told_at: float, *, holds: bool, plays: bool, may_renew: bool
) -> None:
    """``a`` plays nothing, and keeps a snapshot of what ``c`` plays."""
    found = fleet({"s": "c", "t": "b"} if plays else {"s": "c"})
    found.server.holds("a", copy_of("s", KEPT))
    found.server.holds("c", copy_of("s", "live"), copy_of("c-1", "live"))
    if plays:
        found.server.workers.get("c").leaving = True
    found.told_to_end("b", told_at)
    found.server.holds("b", *([copy_of("another", KEPT)] if holds else []))
    assert found.choice.may_renew(found.rows["s"], but="a") == may_renew
    assert found.choice.may_renew(found.rows["s"])
