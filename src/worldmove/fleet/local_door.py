"""The edge at which workers of this machine come in: a unix socket in a private folder."""

import asyncio
import errno
import shutil
import socket
import tempfile
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from worldmove.errors import MessageError, UserError
from worldmove.fleet.other_versions import OtherVersions
from worldmove.worker.link import WorkerEnd, worker_end
from worldmove.worker.messages import Hello
from worldmove.worker.room import READ_BYTES, widen

SOCKET = "server.sock"
BACKLOG = 1024
"""Workers that wait at the doorstep; each comes again once nothing was said to it for a while."""
Log = Callable[[str, dict[str, object]], None]
Doorstep = socket.socket
"""A listening socket at which nobody is let in yet."""


@contextmanager
def doorstep(folder: Path) -> Iterator[Doorstep]:
    """Have the socket at which workers come in, before anybody is let in: they wait for that, however long it takes.

    Raises UserError where it cannot be had.
    """
    with _had_at(folder):
        step = _step_at(folder / SOCKET)
    try:
        yield step
    finally:
        step.close()


def _step_at(path: Path) -> Doorstep:
    _require_socket(path)
    path.unlink(missing_ok=True)
    step = socket.socket(socket.AF_UNIX)
    try:
        step.bind(str(path))
        path.chmod(0o600)
        step.listen(BACKLOG)
    except BaseException:
        step.close()
        raise
    return step


class LocalDoor:
    """One socket, and whoever connects to it and says who it is."""

    def __init__(
        self,
        *,
        folder: Path | None,
        hello_s: float,
        log: Log,
        serve: Callable[[WorkerEnd, Hello], Awaitable[None]],
        step: Doorstep | None = None,
    ) -> None:
        """``folder`` None: a private temporary one, removed at the end. ``serve`` lasts as long as a connection.

        ``step``: the ``doorstep`` of the folder, where there is one.
        """
        self._step = step
        self._folder = folder
        self._hello_s = hello_s
        self._log = log
        self._serve = serve
        self._others = OtherVersions(log)
        self._run_dir: Path | None = None
        self._server: asyncio.Server | None = None

    @property
    def run_dir(self) -> Path | None:
        """The folder of the socket; None while it is closed."""
        return self._run_dir

    async def open(self, alive: Iterable[str]) -> Path:
        """Let workers in, and return the socket's path. Idempotent. Raises UserError where it cannot be had.

        ``alive``: the names of the sockets of workers that live; those of the others are removed.
        """
        if self._run_dir is None:
            try:
                with _had_at(self._folder or Path(tempfile.gettempdir())):
                    # mkdtemp makes it 0700
                    self._run_dir = self._folder or Path(tempfile.mkdtemp(prefix="worldmove-"))
                    _sweep(self._run_dir, frozenset(alive))
                    step = self._step or _step_at(self._run_dir / SOCKET)
                    self._server = await asyncio.start_unix_server(
                        self._joined, sock=step, limit=READ_BYTES, backlog=BACKLOG
                    )
            except UserError:
                self.close()
                raise
        return self._run_dir / SOCKET

    def close(self) -> None:
        """Let nobody in any more; remove the folder. Idempotent."""
        if self._server is not None:
            self._server.close()
            self._server = None
            if self._run_dir is not None:
                (self._run_dir / SOCKET).unlink(missing_ok=True)
        if self._run_dir is not None:
            if self._folder is None:
                shutil.rmtree(self._run_dir, ignore_errors=True)
            self._run_dir = None

    async def _joined(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection, once it has said hello."""
        widen(writer)
        link = worker_end(reader, writer)
        try:
            async with asyncio.timeout(self._hello_s):
                hello = await link.take()
            if isinstance(hello, Hello):
                self._others.came(hello)
                await self._serve(link, hello)
        except MessageError as error:
            self._others.is_not_understood(link.not_ours)
            self._log("link_broken", {"why": str(error)})
        except TimeoutError:
            self._log("link_broken", {"why": f"no hello within {self._hello_s:g} s"})
        finally:
            link.close()


@contextmanager
def _had_at(where: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        why = f"Workers cannot be let in at {where} ({_said(error)}): use another --state folder."
        raise UserError(why, code="state_unusable", status=503) from error


def _require_socket(path: Path) -> None:
    """Raise FileExistsError where something else has its name. A socket that a server has left makes way."""
    if path.exists() and not path.is_socket():
        raise FileExistsError(errno.EEXIST, "something else has the socket's name", str(path))


def _said(error: OSError) -> str:
    return f"{error.filename}: {error.strerror}" if error.filename else str(error.strerror or error)


def _sweep(folder: Path, alive: frozenset[str]) -> None:
    """Remove the sockets of workers that are proven dead."""
    for path in sorted(folder.glob("*-*.sock")):
        if path.name not in alive:
            path.unlink(missing_ok=True)
