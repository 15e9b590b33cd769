"""Listens at the gateway's door: when each block came, and when it was due."""

import asyncio
from dataclasses import dataclass
from typing import Any

from worldmove.fleet.ports import Gateway as GatewayPort
from worldmove.serve.gateway import Gateway
from worldmove.worker.messages import BlockDone, CheckDone, Failed, Freed, Opened


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """One block at the gateway. ``margin_s``: from its arrival to its due time, negative if late; None: not due."""

    worker: str
    block: int
    epoch: int
    arrived: float
    margin_s: float | None
    compute_s: float
    frames: tuple[str, ...]
    """SHA-256 of each frame, as its worker took it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """One block that a retired copy stepped from the input log alone."""

    block: int
    frames: tuple[str, ...]
    state_digest: str


class Tap:
    """Passes everything on to a gateway, and notes each block first (a ``fleet.ports.Gateway``)."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._arrivals: dict[str, dict[tuple[int, int], Arrival]] = {}
        self._checks: dict[str, list[Checked]] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._gateway, name)

    def take(self, worker: str, message: BlockDone | CheckDone | Opened | Failed | Freed) -> None:
        """Note a check, or a block's arrival: the first counts, since it is sent again until it is acknowledged."""
        if isinstance(message, CheckDone):
            frames = tuple(digest.hex() for digest in message.frame_sha256)
            checked = Checked(block=message.block, frames=frames, state_digest=message.state_digest)
            self._checks.setdefault(message.session, []).append(checked)
        if isinstance(message, BlockDone) and message.session in self._gateway.lives:
            arrival = self._arrival(worker, message)
            self._arrivals.setdefault(message.session, {}).setdefault((message.block, message.epoch), arrival)
        self._gateway.take(worker, message)

    def arrivals(self, session: str) -> list[Arrival]:
        """Return each block's arrival, in order: the newest epoch's, should two have sent it."""
        newest = {arrival.block: arrival for _, arrival in sorted(self._arrivals.get(session, {}).items())}
        return list(newest.values())

    def checks(self, session: str) -> list[Checked]:
        """Return every block that a retired copy stepped."""
        return self._checks.get(session, [])

    def _arrival(self, worker: str, done: BlockDone) -> Arrival:
        now = asyncio.get_running_loop().time()
        due = self._gateway.lives[done.session].due(done.block)
        return Arrival(
            worker=worker,
            block=done.block,
            epoch=done.epoch,
            arrived=now,
            margin_s=None if due is None else due - now,
            compute_s=done.compute_s,
            frames=tuple(digest.hex() for digest in done.frame_sha256),
        )


def listen(gateway: Gateway) -> tuple[Tap, GatewayPort]:
    """Return a tap, and the same as what a controller is attached to."""
    tap = Tap(gateway)
    as_gateway: Any = tap
    return tap, as_gateway
