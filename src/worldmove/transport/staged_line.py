"""What the two ends of a staged path say to each other once they are connected, as a thread says and hears it.

destination  a request   how many runs, then each one's offset and length (``tcp_words``)
source       a number    the load of that number, from 0, lies in its buffer
destination  a number    the load of that number is out of its buffer, which may be filled again
source       FAILED, and why in a few words: it cannot go on

Each is one message. No loop is in it: while a session stands still nothing waits for what else a loop does.
"""

import select
import socket

from worldmove.errors import TransportError
from worldmove.state.extent import Extent
from worldmove.transport.tcp_words import MAX_RUNS, NUMBER_BYTES, RUN_BYTES, num_runs_of, number, number_of, runs_of

FAILED = number((1 << 64) - 1)
MAX_WHY = 200
"""Characters."""
REQUEST_BYTES = NUMBER_BYTES + MAX_RUNS * RUN_BYTES


class Line:
    """A connection of messages. Whoever shuts it down wakes the thread that waits on it."""

    def __init__(self, connection: socket.socket, stall_s: float) -> None:
        """``stall_s``: how long the other end may take to go on."""
        self._connection = connection
        self._stall_s = stall_s
        self._readable = select.poll()
        self._readable.register(connection, select.POLLIN)

    def ask(self, request: bytes) -> None:
        """Send a request. Raises TransportError."""
        self._send(request)

    def asked(self, size: int) -> list[Extent] | None:
        """Wait for a request, for as long as it takes; return its runs, or None where the other end has gone.

        Raises TransportError for a run that is not inside ``size`` bytes, and for what is no request.
        """
        self._readable.poll()
        words = self._receive(REQUEST_BYTES + 1)
        if not words:
            return None
        if len(words) < NUMBER_BYTES:
            raise TransportError("the other end asks for nothing that is known")
        num_runs = num_runs_of(words[:NUMBER_BYTES])
        if len(words) != NUMBER_BYTES + num_runs * RUN_BYTES:
            raise TransportError("a request is longer or shorter than it says")
        return runs_of(words[NUMBER_BYTES:], size)

    def tell(self, load: int) -> None:
        """Say that a load has come as far as this end brings it. Raises TransportError."""
        self._send(number(load))

    def fail(self, why: str) -> None:
        """Say that this end cannot go on. Raises TransportError."""
        self._send(FAILED + why.encode("ascii", "replace")[:MAX_WHY])

    def hear(self, load: int) -> None:
        """Wait until the other end says so of the next load. Raises TransportError if it says anything else, or not."""
        if not self._readable.poll(self._stall_s * 1000):
            raise TransportError(f"the other end said nothing for {self._stall_s:g} s")
        words = self._receive(NUMBER_BYTES + MAX_WHY)
        if not words:
            raise TransportError("the other end closed the connection")
        if words.startswith(FAILED):
            raise TransportError(f"the other end cannot go on: {words[NUMBER_BYTES:].decode('ascii', 'replace')}")
        if len(words) != NUMBER_BYTES or number_of(words) != load:
            raise TransportError(f"the other end should speak of load {load}")

    def _send(self, words: bytes) -> None:
        try:
            self._connection.send(words)
        except OSError as error:  # one that would block, too: the other end does not hear what it asked for
            raise TransportError(f"the connection broke: {error}") from error

    def _receive(self, most: int) -> bytes:
        try:
            return self._connection.recv(most)
        except OSError as error:
            raise TransportError(f"the connection broke: {error}") from error


def shut(connection: socket.socket) -> None:
    """Wake whoever waits on a connection: it has ended."""
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        return  # it had ended already
