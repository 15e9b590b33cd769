"""Who may keep a session's snapshots is judged by what is so now."""

from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from tests.fleet.fakes import Server, copy_of, server_of
from tests.move import virtual
from worldmove.fleet.keeper_choice import KeeperChoice
from worldmove.fleet.second_copy import LONG_S
from worldmove.fleet.worker_table import STUCK_S
from worldmove.move.ledger_row import Row
from worldmove.worker.messages import KEPT

ROW = Row(session="s", owner="a", incarnation=1, epoch=2)


async def fleet(room: dict[str, int], keeping: tuple[str, ...] = (), held: int = 1) -> tuple[Server, KeeperChoice]:
    """Workers with so many free slots of three each; ``a`` plays the session, and holds so many copies in all."""
    server = await server_of(*room)
    server.holds("a", *(copy_of("s" if not number else f"s-{number}", "live") for number in range(held)))
    for name in [name for name in room if name != "a"]:
        server.holds(name, *(copy_of(f"{name}-{number}", "live") for number in range(3 - room[name])))
    for name in keeping:
        server.holds(name, *server.workers.get(name).copies, copy_of("s", KEPT))
    for name, slots in room.items():
        record = server.workers.get(name)
        assert record.hello is not None
        record.hello, record.slots_free = msgspec.structs.replace(record.hello, num_slots=3), slots
    books: Any = SimpleNamespace(workers=server.workers, gateway=lambda: server.gateway)
    return server, KeeperChoice(books)


@pytest.mark.parametrize(
    ("room", "held", "expected"),
    [
        ({"a": 1, "b": 1}, 1, True),
        ({"a": 0, "b": 1}, 2, True),  # what is copied aside there goes in a moment
        ({"a": 0, "b": 1}, 3, False),
        ({"a": 1, "b": 0, "c": 0}, 1, False),
        ({"a": 1}, 1, False),
    ],
)
def test_a_newer_one_can_be_had_where_its_owner_and_another_have_room(
    room: dict[str, int], held: int, *, expected: bool
) -> None:
    async def run() -> bool:
        _, choice = await fleet(room, held=held)
        return choice.may_renew(ROW)

    assert virtual.run(run()) is expected


@pytest.mark.parametrize("phase", ["frozen", "superseded", "retired", "shadow", "following", "throwaway", "freeing"])
@pytest.mark.parametrize("where", ["a", "b"])
def test_a_worker_is_full_of_nothing_that_goes_by_itself(where: str, phase: str) -> None:
    async def run() -> None:
        server, choice = await fleet({"a": 0, "b": 0}, held=3)
        assert not choice.may_renew(ROW)
        for name in ("a", "b"):
            server.holds(name, copy_of("s", "live"), copy_of("s-1", "live"))
        server.holds(where, copy_of("s", "live"), copy_of("s-1", "live"), copy_of("s-2", phase))
        assert choice.may_renew(ROW)

    virtual.run(run())


@pytest.mark.parametrize("how", ["suspected", "starting", "leaving", "of another environment"])
def test_who_is_silent_starts_or_is_started_anew_may_keep_one_in_a_moment_and_who_computes_otherwise_never(
    how: str,
) -> None:
    async def run() -> bool:
        server, choice = await fleet({"a": 1, "b": 1})
        record = server.workers.get("b")
        assert record.hello is not None
        record.suspected, record.leaving = how == "suspected", how == "leaving"
        if how == "starting":
            record.hello = None
        elif how == "of another environment":
            record.hello = msgspec.structs.replace(record.hello, environment={"torch": "another"})
        assert not choice.may_renew(ROW, but="b")
        return choice.may_renew(ROW)

    assert virtual.run(run()) is (how != "of another environment")


def test_who_plays_it_and_who_is_stuck_keep_it_for_nobody() -> None:
    async def run() -> None:
        server, choice = await fleet({"a": 1, "b": 1, "c": 1}, keeping=("a", "b"))
        assert choice.is_kept_elsewhere(ROW, but="c")
        assert not choice.is_kept_elsewhere(ROW, but="b")
        server.workers.get("b").taken_s = STUCK_S + 1
        assert not choice.is_kept_elsewhere(ROW, but="c")

    virtual.run(run())


def test_who_is_stuck_is_good_only_where_no_other_could_keep_it() -> None:
    async def run() -> None:
        server, choice = await fleet({"a": 1, "b": 1, "c": 1}, keeping=("b",))
        b, c = server.workers.get("b"), server.workers.get("c")
        b.taken_s = STUCK_S + 1
        assert choice.is_good(("b", 1), ROW)  # a long opening moves no snapshot
        b.taken_s = LONG_S + 1
        assert not choice.is_good(("b", 1), ROW)
        assert choice.best("s", choice.able(server.workers.get("a"))) is c
        c.slots_free = 0
        assert choice.is_good(("b", 1), ROW)
        c.slots_free, c.taken_s = 1, STUCK_S + 1
        assert choice.is_good(("b", 1), ROW)

    virtual.run(run())


def test_who_plays_it_ends_or_is_silent_is_no_keeper() -> None:
    async def run() -> None:
        server, choice = await fleet({"a": 1, "b": 1}, keeping=("b",))
        assert not choice.is_good(("a", 1), ROW)
        assert not choice.is_good(("b", 2), ROW)
        server.workers.get("b").leaving = True
        assert not choice.is_good(("b", 1), ROW)
        assert choice.able(server.workers.get("a")) == []

    virtual.run(run())


def test_a_worker_whose_engine_is_at_something_for_long_is_asked_where_no_other_has_room() -> None:
    async def run() -> None:
        server, _ = await fleet({"a": 1, "b": 0, "c": 2})
        server.workers.get("c").taken_s = STUCK_S + 1
        assert server.workers.with_most_room().name == "a"
        server.workers.get("a").slots_free = 0
        assert server.workers.with_most_room().name == "c"

    virtual.run(run())


@pytest.mark.parametrize("promised", ["", "b", "c"])
def test_a_slot_that_was_freed_for_a_world_takes_no_snapshot(promised: str) -> None:
    async def run() -> None:
        server, choice = await fleet({"a": 1, "b": 2, "c": 1})
        for name in promised:
            server.workers.get(name).promised = {"t": None, "u": None}
        best = choice.best("s", choice.able(server.workers.get("a")))
        assert best is server.workers.get("c" if promised == "b" else "b")

    virtual.run(run())
