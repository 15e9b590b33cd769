"""The links between the server and its workers, as their contract has them.

The stream of a link is ordered: what travels in it may be late, all of it, and may be cut off with the connection that
it was sent over; it is never reordered, repeated, or lost in the middle. The messages of a move, the questions to the
ledger and the answers are specified to survive more, so they get more: each may be lost, repeated, and overtaken. None
overtakes the stream before it: what a worker says of its copies is known before what it asks for them.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from contextvars import Context
from typing import Any

import msgspec

from tests.simulation.loop import SimLoop
from tests.simulation.trace import Trace
from tests.simulation.weather import Weather
from worldmove.move.messages import MoveMessage, Proof
from worldmove.worker.messages import (
    Expect,
    Keep,
    Kept,
    LedgerAnswer,
    LedgerAsk,
    Replayed,
    Revive,
    SnapshotTaken,
    TakeOver,
    TakeSnapshot,
    ToServer,
    ToWorker,
)

LATENCY_S = (0.0005, 0.02)
TAIL_S = 2.0
BY_ITSELF = (MoveMessage, LedgerAsk, LedgerAnswer)
OF_PROTECTION = (Expect, TakeSnapshot, SnapshotTaken, Keep, Kept, Revive, TakeOver, Replayed)
"""Either end of a link may die of one: a snapshot is taken, travels, or is used."""

_ENCODER = msgspec.msgpack.Encoder()
DECODERS: dict[str, msgspec.msgpack.Decoder[Any]] = {
    "up": msgspec.msgpack.Decoder(ToServer),
    "down": msgspec.msgpack.Decoder(ToWorker),
}


class Direction:
    """One way of one connection."""

    def __init__(
        self, way: str, *, wire: "Wire", worker: str, context: Context, deliver: Callable[[Any], None]
    ) -> None:
        self.open = True
        self._wire = wire
        self._worker = worker
        self._context = context
        self._deliver = deliver
        self._decoder = DECODERS[way]
        self._way = way
        self._stream: deque[tuple[float, Any]] = deque()
        """Each message, and when it arrives."""
        self._free_at = 0.0
        self._latency = wire.weather.dice("latency")

    def send(self, message: Any) -> None:
        """Queue a message; never waits."""
        if not self.open:
            return
        wire = self._wire
        carried = self._decoder.decode(_ENCODER.encode(message))
        if isinstance(message, BY_ITSELF):
            wire.trace.add(self._way, worker=self._worker, **_said(message))
            if isinstance(message, MoveMessage):
                wire.on_move_message(message)
            self._send_by_itself(carried)
            return
        if isinstance(message, OF_PROTECTION):
            wire.trace.add(self._way, worker=self._worker, protection=type(message).__name__, session=message.session)
            wire.on_protection_message(self._worker)
        self._free_at = max(self._free_at, wire.loop.time() + self._latency.between(*LATENCY_S))
        self._stream.append((self._free_at, carried))
        wire.loop.call_at(self._free_at, self._next, context=self._context)

    def stall(self, seconds: float) -> None:
        """Nothing arrives for a while; then everything does, in order."""
        self._free_at = max(self._free_at, self._wire.loop.time() + seconds)

    def _send_by_itself(self, message: Any) -> None:
        weather, loop = self._wire.weather, self._wire.loop
        if weather.strikes("loss"):
            return
        if isinstance(message, Proof) and (dice := weather.strikes("wrong_digest")):
            message = msgspec.structs.replace(message, groups=_damaged(message.groups, dice.below(128)))
        num_times = 2 if weather.strikes("repeat") else 1
        for _ in range(num_times):
            late = weather.strikes("late")
            delay = late.between(0.0, TAIL_S) if late else self._latency.between(*LATENCY_S)
            loop.call_at(max(loop.time() + delay, self._free_at), self._arrive, message, context=self._context)

    def _next(self) -> None:
        """Deliver all that has arrived by now, in one turn of the event loop: whoever reads a stream takes it so."""
        while self.open and self._stream and self._stream[0][0] <= self._wire.loop.time():
            self._deliver(self._stream.popleft()[1])

    def _arrive(self, message: Any) -> None:
        if self.open:
            self._deliver(message)


class Connection:
    """Both ways of one connection between a worker and the server."""

    def __init__(self, up: Direction, down: Direction) -> None:
        self.up = up
        self.down = down
        self.noticed = asyncio.Event()
        """Set once the worker has noticed that it is cut. Its own: a worker that was paused may notice late, and how
        often an older connection was cut until then ends no newer one."""

    def cut(self) -> None:
        """What is on its way is lost, either way."""
        self.up.open = self.down.open = False


class SimLink:
    """The server's end of a worker's link, over whichever connection there is (a ``WorkerLink``)."""

    def __init__(self) -> None:
        self.connection: Connection | None = None

    def send(self, message: Any) -> None:
        if self.connection is not None:
            self.connection.down.send(message)

    def close(self) -> None:
        if self.connection is not None:
            self.connection.cut()


class Wire:
    """What every connection of a run shares."""

    def __init__(self, loop: SimLoop, weather: Weather, trace: Trace) -> None:
        self.loop = loop
        self.weather = weather
        self.trace = trace
        self.on_move_message: Callable[[Any], None] = lambda message: None
        self.on_protection_message: Callable[[str], None] = lambda worker: None


def _damaged(groups: bytes, bit: int) -> bytes:
    damaged = bytearray(groups)
    damaged[bit // 8] ^= 1 << bit % 8
    return bytes(damaged)


def _said(message: Any) -> dict[str, object]:
    if isinstance(message, LedgerAsk):
        operation = message.operation
        attempt = getattr(operation, "attempt", "")
        return {"ask": type(operation).__name__, "session": operation.session, "e": operation.epoch, "attempt": attempt}
    if isinstance(message, LedgerAnswer):
        answer = message.answer
        return {"answer": type(answer).__name__, "session": answer.session, "e": getattr(answer, "epoch", "")}
    fields = {"move": type(message).__name__, "session": message.session, "e": message.epoch}
    return {**fields, "attempt": message.attempt, "to": message.to, "outcome": getattr(message, "outcome", "")}
