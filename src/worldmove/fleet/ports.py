"""What the controller and the gateway of one server ask of each other, and of the processes they run.

The controller knows workers, attempts and the ledger; the gateway knows players, inputs and frames. Both
live in one event loop; each call here returns at once.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from worldmove.worker.messages import BlockDone, CheckDone, Failed, Freed, Opened, ToServer, ToWorker


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """Who plays a session, as the ledger's row says."""

    worker: str
    incarnation: int
    epoch: int


class Gateway(Protocol):
    """What the controller asks of the gateway."""

    def take(self, worker: str, message: BlockDone | CheckDone | Opened | Failed | Freed) -> None:
        """Take a worker's message about a session's play."""
        ...

    def owned(self, session: str, owner: Owner) -> None:
        """The ledger's row now names this owner: send it the inputs from the next block on."""
        ...

    def holders(self, session: str, workers: Sequence[str]) -> None:
        """These workers hold a copy that still needs the session's inputs (owner, retired, promised)."""
        ...

    def close_epoch(self, session: str, epoch: int) -> None:
        """From now on show no frame of this epoch or an older one (before an unfrozen owner is replaced)."""
        ...

    def next_block(self, session: str) -> int | None:
        """The next block to be shown. None while it is not known (after a restart)."""
        ...

    def log_reaches(self, session: str) -> int:
        """The first block whose input list is not closed."""
        ...

    def horizon_s(self, session: str) -> float | None:
        """Seconds from a block's arrival to the next block's due time less its compute time; None if unknown."""
        ...

    def moving(self, session: str, event: str, fields: dict[str, object]) -> None:
        """Tell who watches what a move is doing (``phase``, ``result``)."""
        ...

    def lost(self, session: str, why: str) -> None:
        """No copy is left."""
        ...


class WorkerLink(Protocol):
    """The server's end of one worker's link."""

    def send(self, message: ToWorker) -> None:
        """Queue a message; never waits. A dead link drops it."""
        ...

    def close(self) -> None: ...


class WorkerProcess(Protocol):
    """A worker's process, as its host sees it."""

    @property
    def pid(self) -> int: ...

    async def ended(self) -> int:
        """Return its exit status once it is proven dead."""
        ...

    def terminate(self) -> None: ...

    def kill(self) -> None: ...


class Hosts(Protocol):
    """Starts worker processes somewhere. ``on_message`` gets what a worker sends, ``on_gone`` its death."""

    async def start(
        self,
        worker: str,
        incarnation: int,
        on_message: Callable[[ToServer], None],
        on_gone: Callable[[int], None],
    ) -> tuple[WorkerProcess, WorkerLink]: ...

    async def close(self) -> None: ...
