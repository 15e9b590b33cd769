"""A server without processes: workers are names in a table, and what they are sent is kept."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from worldmove.fleet.desk import LedgerDesk
from worldmove.fleet.ledger_memory import MemoryLedger
from worldmove.fleet.ports import Owner
from worldmove.fleet.worker_table import WorkerTable
from worldmove.move.ledger_row import Row
from worldmove.worker.messages import Copies, Copy, Hello, ToWorker

ENVIRONMENT = {"engine.name": "none", "torch": "2.13.0"}
RATES = {"shm_bytes_per_s": 1e9, "hash_bytes_per_s": 1e9, "block_s": 0.01}


class SilentGateway:
    """A gateway that only remembers what it was told."""

    def __init__(self) -> None:
        self.block: int | None = 5
        self.reaches: int | None = 9
        self.stalled: tuple[str, ...] = ()
        self.told: list[tuple[str, object]] = []

    def take(self, worker: str, message: object) -> None:
        self.told.append(("take", message))

    def owned(self, session: str, owner: Owner) -> None:
        self.told.append(("owned", owner))

    def holders(self, session: str, workers: object) -> None:
        self.told.append(("holders", workers))

    def linked_again(self, session: str, worker: str, block: int) -> None:
        self.told.append(("linked_again", (worker, block)))

    def close_epoch(self, session: str, epoch: int) -> None:
        self.told.append(("close_epoch", epoch))

    def resume(self, session: str, opened: object, forks: tuple[int, ...] = ()) -> None:
        self.told.append(("resume", opened))
        self.told.append(("forks", forks))

    def held(self, session: str, block: int, changes: object) -> None:
        self.told.append(("held", block))

    def left(self, session: str, before: int, computed: int, *, sends: bool) -> None:
        self.told.append(("left", (before, computed, sends)))

    def may_show(self, session: str, *, owner_lives: bool) -> None:
        self.told.append(("may_show", owner_lives))

    def may_close(self, session: str) -> None:
        self.told.append(("may_close", session))

    def open_epoch(self, session: str, epoch: int) -> None:
        self.told.append(("open_epoch", epoch))

    def next_block(self, session: str) -> int | None:
        return self.block

    def first_difference(self, session: str, attempt: str) -> int | None:
        return None

    def log_reaches(self, session: str, first: int = 0) -> int | None:
        return self.reaches

    def horizon_s(self, session: str) -> float | None:
        return 1.0

    def is_stalled(self, session: str) -> bool | None:
        return session in self.stalled

    def moving(self, session: str, event: str, fields: dict[str, object]) -> None:
        self.told.append((event, fields))

    def failed_over(self, session: str, report: object) -> None:
        self.told.append(("failed_over", report))

    def lost(self, session: str, why: str) -> None:
        self.told.append(("lost", why))


@dataclass(slots=True)
class Wire:
    """A worker's link: what is sent is kept, and answered by ``react``."""

    sent: list[Any] = field(default_factory=list)
    react: Callable[[Any], None] = lambda message: None

    def send(self, message: ToWorker) -> None:
        self.sent.append(message)
        asyncio.get_running_loop().call_soon(self.react, message)

    def close(self) -> None: ...

    def of(self, kind: type[Any]) -> list[Any]:
        return [message for message in self.sent if isinstance(message, kind)]


@dataclass(slots=True, kw_only=True)
class Server:
    """Workers, their links, the ledger's desk."""

    workers: WorkerTable
    wires: dict[str, Wire]
    desk: LedgerDesk
    gateway: SilentGateway
    rows: list[Row] = field(default_factory=list)

    def holds(self, worker: str, *copies: Copy, poll: int = 0) -> None:
        """A worker reports what it holds."""
        incarnation = self.workers.get(worker).incarnation
        report = Copies(
            worker=worker,
            incarnation=incarnation,
            copies=copies,
            slots_free=3 - len(copies),
            slots_quarantined=0,
            poll=poll,
        )
        self.workers.report(report)

    def dies(self, worker: str) -> None:
        self.workers.gone(worker, self.workers.get(worker).incarnation)


def copy_of(session: str, phase: str, block: int = 5, epoch: int = 1) -> Copy:
    return Copy(session=session, phase=phase, epoch=epoch, block=block)


async def server_of(*names: str, owner: str = "a") -> Server:
    """Return a server whose workers are ready, with one session ``s`` that ``owner`` plays in epoch 1."""
    workers, rows = WorkerTable(names), []  # type: tuple[WorkerTable, list[Row]]
    wires = {name: Wire() for name in names}
    for name in names:
        record = workers.begin(name)
        record.link = wires[name]
        workers.hello(
            Hello(
                worker=name,
                incarnation=record.incarnation,
                pid=1,
                environment=dict(ENVIRONMENT),
                num_slots=3,
                arena_bytes=1 << 20,
                copies=(),
                rates=dict(RATES),
            )
        )
        workers.ready_now(record)
    gateway = SilentGateway()
    desk = LedgerDesk(
        ledger=MemoryLedger(),
        workers=workers,
        on_row=lambda old, new: rows.append(new),
        on_error=lambda session, error: None,
    )
    desk.attach(gateway)
    await desk.create(Row(session="s", owner=owner, incarnation=1, epoch=1))
    return Server(workers=workers, wires=wires, desk=desk, gateway=gateway, rows=rows)
