"""Spawning workers on this machine: what goes wrong is said in one sentence, and nothing is left behind."""

import asyncio
import os
import stat
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from tests.fleet.fleet_of_two import eventually
from tests.fleet.slow_to_start import COMPUTES_S
from worldmove.errors import UserError
from worldmove.fleet.hosts_local import LocalHosts, LocalHostsConfig
from worldmove.fleet.local_door import LocalDoor, doorstep
from worldmove.worker.birth import birth_of
from worldmove.worker.config import WorkerConfig
from worldmove.worker.link import ServerLink, WorkerEnd, server_link
from worldmove.worker.messages import Copies, Hello, ToServer

START_S = 1.0


def started(engine: str, start_s: float) -> tuple[UserError, list[int | None], LocalHosts]:
    """Fail to start a worker; return how, and the exit status that was told."""
    hosts = LocalHosts(LocalHostsConfig(worker=WorkerConfig(engine=engine), start_s=start_s))
    statuses: list[int | None] = []

    async def run() -> UserError:
        try:
            with pytest.raises(UserError) as refused:
                await hosts.start("w", 1, lambda message: None, statuses.append)
            assert hosts.run_dir is not None
            assert stat.S_IMODE(os.stat(hosts.run_dir).st_mode) == 0o700
            return refused.value
        finally:
            await hosts.close()

    return asyncio.run(run()), statuses, hosts


@pytest.mark.slow
def test_a_worker_that_ends_before_its_hello_is_said_with_its_status() -> None:
    error, statuses, hosts = started("reference:nothing", 60.0)
    assert "w ended with status 1 before it was ready" in str(error)
    assert statuses == [1]
    assert hosts.run_dir is None


@pytest.mark.slow
def test_a_worker_that_does_nothing_any_more_before_it_is_there_is_killed() -> None:
    error, statuses, _ = started("python:tests.fleet.slow_to_start:hanging", START_S)
    assert "w did not start, and has done nothing for 1 s" in str(error)
    assert statuses == [-9]


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["computing", "compiling"])
def test_a_worker_that_gets_on_may_take_any_time_to_start(engine: str) -> None:
    """Many that start at once share the cores: each would be killed, and started again to be killed again."""
    config = LocalHostsConfig(worker=WorkerConfig(engine=f"python:tests.fleet.slow_to_start:{engine}"), start_s=START_S)

    async def run() -> float:
        hosts, clock = LocalHosts(config), asyncio.get_running_loop().time
        begun = clock()
        try:
            await hosts.start("w", 1, lambda message: None, lambda status: None)
            return clock() - begun
        finally:
            await hosts.close()

    assert asyncio.run(run()) > COMPUTES_S > 2 * START_S


def test_nothing_is_kept_of_workers_that_have_ended() -> None:
    async def run() -> LocalHosts:
        hosts = LocalHosts(LocalHostsConfig(worker=WorkerConfig(engine="python:no_such_engine:build")))
        for incarnation in (1, 2, 3):
            ended = asyncio.Event()
            with pytest.raises(UserError):
                await hosts.start("w", incarnation, lambda message: None, lambda status, ended=ended: ended.set())  # type: ignore[misc]
            await ended.wait()
        await asyncio.sleep(0)
        assert (hosts._started, hosts._watches) == ({}, {})
        await hosts.close()
        return hosts

    assert asyncio.run(run()).run_dir is None


@pytest.mark.parametrize("name", ["server.sock", "worker-1-1.sock"])
@pytest.mark.parametrize("make", [Path.mkdir, Path.touch, os.mkfifo])
def test_what_has_a_sockets_name_and_is_none_is_said_and_let_be(
    tmp_path: Path, name: str, make: Callable[[Path], None]
) -> None:
    make(tmp_path / name)
    hosts = LocalHosts(LocalHostsConfig(worker=WorkerConfig(engine="reference:tiny"), folder=tmp_path))

    async def run() -> None:
        try:
            await hosts.listen()
        finally:
            await hosts.close()

    if name != "server.sock" and make is not Path.mkdir:
        asyncio.run(run())  # what a dead worker has left is removed
        assert list(tmp_path.iterdir()) == []
        return
    with pytest.raises(UserError, match=f"Workers cannot be let in at {tmp_path} .*{name}") as refused:
        asyncio.run(run())
    assert refused.value.code == "state_unusable"
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_closing_what_was_never_started_does_nothing() -> None:
    hosts = LocalHosts(LocalHostsConfig(worker=WorkerConfig(engine="reference:tiny")))
    asyncio.run(hosts.close())
    asyncio.run(hosts.close())
    assert hosts.run_dir is None


@pytest.mark.slow
def test_a_worker_whose_link_breaks_joins_again_and_ends_by_itself_when_its_server_stays_away() -> None:
    async def run() -> tuple[list[int], list[int | None]]:
        hosts = LocalHosts(LocalHostsConfig(worker=WorkerConfig(engine="reference:tiny", keep_s=0.5)))
        hellos: list[int] = []
        statuses: list[int | None] = []

        def heard(message: ToServer) -> None:
            if isinstance(message, Hello):
                hellos.append(message.pid)

        try:
            process, link = await hosts.start("w", 1, heard, statuses.append)
            link.close()
            await eventually(lambda: len(hellos) == 2)
            assert hosts.run_dir is not None
            (hosts.run_dir / "server.sock").unlink()
            link.close()
            await process.ended()
            await eventually(lambda: bool(statuses))
        finally:
            await hosts.close()
        return hellos, statuses

    hellos, statuses = asyncio.run(run())
    assert hellos[0] == hellos[1]
    assert statuses == [0]


