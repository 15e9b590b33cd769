"""A listening socket, and a task for each who connects: what the source's end of every path over a socket does."""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

from worldmove.errors import TransportError
from worldmove.transport.shortage import AT_ITS_LIMIT, SpareDescriptor

MAX_WAITING = 512
"""To be accepted: whoever may ask stands among them behind as many who only may connect."""
CUT_S = 0.001
"""Between two strangers that are cut: those who come again at once take a part of the loop so, and not all of it."""
FULL_S = 0.05
ASKED_S = 0.5
"""How long an asker may take for its first words, where none can be served."""
MAX_ASKED = 4096
MAX_PATH = 100
"""Characters in a unix socket's name; the system's own limit is 107."""


def check_path(path: Path) -> None:
    """Raise TransportError for a name that is too long for a socket."""
    if len(str(path)) > MAX_PATH:
        raise TransportError(f"a socket's name has at most {MAX_PATH} characters: {path}")


class Listening:
    """Hands each connection to ``answer``, at most ``max_askers`` at a time; who comes beyond is turned away at once.

    Unless one of those is a stranger: whoever can reach the socket may connect and say nothing, so the one that has
    been here for longest gives its place up. ``answer`` serves one connection and raises nothing; it says by its second
    argument that this is none. It is cancelled when this closes, or for want of places, and its connection closed.
    Where the process may open no more files, each hears ``full`` instead, over a descriptor that is kept for that.
    """

    def __init__(
        self, answer: Callable[[socket.socket, Callable[[], None]], Awaitable[None]], *, max_askers: int, full: bytes
    ) -> None:
        self._answer = answer
        self._max_askers = max_askers
        self._full = full
        self._spare = SpareDescriptor()
        self._listener: socket.socket | None = None
        self._accepting: asyncio.Task[None] | None = None
        self._num_askers = 0
        self._strangers: dict[socket.socket, asyncio.Task[None]] = {}
        """In the order of their coming."""
        self._path: Path | None = None

    @property
    def is_listening(self) -> bool:
        """Whether anybody can connect."""
        return self._listener is not None

    @property
    def address(self) -> tuple[str, int] | None:
        """The host and port of a socket of TCP, or None while it does not listen."""
        return None if self._listener is None else self._listener.getsockname()[:2]

    def start_unix(self, path: Path) -> None:
        """Listen at a unix socket that is its user's alone. Raises TransportError."""
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)

        def bind() -> None:
            path.unlink(missing_ok=True)  # of a process that was killed
            listener.bind(str(path))
            path.chmod(0o600)

        self._start(listener, bind, str(path))
        self._path = path

    def start_tcp(self, host: str, port: int) -> None:
        """Listen at a numeric address; port 0: any free one. Raises TransportError."""
        listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)

        def bind() -> None:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind((host, port))

        self._start(listener, bind, f"{host} port {port}")

    def _start(self, listener: socket.socket, bind: Callable[[], None], where: str) -> None:
        listener.settimeout(0)
        try:
            bind()
            listener.listen(MAX_WAITING)
        except OSError as error:
            listener.close()
            raise TransportError(f"{where} cannot be listened at: {error}") from error
        self._listener = listener
        self._spare.take()
        self._accepting = asyncio.create_task(self._accept(listener))

    async def close(self) -> None:
        """Listen no more, and end every connection. Idempotent."""
        if self._accepting is not None:
            self._accepting.cancel()
            await asyncio.gather(self._accepting, return_exceptions=True)
            self._accepting = None
        if self._listener is not None:
            self._listener.close()
            self._listener = None
            self._spare.release()
        if self._path is not None:
            self._path.unlink(missing_ok=True)
            self._path = None

    async def _accept(self, listener: socket.socket) -> None:
        async with asyncio.TaskGroup() as askers:
            while True:
                try:
                    asker, _ = await asyncio.get_running_loop().sock_accept(listener)
                except OSError as error:
                    if error.errno in AT_ITS_LIMIT:
                        await self._turn_away(listener)
                    await asyncio.sleep(FULL_S)  # some will be closed
                    continue
                if self._num_askers < self._max_askers:
                    self._begin(asker, askers)
                elif self._strangers:
                    self._cut_oldest()
                    self._begin(asker, askers)
                    await asyncio.sleep(CUT_S)
                else:
                    asker.close()

    def _begin(self, asker: socket.socket, askers: asyncio.TaskGroup) -> None:
        asker.settimeout(0)
        self._num_askers += 1
        serving = askers.create_task(self._serve(asker))
        self._strangers[asker] = serving
        # By a callback: one that is cut before its first step runs none of its own code.
        serving.add_done_callback(lambda _: self._end(asker))

    def _cut_oldest(self) -> None:
        oldest = next(iter(self._strangers))
        self._strangers.pop(oldest).cancel()

    def _end(self, asker: socket.socket) -> None:
        self._strangers.pop(asker, None)
        self._num_askers -= 1
        asker.close()

    async def _turn_away(self, listener: socket.socket) -> None:
        """Tell the next asker that nobody can be served: silence would be waited for."""
        self._spare.release()
        try:
            with listener.accept()[0] as asker, suppress(TimeoutError):
                asker.settimeout(0)
                async with asyncio.timeout(ASKED_S):
                    await asyncio.get_running_loop().sock_recv(asker, MAX_ASKED)  # unread, it would break the answer
                    asker.send(self._full)
        except OSError:
            return  # it has gone, or somebody else has taken the descriptor
        finally:
            self._spare.take()

    async def _serve(self, asker: socket.socket) -> None:
        await self._answer(asker, lambda: self._know(asker))

    def _know(self, asker: socket.socket) -> None:
        self._strangers.pop(asker, None)
