"""What the controller asks of whoever runs worker processes: their ends are proven, their links are ordered."""

from collections.abc import Callable
from typing import Protocol

from worldmove.worker.messages import ToServer, ToWorker


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

    async def ended(self) -> int | None:
        """Return its exit status once it is proven dead; None where another server started it."""
        ...

    def terminate(self) -> None: ...

    def kill(self) -> None: ...


class Hosts(Protocol):
    """Starts worker processes somewhere. ``on_message`` gets what a worker sends, ``on_gone`` its death.

    What a worker sends is one ordered stream: each message once, in the order in which it was sent, or not at all. What
    was not handed over before the hello of a new link is cut off with the old one, never handed over after it. So what
    a worker says that it holds is never older than what it has said or asked before. After a death some of what was
    sent before it may still come.

    The status that ``on_gone`` gets is None where another server started the process.
    """

    async def start(
        self,
        worker: str,
        incarnation: int,
        on_message: Callable[[ToServer], None],
        on_gone: Callable[[int | None], None],
    ) -> tuple[WorkerProcess, WorkerLink]: ...

    def adopt(
        self,
        worker: str,
        incarnation: int,
        pid: int,
        birth: str,
        on_message: Callable[[ToServer], None],
        on_gone: Callable[[int | None], None],
    ) -> tuple[WorkerProcess, WorkerLink] | None:
        """Take over a worker that an earlier server started; None if it is proven dead. It says hello by itself.

        Called for all of them before ``listen``: whoever then says hello and is not known here is told to end.
        """
        ...

    async def listen(self) -> None:
        """Let workers say hello. Idempotent; ``start`` does it by itself."""
        ...

    async def close(self) -> None: ...
