"""The edge that answers HTTP on a port of this machine: bind, serve, end."""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace

import uvicorn
from starlette.types import ASGIApp

from worldmove.errors import UserError
from worldmove.serve.descriptors import AT_ONCE, for_clients
from worldmove.serve.guard import Guard
from worldmove.serve.guarded_http import http_of
from worldmove.serve.guarded_play import play_of
from worldmove.serve.limits import HttpLimits

GRACE_S = 2
"""How long connections may take to close at the end."""


@contextmanager
def bound(host: str, port: int) -> Iterator[socket.socket]:
    """Listen while inside; port 0 is any free one. Raises UserError, with what to do, where that cannot be."""
    try:
        listening = _listen(host, port)
    except socket.gaierror as error:
        why = f"There is no host {host}; use --host 127.0.0.1 for this machine alone."
        raise UserError(why, code="unknown_host") from error
    except OSError as error:
        why = f"Port {port} at {host} cannot be used ({error.strerror}); choose another with --port."
        raise UserError(why, code="port_taken", status=409) from error
    try:
        yield listening
    finally:
        listening.close()


def _listen(host: str, port: int) -> socket.socket:
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    listening = socket.socket(family, kind, protocol)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(128)
        listening.settimeout(0)
    except OSError:
        listening.close()
        raise
    return listening


def url_of(listening: socket.socket) -> str:
    """Return the address of what answers there."""
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


@asynccontextmanager
async def answering(
    app: ASGIApp,
    listening: socket.socket,
    *,
    farewell: Callable[[], Awaitable[None]],
    limits: HttpLimits | None = None,
    on_refused: Callable[[str], None] = lambda why: None,
) -> AsyncIterator[None]:
    """Answer HTTP and WebSockets on a bound socket while inside; say farewell before the connections end.

    ``on_refused`` hears each time that a client reaches a limit, and which.
    """
    limits = limits or HttpLimits()
    limits = replace(limits, max_connections=for_clients(limits.max_connections))
    guard = Guard(limits, on_refused)
    http = _Http(
        uvicorn.Config(
            app,
            http=http_of(guard),
            h11_max_incomplete_event_size=limits.max_head_bytes,
            ws=play_of(guard),
            # Frames hardly shrink, and zlib would run on the gateway's loop.
            ws_per_message_deflate=False,
            ws_max_size=limits.max_message_bytes,
            log_config=None,
            access_log=False,
            server_header=False,
            lifespan="off",
            backlog=AT_ONCE,
            timeout_graceful_shutdown=GRACE_S,
        )
    )
    serving = asyncio.create_task(http.serve(sockets=[listening]))
    try:
        yield
    finally:
        await farewell()
        http.should_exit = True
        await serving


class _Http(uvicorn.Server):
    """Uvicorn without its own handling of signals: the server ends in its own order."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield
