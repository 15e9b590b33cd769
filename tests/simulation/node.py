"""A worker's process in the simulation: the shipped worker, assembled from edges that live in virtual time.

It mirrors ``worker.process``, which is an edge: a link that is made again when it was cut, an end after too long
without one, and an exit status that the server learns some time after the end.
"""

import asyncio
import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tests.simulation.decoder import FollowedEngine
from tests.simulation.engine import CounterEngine, World
from tests.simulation.hashing import taking_of
from tests.simulation.loop import SimLoop
from tests.simulation.net import Connection, Direction, SimLink, Wire
from tests.simulation.path import Fabric, SimPath
from tests.simulation.threads import Alone, SimThread
from tests.simulation.trace import Trace
from tests.simulation.watch import Watch
from worldmove.engine.base import KeyChange
from worldmove.transport.base import Transport
from worldmove.transport.wrappers import Corrupting
from worldmove.worker.assemble import Assembly, Edges, assemble
from worldmove.worker.config import WorkerConfig
from worldmove.worker.messages import Alive, Hello, Reported
from worldmove.worker.session import CopyPhase, SessionCopy
from worldmove.worker.turns import Turn
from worldmove.worker.warm_up import WarmUp

RECONNECT_S = 0.2
BOOT_S = (0.05, 0.4)
SKEW_S = 1000.0
"""How far a worker's clock may be from the server's."""
BLOCK_S = (0.005, 0.06)
COPY_S = (0.0005, 0.01)
WARM = WarmUp(
    environment={"engine.name": "counter", "canary.state": "equal"},
    rates={"block_s": 0.02, "sim_bytes_per_s": 1e9, "hash_bytes_per_s": 1e9},
    arena_bytes=4096,
)
WARM_DECODER = replace(
    WARM,
    rates={
        **WARM.rates,
        "final_bytes": 1056.0,
        "final_window_s": 0.01,
        "final_last_bytes": 32.0,
        "followed_bytes": 512.0,
        "follow_s": 0.01,
    },
)
"""The same of an engine whose worlds have a decoder."""


class Node:
    """One incarnation of one worker, from its start to its proven end (a ``WorkerProcess``)."""

    def __init__(
        self,
        config: WorkerConfig,
        *,
        wire: Wire,
        fabric: Fabric,
        watch: Watch,
        decodes: bool,
        forgets: str,
        on_message: Callable[[Any], None],
        on_gone: Callable[[int | None], None],
        server: str,
        serving: Callable[[], str | None],
    ) -> None:
        """``server``: who started it. ``serving``: which server listens now; None: none does."""
        self.name = config.worker
        self.incarnation = config.incarnation
        self.birth = f"{config.worker}#{config.incarnation}"
        self.node = f"{config.worker}#{config.incarnation}"
        self.pid = 100 * config.incarnation + int(config.worker[-1])
        self.link = SimLink()
        self.ready = wire.loop.create_future()
        self.status = wire.loop.create_future()
        self.assembly: Assembly | None = None
        self._config = config
        self._wire = wire
        self._loop: SimLoop = wire.loop
        self._trace: Trace = wire.trace
        self._watch = watch
        self._on_message = on_message
        self._on_gone = on_gone
        self._serving = serving
        self.reported_to = ""
        """The newest server that it has told all that it holds."""
        self._belongs_to = server
        self._server = wire.loop.context(server)
        self._adopted = False
        self._is_over = False
        skew = wire.weather.strikes("skew")
        self._skew_s = skew.between(-SKEW_S, SKEW_S) if skew else 0.0
        self._context = wire.loop.context(self.node)
        self._connection: Connection | None = None
        self._stop = asyncio.Event()
        self._unreachable_until = 0.0
        self._said_hello = False
        self.is_leaving = False
        self._path = SimPath(fabric, self.node, lambda: self.has_power)
        self._engine = self._engine_of(decodes, forgets)
        engine = Alone(self.node)
        self._threads = (
            SimThread(wire, "engine", BLOCK_S, engine),
            SimThread(wire, "spare", BLOCK_S, engine),
            SimThread(wire, "copy", COPY_S),
        )
        self._root = self._loop.run_in(self._context, self._run(), f"root {self.node}")
        self._root.add_done_callback(self._root_ended)

    @property
    def has_power(self) -> bool:
        return not self._is_over and self._loop.has_power(self.node)

    @property
    def is_ready(self) -> bool:
        return self.has_power and self.ready.done()

    @property
    def is_linked(self) -> bool:
        """As its process knows."""
        return self._connection is not None and not self._connection.noticed.is_set()

    def serve(self, server: str, on_message: Callable[[Any], None], on_gone: Callable[[int | None], None]) -> None:
        """Another server has taken this process over: it hears of it from now on, over a new link."""
        self._belongs_to, self._server, self._adopted = server, self._loop.context(server), True
        self.link = SimLink()
        self._on_message, self._on_gone = on_message, on_gone
        self.cut(0.0)

    # what the weather does

    def kill(self, *, noticed_after_s: float = 0.01) -> None:
        """Cut its power: nothing of it runs any more, and some time later the server learns of it."""
        if self.has_power:
            self._trace.add("power_off", node=self.node)
            self._trace.count("crashes")
            self._loop.power_off(self.node)
            self._end(-9, noticed_after_s)

    def terminate(self) -> None:
        """SIGTERM: it asks for its sessions to be moved away, the next server if need be.

        At a second one, or without a link and a copy, it ends at once.
        """
        worker = None if self.assembly is None or self.is_leaving or not self.has_power else self.assembly.worker
        if worker is None or not (self.is_linked or worker.copies.held()):
            self._loop.call_soon(self._stop.set, context=self._context)
            return
        self.is_leaving = True
        leaving = worker.leave(self._config.leave_s)
        self._loop.run_in(self._context, leaving, f"leave {self.node}")

    def cut(self, seconds: float) -> None:
        """Break the connection; none is made for some time."""
        self._unreachable_until = self._loop.time() + seconds
        if self._connection is not None:
            self._connection.cut()
            self._loop.call_soon(self._connection.noticed.set, context=self._context)

    def stall(self, seconds: float, *, up: bool) -> None:
        """Hold the stream up, one way."""
        if self._connection is not None:
            (self._connection.up if up else self._connection.down).stall(seconds)

    def slow_down(self, factor: float) -> None:
        for thread in self._threads:
            thread.slowness = factor

    def kept(self, session: str) -> list[int]:
        """Return the blocks of a session that it could give: those that have left, an owner the others too."""
        copy = None if self.assembly is None else self.assembly.worker.copies.get(session)
        if copy is None:
            return []
        left = [done.block for done in copy.outbox.left]
        sends = copy.phase in (CopyPhase.LIVE, CopyPhase.FROZEN)
        return left + list(range(copy.outbox.first_kept(copy.next_block), copy.next_block) if sends else ())

    def copy_in(self, seconds: float | None) -> None:
        """Have each piece of what its copying thread does take so long; None: as ever."""
        self._threads[2].takes_s = seconds

    def keep_busy(self, seconds: float) -> None:
        """Have its engine at something for a time, as at somebody's opening."""
        assert self.assembly is not None
        turns = self.assembly.worker.tools.turns

        async def call() -> None:
            async with turns.take(Turn.BOUNDARY):
                await asyncio.sleep(seconds)

        self._loop.run_in(self._context, call(), f"busy {self.node}")

    def is_missed_by(self, server: str) -> bool:
        """Whether it is dead, and a server does not know that yet."""
        return not self.has_power and self._belongs_to == server and not self.status.done()

    async def ended(self) -> int:
        status: int = await asyncio.shield(self.status)
        return status

    def copies_of(self, session: str) -> tuple[SessionCopy, ...]:
        """Return its copy of a session, if it has one."""
        copy = None if self.assembly is None else self.assembly.worker.copies.get(session)
        return () if copy is None else (copy,)

    def lists_of(self, session: str) -> frozenset[int]:
        """Return the blocks of a session whose lists it holds."""
        kept = None if self.assembly is None else self.assembly.worker.copies.kept.get(session)
        lists = [copy.inputs for copy in self.copies_of(session)] + ([] if kept is None else [kept.inputs])
        return frozenset(block for held in lists for block, _ in held.held())

    def kept_block(self, session: str) -> int | None:
        """Return the boundary of the snapshot that it keeps of a session, if it keeps one."""
        kept = None if self.assembly is None else self.assembly.worker.copies.kept.get(session)
        return None if kept is None or kept.state is None else kept.state.block

    def close_arenas(self) -> None:
        """Give the memory back, once the run is over."""
        if self.assembly is not None:
            for arena in self.assembly.arenas:
                arena.close()

    # the process

    def _engine_of(self, decodes: bool, forgets: str) -> CounterEngine:
        def stepped(world: World, changes: tuple[KeyChange, ...]) -> None:
            self._watch.stepped(self.node, world, changes)

        if not decodes:
            return CounterEngine(stepped, forgets)
        return FollowedEngine(stepped, weather=self._wire.weather, trace=self._trace, forgets=forgets)

    async def _run(self) -> None:
        await asyncio.sleep(self._wire.weather.dice("boot").between(*BOOT_S))
        engine, spare, copy = self._threads
        edges = Edges(
            engine_thread=engine,
            spare_thread=spare,
            copy_thread=copy,
            file_thread=copy,
            transports=_paths(self._path, random.Random(f"damage:{self._wire.weather.seed}:{self.node}")),
            send=self._send,
            clock=lambda: self._loop.time() + self._skew_s,
            pid=self.pid,
            log=self._log,
            on_failure=self._failed,
            on_fault=self._failed,
            on_shutdown=self._stop.set,
            birth=self.birth,
            taking=taking_of(self._wire),
        )
        warm = WARM_DECODER if self._engine.decodes else WARM
        self.assembly = assemble(self._config, self._engine, warm, edges)
        self.assembly.background.start("link", self._stay_linked(self.assembly))
        await self._stop.wait()
        await self.assembly.background.stop()
        self._end(0, 0.01)

    async def _stay_linked(self, assembly: Assembly) -> None:
        gone_since = self._loop.time()
        while self._loop.time() - gone_since < self._config.keep_s:
            serving = self._serving()
            if serving is None or self._loop.time() < self._unreachable_until:
                await asyncio.sleep(RECONNECT_S)
                continue
            if serving != self._belongs_to:
                break  # this server has not taken it over: it is told to end
            connection = self._connect(assembly)
            assembly.worker.joined()
            await connection.noticed.wait()
            gone_since = self._loop.time()
        self._stop.set()

    def _connect(self, assembly: Assembly) -> Connection:
        self._said_hello = False
        up = Direction("up", wire=self._wire, worker=self.name, context=self._server, deliver=self._heard)
        down = Direction("down", wire=self._wire, worker=self.name, context=self._context, deliver=assembly.worker.take)
        connection = self._connection = Connection(up, down)
        return connection

    def _send(self, message: Any) -> None:
        if self._connection is not None:
            self._connection.up.send(message)

    def _heard(self, message: Any) -> None:
        """At the server: the first that comes of a connection is its hello."""
        if isinstance(message, Hello):
            self._said_hello = True
            self.link.connection = self._connection
        if not self._said_hello:
            return
        if isinstance(message, Reported):
            self.reported_to = self._belongs_to
        self._on_message(message)
        if isinstance(message, Alive):
            self._watch.num_beats_answered += 1
        if not self.ready.done():
            self.ready.set_result(None)

    def _log(self, event: str, **fields: Any) -> None:
        if event == "copy" and self.has_power:  # it may lose it in the middle of a step, by what it has just sent
            self._watch.copy_changed(self.node, session=fields["session"], phase=fields["phase"], epoch=fields["epoch"])
        if event == "kept" and self.has_power:
            self._watch.kept_changed(self.node, session=fields["session"], here=fields["here"])
        self._trace.add(event, node=self.node, **fields)

    def _root_ended(self, task: "asyncio.Task[Any]") -> None:
        if self.has_power and not task.cancelled() and (error := task.exception()) is not None:
            self._failed("root", error)

    def _failed(self, task: str, error: BaseException) -> None:
        self._trace.fail(f"the task {task!r} of {self.node} failed: {error!r}")

    def _end(self, status: int, noticed_after_s: float) -> None:
        self._is_over = True
        self._path.forget()
        self._watch.node_died(self.node)
        if self._connection is not None:
            self._connection.cut()
        self._loop.call_later(noticed_after_s, self._noticed, status, context=self._server)

    def _noticed(self, status: int) -> None:
        """At the server: an exit status, which is the only proof of an end."""
        if self.status.done():
            return
        self.status.set_result(status)
        self._on_gone(None if self._adopted else status)


def _paths(path: SimPath, rng: random.Random) -> dict[str, Transport]:
    """Return the paths that a worker offers: one, and the same one damaging what it carries."""
    damaging = Corrupting(path, rng=rng)
    return {path.name: path, damaging.name: damaging}
