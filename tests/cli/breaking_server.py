"""A server that takes one request whole, and whose answer breaks."""

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

RESET = struct.pack("ii", 1, 0)
"""Lingering for no time: what is left is thrown away, and the other end hears a reset."""


@dataclass(slots=True, kw_only=True)
class Breaking:
    """Where it listens, and what has come whole."""

    url: str
    taken: list[str] = field(default_factory=list)
    """The first line of each request."""


@contextmanager
def breaking(
    answer: bytes, *, reset: bool = False, taken: Callable[[], None] = lambda: None, takes_all: bool = True
) -> Iterator[Breaking]:
    """Answer everything with these bytes and nothing more. ``taken`` is called when a request is here whole."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = Breaking(url=f"http://127.0.0.1:{listening.getsockname()[1]}")

        def serve() -> None:
            while True:
                try:
                    connection = listening.accept()[0]
                except OSError:
                    return
                with connection:
                    server.taken += [_request(connection)] if takes_all else []
                    taken()
                    connection.sendall(answer)
                    if reset:
                        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield server
        listening.shutdown(socket.SHUT_RDWR)
        thread.join()


def _request(connection: socket.socket) -> str:
    """Read a request to its end; return its first line."""
    came = b""
    while b"\r\n\r\n" not in came:
        came += connection.recv(65536)
    head, _, body = came.partition(b"\r\n\r\n")
    lengths = [line.split(b":")[1] for line in head.splitlines() if line.lower().startswith(b"content-length")]
    left = int(lengths[0]) - len(body) if lengths else 0
    while left > 0:
        left -= len(connection.recv(left))
    return head.splitlines()[0].decode()
