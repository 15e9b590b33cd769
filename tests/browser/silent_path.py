"""A path to a server that can go silent without closing: what has been connected stays so, and nothing comes."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from urllib.parse import urlsplit


@dataclass(slots=True, kw_only=True)
class SilentPath:
    """The path. What was connected when it was silent, or meanwhile, carries nothing afterwards either."""

    url: str
    silent: bool = False
    num_in_vain: int = 0
    """Connections that were made while it was silent."""
    _ends: list[socket.socket] = field(default_factory=list)

    def hush(self) -> None:
        self.silent = True

    def speak(self) -> None:
        """Carry what is connected from now on."""
        self.silent = False

    def carry(self, client: socket.socket, server: tuple[str, int]) -> None:
        """Carry one connection both ways until it ends."""
        self._ends.append(client)
        if self.silent:
            self.num_in_vain += 1
            return
        other = socket.create_connection(server)
        self._ends.append(other)
        for here, there in ((client, other), (other, client)):
            threading.Thread(target=self._pump, args=(here, there), daemon=True).start()

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
