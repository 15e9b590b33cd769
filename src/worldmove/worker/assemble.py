"""Putting one worker together from its engine, its threads and its link."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from worldmove.engine.base import Engine
from worldmove.move.host import Host
from worldmove.state.arena import AnyArena, new_arena
from worldmove.state.environment import Environment
from worldmove.state.kits import kit_of
from worldmove.state.memory import MemoryKit
from worldmove.transport.base import Blocking, Transport
from worldmove.units import PAGE_BYTES, round_up
from worldmove.worker.background import Background
from worldmove.worker.beats import Beats
from worldmove.worker.config import WorkerConfig
from worldmove.worker.containment import Containment
from worldmove.worker.copies import CopyTable
from worldmove.worker.courtesy import Courtesy
from worldmove.worker.drivers import Drivers
from worldmove.worker.endings import Endings
from worldmove.worker.keeper import Keeper
from worldmove.worker.ledger_client import LinkLedger
from worldmove.worker.meter import Meter
from worldmove.worker.on_their_way import OnTheirWay
from worldmove.worker.pictures import Taking, taken
from worldmove.worker.progress import Progress
from worldmove.worker.protecting import Protecting
from worldmove.worker.requests import Requests
from worldmove.worker.slots import SlotPool
from worldmove.worker.states import DIGESTER, followed_paths
from worldmove.worker.taking import Snapshots
from worldmove.worker.tools import Tools
from worldmove.worker.turns import Turns
from worldmove.worker.warm_up import WarmUp
from worldmove.worker.worker import Identity, Worker


@dataclass(frozen=True, slots=True, kw_only=True)
class Assembly:
    """A worker and what its process must hold on to."""

    worker: Worker
    background: Background
    arenas: tuple[AnyArena, ...]
    arena_bytes: int
    log: Callable[..., None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Edges:
    """What a worker is given of the world outside."""

    engine_thread: Blocking
    spare_thread: Blocking
    copy_thread: Blocking
    file_thread: Blocking
    """For what a disk makes wait: nobody's move waits behind that."""
    transports: Mapping[str, Transport]
    send: Callable[[Any], None]
    clock: Callable[[], float]
    """Seconds, monotonic, for block times."""
    pid: int
    log: Callable[..., None]
    on_failure: Callable[[str, BaseException], None]
    on_fault: Callable[[str, BaseException], None]
    """Hears of each failure in one session's conduct, which ends nothing else."""
    on_shutdown: Callable[[], None]
    taking: Taking = taken
    """How a block's pictures are copied and hashed."""
    birth: str = ""
    """What tells this process from a later one with its pid."""
    num_lines_dropped: Callable[[], int] = lambda: 0
    """How many lines of its log were dropped so far."""


def assemble(config: WorkerConfig, engine: Engine[Any], warm: WarmUp, edges: Edges) -> Assembly:
    """Make the slots and wire the parts. Runs inside the event loop."""
    worker, incarnation = config.worker, config.incarnation
    arena_bytes = max(round_up(config.arena_bytes, PAGE_BYTES), warm.arena_bytes)
    arenas = _arenas(config, arena_bytes, kit_of(engine.spec.device))
    pool, tools = SlotPool(arenas), _tools(config, engine, warm, edges)
    background = Background(edges.on_failure)
    containment = Containment(background, send=edges.send, on_fault=edges.on_fault)
    copies = CopyTable(pool, tools, background, containment, worker=worker, incarnation=incarnation, log=edges.log)
    ledger = LinkLedger(
        worker=worker, incarnation=incarnation, send=edges.send, answer_s=config.ledger_answer_s, log=edges.log
    )
    host = _host(config, warm, edges, ledger, tools.progress)
    drivers = Drivers(
        host=host, copies=copies, tools=tools, background=background, containment=containment, log=edges.log
    )
    beats = Beats()
    protecting = Protecting(
        copies=copies,
        keeper=_keeper(host, pool, tools, copies, drivers, containment),
        snapshots=Snapshots(host=host, copies=copies, gets_on=tools.progress.one_more),
        background=background,
        containment=containment,
        beats=beats,
        send=edges.send,
    )
    whole = Worker(
        identity=_identity(config, warm, edges),
        pool=pool,
        tools=tools,
        copies=copies,
        drivers=drivers,
        protecting=protecting,
        requests=Requests(
            copies=copies,
            drivers=drivers,
            protecting=protecting,
            background=background,
            containment=containment,
            tools=tools,
        ),
        endings=Endings(copies=copies, drivers=drivers, containment=containment, send=edges.send),
        ledger=ledger,
        beats=beats,
        containment=containment,
        on_shutdown=edges.on_shutdown,
    )
    return Assembly(worker=whole, background=background, arenas=arenas, arena_bytes=arena_bytes, log=edges.log)


def _arenas(config: WorkerConfig, size: int, kit: MemoryKit | None) -> tuple[AnyArena, ...]:
    return tuple(new_arena(size, f"{config.worker}-slot-{number}", kit) for number in range(config.num_slots))


def _tools(config: WorkerConfig, engine: Engine[Any], warm: WarmUp, edges: Edges) -> Tools:
    """Return what the copies share."""
    spec = engine.spec
    return Tools(
        engine=engine,
        spec=spec,
        types=engine.state_types,
        followed=followed_paths(engine),
        turns=Turns(edges.engine_thread, spare_thread=edges.spare_thread),
        courtesy=Courtesy(spec.period_s),
        copying=edges.copy_thread,
        filing=edges.file_thread,
        send=edges.send,
        clock=edges.clock,
        meter=Meter(warm.rates),
        check_blocks=config.check_blocks,
        on_their_way=OnTheirWay(),
        progress=Progress(),
        taking=edges.taking,
        num_lines_dropped=edges.num_lines_dropped,
    )


def _keeper(
    host: Host, pool: SlotPool, tools: Tools, copies: CopyTable, drivers: Drivers, containment: Containment
) -> Keeper:
    """Return who keeps other workers' snapshots: what it revives is played as a copy that a failover may take."""
    return Keeper(
        host=host,
        pool=pool,
        tools=tools,
        table=copies.kept,
        copies=copies,
        play=lambda copy, next_block: drivers.play(copy, retired_at=next_block, waits_for_failover=True),
        beside=containment.beside,
    )


def _identity(config: WorkerConfig, warm: WarmUp, edges: Edges) -> Identity:
    return Identity(
        worker=config.worker,
        incarnation=config.incarnation,
        pid=edges.pid,
        environment=warm.environment,
        rates=warm.rates,
        birth=edges.birth,
    )


def _host(config: WorkerConfig, warm: WarmUp, edges: Edges, ledger: LinkLedger, progress: Progress) -> Host:
    """Return what the drivers of moves are lent."""
    return Host(
        worker=config.worker,
        incarnation=config.incarnation,
        environment=Environment(fields=warm.environment),
        post=edges.send,
        ledger=ledger,
        blocking=edges.copy_thread,
        digester=DIGESTER,
        transports=edges.transports,
        clock=asyncio.get_running_loop().time,
        gets_on=progress.one_more_pulled,
        log=edges.log,
    )
