"""A worker in this process, put together as its own process does it, with its link to a real socket."""

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from socket import socketpair
from typing import Any

import msgspec

from bench.movable_less import ALL, Less, Lessened
from worldmove.engine.base import Engine, KeyChange
from worldmove.errors import UserError
from worldmove.worker.assemble import Edges, assemble
from worldmove.worker.config import WorkerConfig
from worldmove.worker.engines import build_engine
from worldmove.worker.link import ServerLink, server_link
from worldmove.worker.messages import Acknowledge, BlockDone, Change, Failed, Inputs, Open, Opened
from worldmove.worker.picture_threads import PictureThreads, picture_threads
from worldmove.worker.process import DEVICE_SWITCH_INTERVAL_S, SWITCH_INTERVAL_S
from worldmove.worker.room import widen
from worldmove.worker.threads import OneThread
from worldmove.worker.warm_up import warm_up
from worldmove.worker.worker import Worker

EPOCH = 1


class WorkerHere:
    """Plays one session. ``block`` times a block from its list's arrival to its message on the link."""

    def __init__(self, engine: Engine[Any], engine_thread: OneThread, link: ServerLink, taking: Lessened) -> None:
        self._taking = taking
        self.engine = engine
        self.engine_thread = engine_thread
        self._link = link
        self._worker: Worker | None = None
        self._session = ""
        self._awaited = 0
        """The block that is waited for."""
        self._answer: asyncio.Future[tuple[BlockDone | Opened | Failed, float]] | None = None
        self._last: BlockDone | None = None

    def attach(self, worker: Worker) -> None:
        """Name the worker, which needs ``send`` first."""
        self._worker = worker

    @property
    def worker(self) -> Worker:
        """The worker."""
        if self._worker is None:
            raise RuntimeError("the worker is not assembled yet")
        return self._worker

    @property
    def last(self) -> BlockDone:
        """The newest block's message."""
        if self._last is None:
            raise RuntimeError("no block was played yet")
        return self._last

    def send(self, message: Any) -> None:
        """Encode a message onto the link, as every message of the worker's goes; then note when that was done."""
        is_left_out = isinstance(message, BlockDone) and not self._taking.less.is_sent
        self._link.send(msgspec.structs.replace(message, frames=b"") if is_left_out else message)
        if isinstance(message, BlockDone):
            done = Acknowledge(session=self._session, epoch=EPOCH, block=message.block, server_life=1)
            asyncio.get_running_loop().call_soon(self.worker.take, done)  # as a gateway does that has it
        if self._answer is None or not isinstance(message, BlockDone | Opened | Failed) or self._answer.done():
            return
        if not isinstance(message, BlockDone) or message.block == self._awaited:
            self._answer.set_result((message, time.perf_counter()))

    def lessen(self, less: Less) -> None:
        """From the next block on less is done with its pictures."""
        self._taking.less = less

    async def open(self, session: str, seed: int) -> None:
        """Begin a world. Raises UserError if it cannot be."""
        self._session = session
        self._answer = asyncio.get_running_loop().create_future()
        self.worker.take(Open(session=session, epoch=EPOCH, seed=seed))
        answer, _ = await self._answer
        if isinstance(answer, Failed):
            raise UserError(f"the world was not opened: {answer.message}")

    async def block(self, number: int, changes: tuple[KeyChange, ...]) -> float:
        """Play one block; return the ms from its list's arrival to its message on the link."""
        return await self.blocks(number, [changes])

    async def blocks(self, first: int, lists: Sequence[tuple[KeyChange, ...]]) -> float:
        """Play blocks whose lists are all here; return the ms from their arrival to the last message on the link."""
        self._answer, self._awaited = asyncio.get_running_loop().create_future(), first + len(lists) - 1
        messages = [
            Inputs(
                session=self._session,
                block=number,
                changes=tuple(Change(number=change.number, key=change.key, down=change.down) for change in changes),
            )
            for number, changes in enumerate(lists, first)
        ]
        begin = time.perf_counter()
        for message in messages:
            self.worker.take(message)
        done, ended = await self._answer
        if isinstance(done, BlockDone):
            self._last = done
        return (ended - begin) * 1000


@asynccontextmanager
async def worker_here(engine_name: str, threads: int, pictures: int | None = None) -> AsyncIterator[WorkerHere]:
    """Give a worker while inside. ``pictures``: how many threads are at its pictures; None: as its process has."""
    engine_thread, copy_thread = OneThread("engine"), OneThread("copy")
    taking = Lessened(PictureThreads(picture_threads() if pictures is None else pictures), ALL)
    ours, theirs = socketpair()
    reader, writer = await asyncio.open_unix_connection(sock=ours)
    # Who reads what the worker says is another process, as the server is.
    reading = await asyncio.create_subprocess_exec("cat", stdin=theirs.fileno(), stdout=asyncio.subprocess.DEVNULL)
    theirs.close()
    engine = await engine_thread(lambda: build_engine(engine_name, threads))
    warm = await engine_thread(lambda: warm_up(engine, time.perf_counter))
    sys.setswitchinterval(SWITCH_INTERVAL_S if engine.spec.device == "cpu" else DEVICE_SWITCH_INTERVAL_S)
    widen(writer)
    here = WorkerHere(engine, engine_thread, server_link(reader, writer), taking)
    edges = Edges(
        engine_thread=engine_thread,
        spare_thread=engine_thread,
        copy_thread=copy_thread,
        file_thread=copy_thread,
        transports={},
        send=here.send,
        clock=time.perf_counter,
        pid=os.getpid(),
        log=_no_log,
        on_fault=_fail,
        on_failure=_fail,
        on_shutdown=_no_log,
        taking=taking,
    )
    config = WorkerConfig(worker="worker-1", engine=engine_name, num_threads=threads)
    assembly = assemble(config, engine, warm, edges)
    here.attach(assembly.worker)
    try:
        yield here
    finally:
        await assembly.background.stop()
        writer.close()
        await reading.wait()  # it reads to the end
        engine_thread.close()
        copy_thread.close()
        taking.close()


def _no_log(*_: object, **__: object) -> None:
    return


def _fail(task: str, error: BaseException) -> None:
    raise RuntimeError(f"{task} failed") from error
