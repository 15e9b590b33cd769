"""The two halves of a staged pull, each in a thread of its own process: out of a device, and into the other.

    source       device -> buffer, the next one is under way while this one is told of
    destination  buffer -> device, the next one is under way while this one is given back

A link carries both ways at once, so both together take little longer than one. Neither holds Python's lock for more
than some tens of microseconds a load: they order copies, and wait for the device or for a word of the other end.
"""

from collections import deque
from collections.abc import Iterable, Sequence
from contextlib import suppress

from worldmove.errors import TransportError
from worldmove.state.device_arena import DeviceArena
from worldmove.state.device_window import DeviceWindow, joined
from worldmove.state.extent import Extent
from worldmove.state.memory import PendingCopy, Piece
from worldmove.transport.ring import Load, Ring, loads
from worldmove.transport.staged_line import Line
from worldmove.transport.tcp_words import requests

AHEAD = 1
"""Copies that are under way behind the one that is waited for: a device that has no next order stands idle."""


def serve(line: Line, ring: Ring, arena: DeviceArena) -> None:
    """Bring into the ring whatever is asked for of a slot, until the other end has gone. Raises TransportError.

    However it ends, nothing of it writes to the ring any more.
    """
    try:
        while (runs := line.asked(arena.size)) is not None:
            _Out(line, ring, arena).bring(runs)
    except TransportError as error:
        line.fail(str(error))
        raise


class _Out:
    """One request, at its source."""

    def __init__(self, line: Line, ring: Ring, arena: DeviceArena) -> None:
        self._line = line
        self._ring = ring
        self._arena = arena
        self._under_way: deque[PendingCopy] = deque()
        self._num_started = self._num_told = self._num_emptied = 0

    def bring(self, runs: Sequence[Extent]) -> None:
        """Fill buffer after buffer, as the other end empties them."""
        try:
            for load in loads(runs, self._ring.shape.buffer_bytes):
                if self._num_started - self._num_emptied == self._ring.shape.num_buffers:
                    self._tell_all(but=0)  # else both ends might wait for each other
                    self._hear()
                self._start(load)
                self._tell_all(but=AHEAD)
            self._tell_all(but=0)
            while self._num_emptied < self._num_started:
                self._hear()
        finally:
            settle(self._under_way)

    def _start(self, load: Load) -> None:
        number, begin = self._num_started, self._arena.address
        pieces = [Piece(begin + run.offset, self._ring.at(number, place), run.length) for place, run in load]
        self._under_way.append(self._arena.kit.start_copy_out(pieces))
        self._num_started += 1

    def _tell_all(self, *, but: int) -> None:
        while len(self._under_way) > but:
            self._under_way[0].wait()
            self._under_way.popleft()
            self._line.tell(self._num_told)
            self._num_told += 1

    def _hear(self) -> None:
        self._line.hear(self._num_emptied)
        self._num_emptied += 1


def draw(line: Line, ring: Ring, extents: Sequence[Extent], into: DeviceWindow) -> None:
    """Ask for extents, and bring them out of the ring to the same offsets of ``into``. Raises TransportError.

    However it ends, nothing of it writes any more.
    """
    for request, runs in requests(joined(extents)):
        line.ask(request)
        _draw(line, ring, runs, into)


def _draw(line: Line, ring: Ring, runs: Sequence[Extent], into: DeviceWindow) -> None:
    under_way: deque[PendingCopy] = deque()
    num_emptied = 0
    try:
        for number, load in enumerate(loads(runs, ring.shape.buffer_bytes)):
            line.hear(number)
            under_way.append(into.start_copy_in([(ring.at(number, place), run) for place, run in load]))
            if len(under_way) > AHEAD:
                num_emptied = _give_back(line, under_way, num_emptied)
        while under_way:
            num_emptied = _give_back(line, under_way, num_emptied)
    finally:
        settle(under_way)


def _give_back(line: Line, under_way: deque[PendingCopy], number: int) -> int:
    under_way[0].wait()
    under_way.popleft()
    line.tell(number)
    return number + 1


def settle(copies: Iterable[PendingCopy]) -> None:
    """Wait until none of some copies is under way any more; one that has failed is not."""
    for copy in copies:
        with suppress(TransportError):
            copy.wait()
