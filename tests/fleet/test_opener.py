"""Sessions are begun and ended: what races what, on a server without processes."""

import asyncio

import msgspec
import pytest

from tests.fleet.fakes import Server, copy_of, server_of
from tests.move import virtual
from worldmove.errors import UserError
from worldmove.fleet.asking import Asking
from worldmove.fleet.config import FleetConfig
from worldmove.fleet.movable import require_movable
from worldmove.fleet.notes import MemoryNotes, Notes
from worldmove.fleet.opener import Opener
from worldmove.fleet.sessions import SessionRecord, SessionTable
from worldmove.worker.messages import Alive, Close, Failed, Open, Opened


def opener_of(server: Server, sessions: SessionTable, **engine: str) -> Opener:
    return Opener(
        config=FleetConfig(close_s=0.01, engine={f"engine.{name}": value for name, value in engine.items()}),
        workers=server.workers,
        sessions=sessions,
        desk=server.desk,
        notes=Notes(MemoryNotes()),
        gateway=lambda: server.gateway,
        salt=lambda: "x",
    )


def test_what_is_being_opened_is_not_closed_nor_said_to_be_lost_and_its_opening_ends_as_it_would_have() -> None:
    async def main() -> None:
        server, sessions = await server_of("a"), SessionTable()
        opener = opener_of(server, sessions)
        opening = asyncio.create_task(opener.open("s-1", 5, "a"))
        await asyncio.sleep(0)
        assert len(server.wires["a"].of(Open)) == 1
        with pytest.raises(UserError, match="being opened") as refused:
            await opener.close("s-1")
        assert (refused.value.code, refused.value.status) == ("busy", 409)
        assert server.wires["a"].of(Close) == []
        with pytest.raises(UserError, match="being opened"):
            require_movable(sessions.get("s-1"), server.desk.row("s-1"), "b")
        asking = Asking(config=FleetConfig(), workers=server.workers, sessions=sessions, desk=server.desk)
        with pytest.raises(UserError, match="being opened"):  # and not that it is lost
            await asking.describe("s-1")
        done = Opened(session="s-1", epoch=1, num_bytes=1, num_leaves=1, state_digest="d")
        opener.heard(server.workers.get("a"), done)
        assert (await opening).name == "s-1"
        await opener.close("s-1")
        assert (sessions.find("s-1"), server.desk.row("s-1")) == (None, None)

    asyncio.run(main())


def test_sessions_that_are_opened_at_once_are_spread_over_the_workers_as_if_one_after_the_other() -> None:
    """What a worker has reported does not count those that it has not heard of yet."""

    async def main() -> None:
        server, sessions = await server_of("a", "b", "c"), SessionTable()
        opener, free = opener_of(server, sessions), {"a": 3, "b": 2, "c": 4}
        for name, slots in free.items():
            server.workers.get(name).slots_free = slots
        opening = [asyncio.create_task(opener.open(f"s-{number}", 5, None)) for number in range(12)]
        await asyncio.sleep(0.01)
        asked = {name: server.wires[name].of(Open) for name in free}
        assert {name: len(opens) for name, opens in asked.items()} == free
        refused = [task.exception() for task in opening if task.done()]
        assert [str(error) for error in refused] == ["Every slot is taken; close a session first."] * 3
        first = asked["b"][0].session
        server.holds("b", copy_of(first, "shadow"))
        server.workers.get("b").slots_free = 1
        with pytest.raises(UserError, match="Every slot is taken"):  # its place is counted once
            await opener.open("one more", 5, None)
        for name, opens in asked.items():
            for each in opens:
                code = {"a": "no_memory", "b": "no_memory"}.get(name)
                opener.heard(server.workers.get(name), answer(each.session, code))
        await asyncio.gather(*opening, return_exceptions=True)
        assert [server.workers.get(name).opening for name in free] == [{}, {}, {}]
        assert server.workers.with_most_room().name == "c"  # its reports are behind, and say so until the next

    asyncio.run(main())


def answer(session: str, code: str | None) -> Opened | Failed:
    if code is not None:
        return Failed(session=session, code=code, message="-")
    return Opened(session=session, epoch=1, num_bytes=1, num_leaves=1, state_digest="d")


def test_openings_behind_each_other_are_waited_for_as_long_as_their_worker_gets_on() -> None:
    """An engine makes one session at a time: the last of them waits for the sum."""
    makes_s, num = 3.0, 24

    async def main() -> None:
        server, sessions = await server_of("a"), SessionTable()
        opener = Opener(
            config=FleetConfig(),
            workers=server.workers,
            sessions=sessions,
            desk=server.desk,
            notes=Notes(MemoryNotes()),
            gateway=lambda: server.gateway,
            salt=lambda: "x",
        )
        worker = server.workers.get("a")
        opening = [asyncio.create_task(opener.open(f"s-{number}", 5, "a")) for number in range(num)]
        for number in range(num):
            await asyncio.sleep(makes_s)
            worker.take(Alive(number=number, num_done=number + 1))
            opener.heard(worker, Opened(session=f"s-{number}", epoch=1, num_bytes=1, num_leaves=1, state_digest="d"))
        assert [view.name for view in await asyncio.gather(*opening)] == [f"s-{number}" for number in range(num)]
        begun = asyncio.get_running_loop().time()
        with pytest.raises(UserError, match="a has got nothing done for 30 s") as refused:
            await opener.open("s-late", 5, "a")
        assert refused.value.code == "silent"
        assert 30.0 <= asyncio.get_running_loop().time() - begun <= 35.0

    virtual.run(main())