def test_a_worker_that_comes_before_anybody_is_let_in_is_heard_then(tmp_path: Path) -> None:
    """As where a server that was started again is still building its engine: its workers wait for it."""

    async def run() -> list[str]:
        heard: list[str] = []

        async def serve(link: WorkerEnd, hello: Hello) -> None:
            heard.append(hello.worker)

        with doorstep(tmp_path) as step:
            link = server_link(*await asyncio.open_unix_connection(tmp_path / "server.sock"))
            link.send(Hello(worker="w", incarnation=1, pid=1, environment={}, num_slots=3, arena_bytes=1, copies=()))
            await asyncio.sleep(0.05)
            door = LocalDoor(folder=tmp_path, hello_s=5.0, log=lambda event, fields: None, serve=serve, step=step)
            await door.open(())
            await eventually(lambda: bool(heard))
            link.close()
            door.close()
        return heard

    assert asyncio.run(run()) == ["w"]
    assert list(tmp_path.iterdir()) == []


def test_who_was_adopted_and_has_never_come_is_not_this_servers_to_end(tmp_path: Path) -> None:
    """A server on a copy of another one's folder finds that one's workers alive."""

    async def run() -> tuple[bool, bool]:
        config = LocalHostsConfig(worker=WorkerConfig(engine="reference:tiny"), folder=tmp_path, stop_s=0.5)
        hosts, sleeping = LocalHosts(config), subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
        try:
            birth = birth_of(sleeping.pid)
            assert birth is not None
            adopted = hosts.adopt("w", 1, sleeping.pid, birth, lambda message: None, lambda status: None)
            closing = asyncio.create_task(hosts.close())
            await asyncio.wait([closing], timeout=2.0)
            return adopted is not None, sleeping.poll() is None
        finally:
            sleeping.kill()
            sleeping.communicate()
            await closing

    assert asyncio.run(run()) == (True, True)


class Caller:
    """One connection of a worker, as raw as the test needs it."""

    def __init__(self, link: ServerLink) -> None:
        self._link = link

    @classmethod
    async def of(cls, hosts: LocalHosts) -> "Caller":
        assert hosts.run_dir is not None
        return cls(server_link(*await asyncio.open_unix_connection(hosts.run_dir / "server.sock")))

    def says_hello(self, pid: int) -> None:
        self._link.send(
            Hello(worker="w", incarnation=1, pid=pid, environment={}, num_slots=3, arena_bytes=1, copies=())
        )

    def holds(self, slots_free: int) -> None:
        self._link.send(Copies(worker="w", incarnation=1, copies=(), slots_free=slots_free, slots_quarantined=0))

    async def is_ended(self) -> bool:
        async with asyncio.timeout(5.0):
            return await self._link.take() is None

    def close(self) -> None:
        self._link.close()


async def two_links(course: Callable[[Caller, Caller, int, list[ToServer]], Awaitable[None]]) -> None:
    """Have a process that an earlier server started make two connections, of which ``course`` says what they say."""
    hosts, heard = LocalHosts(LocalHostsConfig(worker=WorkerConfig(engine="reference:tiny"))), list[ToServer]()
    process = await asyncio.create_subprocess_exec("sleep", "60")
    callers: list[Caller] = []
    try:
        assert hosts.adopt("w", 1, process.pid, birth_of(process.pid) or "", heard.append, lambda status: None)
        await hosts.listen()
        old, new = callers = [await Caller.of(hosts) for _ in range(2)]
        await course(old, new, process.pid, heard)
    finally:
        for caller in callers:
            caller.close()
        await hosts.close()
        await process.wait()


def test_nothing_is_heard_over_a_link_any_more_once_the_same_worker_has_said_hello_over_another() -> None:
    async def course(old: Caller, new: Caller, pid: int, heard: list[ToServer]) -> None:
        old.says_hello(pid)
        old.holds(1)
        await eventually(lambda: len(heard) == 2)
        new.says_hello(pid)
        await eventually(lambda: len(heard) == 3)
        old.holds(2)
        assert await old.is_ended()
        new.holds(3)
        await eventually(lambda: len(heard) == 4)
        assert [word.slots_free for word in heard if isinstance(word, Copies)] == [1, 3]

    asyncio.run(two_links(course))


def test_a_hello_that_comes_late_over_an_older_link_ends_the_newer_so_that_the_worker_says_all_anew() -> None:
    """What it said over the newer one is newer than that hello, and would be believed no more."""

    async def course(old: Caller, new: Caller, pid: int, heard: list[ToServer]) -> None:
        new.says_hello(pid)
        new.holds(1)
        await eventually(lambda: len(heard) == 2)
        old.says_hello(pid)
        assert await new.is_ended()

    asyncio.run(two_links(course))
