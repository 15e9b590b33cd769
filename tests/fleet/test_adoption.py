"""Workers of an earlier server: adopted while they live, proven dead where they do not, replaced under a new number."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import pytest

from tests.fleet.fakes import Wire
from tests.move import virtual
from worldmove.errors import UserError
from worldmove.fleet.config import FleetConfig
from worldmove.fleet.hosts_local import LocalHosts, LocalHostsConfig
from worldmove.fleet.local_process import is_alive
from worldmove.fleet.notes import MemoryNotes, Notes, WorkerNote
from worldmove.fleet.views import WorkerState
from worldmove.fleet.worker_table import WorkerTable
from worldmove.fleet.workers import WorkerRecord
from worldmove.fleet.workforce import Workforce
from worldmove.worker.background import Background
from worldmove.worker.birth import birth_of
from worldmove.worker.config import WorkerConfig
from worldmove.worker.link import server_link
from worldmove.worker.messages import Copies, Hello, Shutdown, ToServer

SLEEP = (sys.executable, "-c", "input()")


def hello_of(name: str, incarnation: int, pid: int = 7) -> Hello:
    return Hello(
        worker=name, incarnation=incarnation, pid=pid, environment={}, num_slots=3, arena_bytes=1, copies=(), birth="b"
    )


@dataclass
class Process:
    pid: int

    async def ended(self) -> int | None:
        return None

    def terminate(self) -> None: ...

    def kill(self) -> None: ...


@dataclass
class FakeHosts:
    """Hosts on which these pids live. A started worker says hello at once."""

    alive: tuple[int, ...] = ()
    started: list[tuple[str, int]] = field(default_factory=list)
    adopted: dict[str, Callable[[ToServer], None]] = field(default_factory=dict)
    on_gone: dict[str, Callable[[int | None], None]] = field(default_factory=dict)
    listening_after: tuple[str, ...] | None = None
    closed: bool = False
    wires: dict[str, Wire] = field(default_factory=dict)
    """What each worker was sent."""
    fails: list[Exception] = field(default_factory=list)
    """What becomes of the next starts."""
    started_at: list[float] = field(default_factory=list)

    async def start(
        self,
        worker: str,
        incarnation: int,
        on_message: Callable[[ToServer], None],
        on_gone: Callable[[int | None], None],
    ) -> tuple[Process, Wire]:
        self.started.append((worker, incarnation))
        self.started_at.append(asyncio.get_running_loop().time())
        if self.fails:
            on_gone(-9)  # before its hello
            raise self.fails.pop(0)
        on_message(hello_of(worker, incarnation, 100 + len(self.started)))
        return Process(100 + len(self.started)), self.wires.setdefault(worker, Wire())

    def adopt(
        self,
        worker: str,
        incarnation: int,
        pid: int,
        birth: str,
        on_message: Callable[[ToServer], None],
        on_gone: Callable[[int | None], None],
    ) -> tuple[Process, Wire] | None:
        if pid not in self.alive:
            return None
        self.adopted[worker], self.on_gone[worker] = on_message, on_gone
        return Process(pid), self.wires.setdefault(worker, Wire())

    async def listen(self) -> None:
        self.listening_after = tuple(self.adopted)

    async def close(self) -> None:
        self.closed = True


@dataclass
class Force:
    workforce: Workforce
    workers: WorkerTable
    notes: Notes
    gone: list[str]

    def states(self) -> dict[str, tuple[int, WorkerState]]:
        return {record.name: (record.incarnation, record.state) for record in self.workers.all()}


def force_of(
    hosts: FakeHosts, *noted: WorkerNote, names: tuple[str, ...] = ("a", "b"), restart_after_s: float = 0.0
) -> Force:
    workers, notes, gone = WorkerTable(names), Notes(MemoryNotes()), list[str]()
    for note in noted:
        notes.keep_worker(note)

    def heard(record: WorkerRecord, message: ToServer) -> None:
        if isinstance(message, Hello):
            workers.hello(message)

    workforce = Workforce(
        config=FleetConfig(workers=names, restart_after_s=restart_after_s),
        hosts=hosts,
        workers=workers,
        notes=notes,
        background=Background(lambda name, error: gone.append(repr(error))),
        on_message=heard,
        on_gone=lambda record: gone.append(record.name),
        log=lambda event, fields: None,
    )
    return Force(workforce=workforce, workers=workers, notes=notes, gone=gone)


A, B = (WorkerNote(name=name, incarnation=4, pid=pid, birth="b") for name, pid in (("a", 1), ("b", 2)))


def test_a_worker_that_does_not_come_up_again_is_started_until_it_does_and_less_and_less_often() -> None:
    """As where there is no memory for a while: whatever the start fails by."""

    async def run() -> tuple[list[float], tuple[int, WorkerState], list[str]]:
        ended = UserError("it ended before it was ready", code="worker_start")
        hosts = FakeHosts(alive=(1, 2), fails=[ended, OSError("no process"), *([ended] * 7)])
        force = force_of(hosts, A, B, restart_after_s=0.5)
        force.workforce.adopt()
        await force.workforce.start()
        hosts.adopted["a"](hello_of("a", 4, 1))
        died_at = asyncio.get_running_loop().time()
        hosts.on_gone["a"](-9)
        await asyncio.sleep(400.0)
        return [at - died_at for at in hosts.started_at], force.states()["a"], force.gone

    tries, state, gone = virtual.run(run())
    pauses = [later - sooner for sooner, later in pairwise([0.0, *tries])]
    assert pauses == pytest.approx([0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0, 30.0, 30.0])
    assert state == (14, WorkerState.READY)
    assert not [each for each in gone if "Error" in each]


def test_who_lives_is_awaited_until_its_hello_and_who_is_dead_is_replaced_under_the_next_number() -> None:
    async def run() -> None:
        hosts = FakeHosts(alive=(1,))
        force = force_of(hosts, A, B)
        force.workforce.adopt()
        assert force.states() == {"a": (4, WorkerState.AWAITED), "b": (4, WorkerState.GONE)}
        assert force.workers.is_gone("b", 4)
        assert not force.workers.is_gone("a", 4)
        assert [record.name for record in force.workers.may_hold()] == ["a"]
        await force.workforce.start()
        assert hosts.listening_after == ("a",)
        hosts.adopted["a"](hello_of("a", 4, 1))
        for _ in range(5):
            await asyncio.sleep(0)
        assert force.states() == {"a": (4, WorkerState.READY), "b": (5, WorkerState.READY)}
        assert {note.name: (note.incarnation, note.pid) for note in force.notes.workers()} == {
            "a": (4, 1),
            "b": (5, 101),
        }

    virtual.run(run())


def test_a_worker_shows_the_pid_of_its_living_process_and_none_without_one() -> None:
    async def run() -> None:
        hosts = FakeHosts(alive=(1,))
        force = force_of(hosts, A, WorkerNote(name="b", incarnation=4))

        def pids() -> dict[str, tuple[WorkerState, int | None]]:
            views = [record.view() for record in force.workers.all()]
            return {view.name: (view.state, view.pid) for view in views}

        force.workforce.adopt()
        assert pids() == {"a": (WorkerState.AWAITED, 1), "b": (WorkerState.GONE, None)}
        force.workers.begin("b")
        assert pids()["b"] == (WorkerState.STARTING, None)
        hosts.adopted["a"](hello_of("a", 4, 1))
        assert pids()["a"] == (WorkerState.READY, 1)
        hosts.on_gone["a"](-9)
        assert pids()["a"] == (WorkerState.GONE, None)

    virtual.run(run())


def test_one_that_was_noted_without_a_process_held_nothing_and_is_not_waited_for() -> None:
    async def run() -> None:
        hosts = FakeHosts()
        force = force_of(hosts, WorkerNote(name="a", incarnation=9), names=("a",))
        force.workforce.adopt()
        await force.workforce.start()
        assert hosts.started == [("a", 10)]

    virtual.run(run())


def test_more_workers_than_are_asked_for_are_adopted_all_the_same_and_not_replaced() -> None:
    async def run() -> None:
        hosts = FakeHosts(alive=(1, 2))
        force = force_of(hosts, A, B, names=("a",))
        force.workforce.adopt()
        await force.workforce.start()
        assert not force.workers.is_gone("b", 4)
        hosts.on_gone["b"](None)
        await asyncio.sleep(0.01)
        assert (hosts.started, force.gone) == ([], ["b"])
        assert force.workers.is_gone("b", 4)

    virtual.run(run())


def test_a_dead_one_that_is_not_asked_for_is_shown_no_more_and_its_number_is_never_given_again() -> None:
    async def run() -> None:
        hosts = FakeHosts(alive=(1,))
        force = force_of(hosts, A, B, names=("a",))
        force.workforce.adopt()
        assert list(force.states()) == ["a"]
        assert force.workers.is_gone("b", 4)
        later = force_of(hosts, *force.notes.workers())
        later.workforce.adopt()
        await later.workforce.start()
        await asyncio.sleep(0.01)
        assert hosts.started == [("b", 5)]

    virtual.run(run())


def test_an_adopted_one_that_dies_before_it_has_said_anything_is_replaced() -> None:
    async def run() -> None:
        hosts = FakeHosts(alive=(1,))
        force = force_of(hosts, A, names=("a",))
        force.workforce.adopt()
        await force.workforce.start()
        hosts.on_gone["a"](None)
        await asyncio.sleep(0.02)
        assert hosts.started == [("a", 5)]

    virtual.run(run())


def test_a_process_is_itself_only_with_its_own_birth() -> None:
    with subprocess.Popen(SLEEP, stdin=subprocess.PIPE) as process:
        birth = birth_of(process.pid) or ""
        assert is_alive(process.pid, birth)
        assert not is_alive(process.pid, birth + "0")
        process.kill()
        assert not is_alive_soon(process.pid, birth)  # dead, and not yet buried
    assert birth_of(process.pid) is None
    assert not is_alive(process.pid, birth)


def is_alive_soon(pid: int, birth: str) -> bool:
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    return is_alive(pid, birth)


def hosts_in(folder: Path) -> LocalHosts:
    return LocalHosts(LocalHostsConfig(worker=WorkerConfig(engine="none"), folder=folder, stop_s=0.2))


def test_the_death_of_an_adopted_process_is_told_without_a_status(tmp_path: Path) -> None:
    async def run() -> list[int | None]:
        statuses: list[int | None] = []
        with subprocess.Popen(SLEEP, stdin=subprocess.PIPE) as process:
            hosts = hosts_in(tmp_path)
            birth = birth_of(process.pid) or ""
            adopted = hosts.adopt("a", 4, process.pid, birth, lambda message: None, statuses.append)
            assert adopted is not None
            assert hosts.adopt("b", 4, process.pid, "another", lambda message: None, statuses.append) is None
            assert statuses == []
            await hosts.listen()
            link = server_link(*await asyncio.open_unix_connection(tmp_path / "server.sock"))
            link.send(hello_of("a", 4, process.pid))
            await asyncio.sleep(0.1)
            await hosts.close()  # ends it: it is this server's now
            link.close()
            assert process.wait(5) == -15
        return statuses

    assert asyncio.run(run()) == [None]


def test_only_who_is_known_is_let_in_and_a_stray_is_told_to_end(tmp_path: Path) -> None:
    async def run() -> None:
        heard: list[ToServer] = []
        (tmp_path / "a-3.sock").touch()
        (tmp_path / "a-4.sock").touch()
        with subprocess.Popen(SLEEP, stdin=subprocess.PIPE) as process:
            hosts = hosts_in(tmp_path)
            hosts.adopt("a", 4, process.pid, birth_of(process.pid) or "", heard.append, lambda status: None)
            await hosts.listen()
            assert sorted(path.name for path in tmp_path.glob("*.sock")) == ["a-4.sock", "server.sock"]
            known, stray = [server_link(*await asyncio.open_unix_connection(tmp_path / "server.sock")) for _ in "ab"]
            stray.send(hello_of("a", 3, process.pid))
            assert await stray.take() == Shutdown()
            known.send(hello_of("a", 4, process.pid))
            while not heard:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            known.close()
            stray.close()
            await hosts.close()
        assert heard == [hello_of("a", 4, process.pid)]
        assert not (tmp_path / "server.sock").exists()
        assert tmp_path.exists()

    asyncio.run(run())


def test_what_waits_in_a_link_is_cut_off_by_the_hello_of_the_next_one(tmp_path: Path) -> None:
    """A report that came after the hello of a later link would say that copies are gone that are there."""

    async def run() -> tuple[list[ToServer], list[ToServer]]:
        heard: list[ToServer] = []
        reports = [Copies(worker="a", incarnation=4, copies=(), slots_free=n, slots_quarantined=0) for n in range(4)]
        with subprocess.Popen(SLEEP, stdin=subprocess.PIPE) as process:
            hosts = hosts_in(tmp_path)
            hello = hello_of("a", 4, process.pid)

            def take(message: ToServer) -> None:
                heard.append(message)
                if message == reports[1]:  # the worker's next link is here before the rest of this one is read
                    assert adopted is not None
                    adopted[1].join(cast("Any", FakeEnd()))

            adopted = hosts.adopt("a", 4, process.pid, birth_of(process.pid) or "", take, lambda status: None)
            assert adopted is not None
            await hosts.listen()
            link = server_link(*await asyncio.open_unix_connection(tmp_path / "server.sock"))
            link.send(hello)
            for report in reports:
                link.send(report)
            assert await link.take() is None
            link.close()
            await hosts.close()
        return heard, [hello, *reports[:2]]

    heard, expected = asyncio.run(run())
    assert heard == expected


class FakeEnd:
    def close(self) -> None: ...