@pytest.mark.parametrize(("phase", "goes_on"), [("shadow", True), ("live", False), ("throwaway", False), (None, False)])
def test_an_opening_that_was_lost_with_a_link_is_told_to_be_as_soon_as_there_is_another(
    phase: str | None, *, goes_on: bool
) -> None:
    async def main() -> None:
        server, sessions = await server_of("a", "b"), SessionTable()
        opener = opener_of(server, sessions)
        opening = asyncio.create_task(opener.open("s-1", 5, "a"))
        await asyncio.sleep(0)
        other, hello = server.workers.get("b").hello, server.workers.get("a").hello
        assert hello is not None
        assert other is not None
        opener.linked_again(other)
        held = () if phase is None else (copy_of("s-1", phase),)
        opener.linked_again(msgspec.structs.replace(hello, copies=held))
        await asyncio.sleep(0)
        if goes_on:
            done = Opened(session="s-1", epoch=1, num_bytes=1, num_leaves=1, state_digest="d")
            opener.heard(server.workers.get("a"), done)
            assert (await opening).name == "s-1"
            return
        with pytest.raises(UserError, match="a has made a new link") as refused:
            await opening
        assert (refused.value.code, sessions.find("s-1")) == ("link_lost", None)
        assert server.wires["a"].of(Close) == [Close(session="s-1")]

    asyncio.run(main())


@pytest.mark.parametrize("how", ["its link was cut", "who asked has gone"])
def test_a_throw_away_copy_whose_opening_nobody_hears_of_is_closed_at_its_worker(how: str) -> None:
    async def main() -> None:
        server, sessions = await server_of("a"), SessionTable()
        sessions.add(SessionRecord(name="s-0", seed=1, worker="a", incarnation=1, throwaway=False))
        opener = opener_of(server, sessions)
        opening = asyncio.create_task(opener.open_throwaway("s-0", b"", 1))
        await asyncio.sleep(0)
        (asked,) = server.wires["a"].of(Open)
        hello = server.workers.get("a").hello
        assert hello is not None
        if how == "its link was cut":
            opener.linked_again(msgspec.structs.replace(hello, copies=(copy_of(asked.session, "throwaway"),)))
        else:
            opening.cancel()
        with pytest.raises((UserError, asyncio.CancelledError)):
            await opening
        assert server.wires["a"].of(Close) == [Close(session=asked.session)]
        assert sessions.find(asked.session) is None

    asyncio.run(main())


def test_a_throw_away_copy_has_a_name_that_no_other_had_not_even_under_an_earlier_server() -> None:
    salts = iter(("aa", "bb", "aa", "bb", "cc", "dd"))
    first, next_server = SessionTable(), SessionTable()
    names = [first.next_throwaway("s", lambda: next(salts)) for _ in range(3)]
    assert names == ["s~raa", "s~rbb", "s~rcc"]
    assert next_server.next_throwaway("s", lambda: next(salts)) not in names


@pytest.mark.parametrize("throwaway", [False, True])
def test_no_world_is_opened_at_a_worker_with_another_engine_than_the_servers_and_that_is_said_by_name(
    *, throwaway: bool
) -> None:
    async def main() -> None:
        server, sessions = await server_of("a", "b"), SessionTable()
        opener = opener_of(server, sessions, name="none", geometry="8x8, 2 frames a block")
        for name, geometry in (("a", "8x8, 2 frames a block"), ("b", "16x8, 2 frames a block")):
            record = server.workers.get(name)
            assert record.hello is not None
            fields = {**record.hello.environment, "engine.geometry": geometry, "weather": name}
            record.hello = msgspec.structs.replace(record.hello, environment=fields)
        if throwaway:
            sessions.add(SessionRecord(name="s-0", seed=1, worker="a", incarnation=1, throwaway=False))
            server.holds("a", *(copy_of(f"s-{number}", "live") for number in range(2)))
            opening = asyncio.create_task(opener.open_throwaway("s-0", b"", 1))
        else:
            with pytest.raises(UserError, match=r"engine\.geometry is 8x8, 2 frames a block here and 16x8") as refused:
                await opener.open("s-1", 5, "b")
            assert (refused.value.code, refused.value.status) == ("environment", 409)
            server.holds("a", *(copy_of(f"s-{number}", "live") for number in range(2)))
            opening = asyncio.create_task(opener.open("s-1", 5, None))
        await asyncio.sleep(0)
        assert len(server.wires["a"].of(Open)) == 1  # though the other one has more room
        assert server.wires["b"].of(Open) == []
        opening.cancel()
        await asyncio.gather(opening, return_exceptions=True)

    asyncio.run(main())


def test_where_every_worker_has_another_engine_none_is_asked() -> None:
    async def main() -> None:
        server, sessions = await server_of("a"), SessionTable()
        opener = opener_of(server, sessions, name="another")
        sessions.add(SessionRecord(name="s-0", seed=1, worker="a", incarnation=1, throwaway=False))
        for opening in (opener.open("s-1", 5, None), opener.open_throwaway("s-0", b"", 1)):
            with pytest.raises(UserError, match=r"engine\.name is another here and none there"):
                await opening
        assert server.wires["a"].of(Open) == []

    asyncio.run(main())
