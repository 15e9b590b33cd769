"""The edge: a worker's process. ``python -m worldmove.worker JSON``, started by a host.

Standard error carries one JSON line per change of phase. Exit status: 0 after a clean end (SIGTERM, Shutdown,
or the server gone for longer than ``keep_s``), 1 after a failure. At SIGTERM it asks the server to move its sessions
away, the next one if there is none just now, and ends when they are, or when none has gone for ``leave_s``; at a second
one, and where it has nothing and nobody to say so to, it ends at once. A call of the engine that does not return by
then is not waited for.
"""

import asyncio
import gc
import os
import random
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import msgspec
import structlog

from worldmove.errors import WorldMoveError
from worldmove.state.kits import kit_of
from worldmove.state.memory import MemoryKit
from worldmove.transport.tcp import TcpConfig
from worldmove.worker.assemble import Edges, assemble
from worldmove.worker.birth import birth_of
from worldmove.worker.config import WorkerConfig
from worldmove.worker.engines import build_engine
from worldmove.worker.path_notes import read_notes, trusted
from worldmove.worker.path_rates import path_rates
from worldmove.worker.picture_threads import PictureThreads, picture_threads
from worldmove.worker.process_end import Ending, exit_after
from worldmove.worker.process_log import END_S as LOG_END_S
from worldmove.worker.process_log import configure_log, json_lines
from worldmove.worker.profile import Profile
from worldmove.worker.standard_streams import take_over, written_out
from worldmove.worker.threads import OneThread
from worldmove.worker.transports import LocalTransports
from worldmove.worker.uplink import Uplink, stay_linked
from worldmove.worker.warm_up import warm_up

END_S = 10.0
"""How long an end in order may take. A thread cannot be interrupted: what the engine's is in may never return."""
SPARE_NICENESS = 10
"""How far check blocks and throw-away copies step back where a player's block, in any process, wants the core."""
GC_THRESHOLDS = 50_000, 20, 100
"""A state has thousands of small parts: at the default of 700 a collection would run every few hundred of them."""
DEVICE_SWITCH_INTERVAL_S = 0.0001
"""The same where an engine launches kernels from Python all the time: its thread rarely lets go by itself."""
SWITCH_INTERVAL_S = 0.0005
"""How long one thread may keep Python's lock while another wants it.

While the engine's thread runs Python, whatever arrives waits for this long. Measured on two busy cores with a block
of 7 ms (2026-11-29): what a worker adds to a block is 5.1 ms at the default of 5 ms, and 0.7 ms at this.
"""


class _Threads:
    """What a worker computes in, beside its event loop."""

    def __init__(self, config: WorkerConfig, profile: Profile) -> None:
        self._profile = profile
        self.engine = OneThread("engine", profile=profile)
        self.copy = OneThread("copy", profile=profile)
        self.file = OneThread("file", niceness=SPARE_NICENESS, profile=profile)
        self.spare = OneThread("spare", niceness=SPARE_NICENESS, profile=profile)
        self.pictures = PictureThreads(config.num_picture_threads or picture_threads(), config.large_frame_bytes)

    def close(self) -> None:
        for thread in (self.engine, self.spare, self.copy, self.file, self.pictures):
            thread.close()
        self._profile.write()


async def serve(config: WorkerConfig, num_lines_dropped: Callable[[], int]) -> int:
    """Build the engine, say hello, and serve until told to end. Returns the exit status."""
    log = structlog.get_logger().bind(worker=config.worker, incarnation=config.incarnation)
    uplink, ending = Uplink(), Ending(log)
    _at_a_signal(partial(ending.at_a_signal, uplink))
    profile = Profile(config.profile and f"{config.profile}/{config.worker}-{config.incarnation}.json")
    threads = _Threads(config, profile)
    engine = await threads.engine(lambda: build_engine(config.engine, config.num_threads))
    warm = await threads.engine(lambda: warm_up(engine, time.perf_counter))
    kit = kit_of(engine.spec.device)
    if kit is not None:
        sys.setswitchinterval(DEVICE_SWITCH_INTERVAL_S)
    transports = await _transports(config, threads.copy, kit)
    warm = replace(warm, rates={**warm.rates, **await _rates(config, transports, kit)})
    edges = _edges(threads, transports, uplink, ending, profile.hearing(log.info))
    edges = replace(edges, num_lines_dropped=num_lines_dropped)
    assembly = assemble(config, engine, warm, edges)
    settle()
    profile.start()
    log.info("worker_ready", engine=config.engine, slots=config.num_slots, arena_bytes=assembly.arena_bytes)
    ending.holds = lambda: bool(assembly.worker.copies.held())
    ending.leave = lambda: _ignored(assembly.background.start("leave", assembly.worker.leave(config.leave_s)))
    assembly.background.start("link", stay_linked(config, assembly, uplink, ending.reached.set))
    await ending.reached.wait()
    exit_after(END_S, log)
    await assembly.background.stop()
    await transports.close()
    threads.close()
    log.info("worker_ended", clean=not ending.has_failed)
    return int(ending.has_failed)


def _edges(
    threads: _Threads, transports: LocalTransports, uplink: Uplink, ending: Ending, log: Callable[..., None]
) -> Edges:
    """Return what the worker is given of the world outside."""
    return Edges(
        engine_thread=threads.engine,
        spare_thread=threads.spare,
        copy_thread=threads.copy,
        file_thread=threads.file,
        transports=transports.by_name,
        send=uplink.send,
        clock=time.perf_counter,
        pid=os.getpid(),
        log=log,
        on_failure=ending.failed,
        on_fault=ending.faulted,
        on_shutdown=ending.reached.set,
        taking=threads.pictures,
        birth=birth_of(os.getpid()) or "",
    )


async def _transports(config: WorkerConfig, copy_thread: OneThread, kit: MemoryKit | None) -> LocalTransports:
    """Begin to let this worker's arenas be had."""
    transports = LocalTransports(
        _socket_path(config),
        copy_thread,
        tcp=TcpConfig(host=config.tcp_host),
        kit=kit,
        random_bytes=os.urandom,
        rng=random.Random(),
    )
    await transports.start()
    return transports


async def _rates(config: WorkerConfig, transports: LocalTransports, kit: MemoryKit | None) -> dict[str, float]:
    """Measure the paths; of those between devices what a probe has found damaged is left out."""
    rates = await path_rates(transports.by_name, time.perf_counter, kit)
    if kit is not None and config.path_notes:
        return trusted(rates, read_notes(Path(config.path_notes), time.time()), kit.device_id)
    return rates


def _ignored(_task: object) -> None: ...


def _at_a_signal(act: Callable[[], None]) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, act)


def _socket_path(config: WorkerConfig) -> Path:
    """Where this incarnation lets its arenas be had: beside the server's socket."""
    return Path(config.socket_path).parent / f"{config.worker}-{config.incarnation}.sock"


def settle() -> None:
    """Look no more through what lives as long as the process: a collection in the pause would double a capture."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)
    gc.enable()


def main() -> None:
    """Run a worker from its configuration, the one argument."""
    config = msgspec.json.decode(sys.argv[1], type=WorkerConfig)
    take_over()
    log = configure_log(config.log_level, json_lines())
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    try:
        status = asyncio.run(serve(config, lambda: 0 if log is None else log.num_dropped))
    except WorldMoveError as error:
        structlog.get_logger().error("worker_not_started", worker=config.worker, code=error.code, why=str(error))
        status = 1
    written_out(sys.stderr, LOG_END_S)
    os._exit(status)  # the slots' memory is shared with nobody who could miss a farewell; torch's threads need none
