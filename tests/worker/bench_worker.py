"""One worker in this very process, its threads inline, its link a list."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from tests.worker.counting import CountingEngine
from worldmove.engine.base import Engine
from worldmove.state.arena import AnyArena
from worldmove.worker.assemble import Edges, assemble
from worldmove.worker.background import Background
from worldmove.worker.config import WorkerConfig
from worldmove.worker.messages import BlockDone, Change, CheckDone, Copies, Inputs
from worldmove.worker.pictures import taken
from worldmove.worker.warm_up import WarmUp
from worldmove.worker.worker import Worker

T = TypeVar("T")


async def inline(function: Callable[[], T]) -> T:
    """A Blocking that lets others have a turn, and then does not block."""
    await asyncio.sleep(0)
    return function()


@dataclass(slots=True, kw_only=True)
class Bench:
    """A worker, and everything that it has sent."""

    worker: Worker
    engine: Any
    background: Background
    arenas: Sequence[AnyArena]
    sent: list[Any] = field(default_factory=list)
    failures: list[BaseException] = field(default_factory=list)

    def of(self, kind: type[T]) -> list[T]:
        """Return what was sent of one kind, in order."""
        return [message for message in self.sent if isinstance(message, kind)]

    def blocks(self) -> list[int]:
        return [message.block for message in self.of(BlockDone)]

    def checks(self) -> list[int]:
        return [message.block for message in self.of(CheckDone)]

    def copies(self) -> Copies:
        return self.of(Copies)[-1]

    def inputs(self, *blocks: int, session: str = "s-1") -> None:
        """Give a session the lists of some blocks: one change in every other."""
        for block in blocks:
            changes = tuple(Change(number=block, key="up", down=True) for _ in range(block % 2))
            self.worker.take(Inputs(session=session, block=block, changes=changes))

    async def rest(self) -> None:
        """Let the time pass after which nobody seems to play here, once for each spare block."""
        for _ in range(4):
            await asyncio.sleep(1.5 * self.engine.spec.period_s)
            await self.settle()

    async def settle(self) -> None:
        """Let everything run that can run."""
        for _ in range(200):
            await asyncio.sleep(0)
        assert self.failures == []


def bench(engine: Engine[Any] | None = None, *, num_slots: int = 2, check_blocks: int = 2, **host: Any) -> Bench:
    """Put a worker together. Call it inside an event loop."""
    engine = engine or CountingEngine()
    sent: list[Any] = []
    failures: list[BaseException] = []
    edges = Edges(
        engine_thread=host.get("engine_thread", inline),
        spare_thread=host.get("engine_thread", inline),
        copy_thread=host.get("copy_thread", inline),
        file_thread=host.get("file_thread", inline),
        transports=host.get("transports", {}),
        send=host.get("send", sent.append),
        clock=lambda: 0.0,
        pid=1,
        log=lambda event, **fields: None,
        on_failure=lambda task, error: failures.append(error),
        on_fault=host.get("on_fault", lambda task, error: failures.append(error)),
        on_shutdown=host.get("on_shutdown", lambda: None),
        taking=host.get("taking", taken),
    )
    config = WorkerConfig(
        engine="none",
        worker=host.get("worker", "w-1"),
        incarnation=1,
        num_slots=num_slots,
        arena_bytes=host.get("slot_bytes", 0),
        check_blocks=check_blocks,
    )
    warm = WarmUp(
        environment=host.get("environment", {"field": "value"}),
        rates={"block_s": 0.01},
        arena_bytes=host.get("arena_bytes", 1 << 14),
    )
    made = assemble(config, engine, warm, edges)
    return Bench(
        worker=made.worker,
        engine=engine,
        background=made.background,
        arenas=made.arenas,
        sent=sent,
        failures=failures,
    )
