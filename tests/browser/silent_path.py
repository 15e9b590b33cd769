"""A path to a server that can go silent without closing: what has been connected stays so, and nothing comes."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import BinaryIO
from urllib.parse import urlsplit


@dataclass(slots=True, kw_only=True)
class SilentPath:
    """The path. What was connected when it was silent, or meanwhile, carries nothing afterwards either."""

    url: str
    silent: bool = False
    narrow: bool = False
    """What connects from now on comes to no picture: it carries words, up to the first frame of bytes."""
    num_in_vain: int = 0
    """Connections that were made while it was silent."""
    _ends: list[socket.socket] = field(default_factory=list)

    def hush(self) -> None:
        self.silent = True

    def speak(self) -> None:
        """Carry what is connected from now on."""
        self.silent = False

    def hang_up(self) -> None:
        """End what is connected."""
        for end in self._ends:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def widen(self) -> None:
        """Carry all of what connects from now on."""
        self.narrow = False

    def carry(self, client: socket.socket, server: tuple[str, int]) -> None:
        """Carry one connection both ways until it ends."""
        self._ends.append(client)
        if self.silent:
            self.num_in_vain += 1
            return
        other = socket.create_connection(server)
        self._ends.append(other)
        threading.Thread(target=self._pump, args=(client, other), daemon=True).start()
        threading.Thread(target=self._pump_back, args=(other, client, self.narrow), daemon=True).start()

    def _pump_back(self, server: socket.socket, client: socket.socket, is_narrow: bool) -> None:
        if is_narrow:
            with suppress(OSError), server.makefile("rb") as come:
                if not _words(come, client):
                    return
        self._pump(server, client)

    def _pump(self, here: socket.socket, there: socket.socket) -> None:
        with suppress(OSError):
            while came := here.recv(65536):
                if self.silent:
                    return
                there.sendall(came)
            there.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        for end in self._ends:
            end.close()


def _words(come: BinaryIO, client: socket.socket) -> bool:
    """Carry an answer's head, and of a WebSocket the words until a picture; say whether it is no WebSocket."""
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        if not (line := come.readline()):
            return False
        head += line
    client.sendall(head)
    if not head.startswith(b"HTTP/1.1 101"):
        client.sendall(come.read1(1 << 20))  # type: ignore[attr-defined]
        return True
    while (start := come.read(2)) and start[0] & 0x0F == 1:
        size = {126: 2, 127: 8}.get(start[1], 0)
        length = come.read(size)
        client.sendall(start + length + come.read(int.from_bytes(length, "big") if size else start[1]))
    return False


@contextmanager
def silent_path(to: str) -> Iterator[SilentPath]:
    """Give a path to the server at this address."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        path = SilentPath(url=f"http://127.0.0.1:{listening.getsockname()[1]}")
        parts = urlsplit(to)
        server = (str(parts.hostname), int(parts.port or 80))

        def take() -> None:
            with suppress(OSError):
                while True:
                    path.carry(listening.accept()[0], server)

        thread = threading.Thread(target=take, daemon=True)
        thread.start()
        try:
            yield path
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            thread.join()
            path.close()
