"""A live loop: one world is moved to and fro every few blocks while others play beside it on the same workers.

Segments with moves and segments without take turns in one run, with the same worlds in the same processes: what
disturbs the machine disturbs both, and the second kind is the control. Afterwards the world's record is computed
anew, in a process of its own, on an engine that never moved.
"""

import asyncio
import multiprocessing
import time
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from worldmove.cli.benches.found import Report
from worldmove.cli.benches.live_blocks import Segment, Span
from worldmove.cli.benches.player import Seen, playing
from worldmove.cli.benches.served import Served, served
from worldmove.cli.benches.tap import Arrival
from worldmove.cli.client import Client, ServerError
from worldmove.cli.progress import Bar
from worldmove.cli.recording import record_to
from worldmove.cli.verdict import fields
from worldmove.cli.verifying import Asked, verify_record
from worldmove.errors import UserError, WorldMoveError
from worldmove.serve.server_config import ServerConfig

SETTLE_BLOCKS = 4
"""What every world plays before the first segment: windows fill, and nothing is new any more."""
TRIES_PER_MOVE = 3
"""More refusals than this for each move asked for end the run."""

Stage = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveAsked:
    """What a run is to be. A segment has so many moves; one without any follows each."""

    moves: int
    every: int
    """Blocks between two moves."""
    segment: int
    residents: int
    after: int
    """Blocks played on after the last move."""
    control: float = 1.0
    """For each block of a segment with moves, so many in the one without that follows."""
    strategy: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveRun:
    """What a run brought. Instants are seconds of this host's one clock."""

    asked: LiveAsked
    period_ms: float
    num_bytes: int
    segments: Sequence[Segment]
    moves: Sequence[Span]
    """When each move was asked for and answered."""
    reports: Sequence[Report]
    mine: Sequence[Arrival]
    """The moved world's blocks."""
    residents: Sequence[Sequence[Arrival]]
    seen: Sequence[Seen]
    """What the players saw: the moved world's first."""
    replay: dict[str, Any]
    """What ``verify`` says of the record."""


def run_live(config: ServerConfig, asked: LiveAsked, stage: Stage) -> LiveRun:
    """Play, and compute everything anew afterwards. Raises UserError."""
    with TemporaryDirectory(prefix="worldmove-bench-") as folder:
        record = Path(folder) / "live.record"
        loop = asyncio.run(_play(config, asked, record, stage))
        stage("computing the record anew")
        return loop.run(asked, replayed(record, config.worker.engine))


def replayed(record: Path, engine: str) -> dict[str, Any]:
    """Verify a record in a fresh process. Raises UserError where that cannot be done."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=_verify, args=(record, engine, there), name="worldmove-bench-replay")
    process.start()
    there.close()
    try:
        found: dict[str, Any] | WorldMoveError = here.recv()
    except EOFError as error:
        raise UserError("the record could not be computed anew: that process has ended") from error
    finally:
        process.join()
    if isinstance(found, WorldMoveError):
        raise UserError(f"the record could not be computed anew: {found}") from found
    return found


def _verify(record: Path, engine: str, connection: Connection) -> None:
    try:
        connection.send(fields(verify_record(Asked(path=record, engine=engine), Bar(None, ""))))
    except WorldMoveError as error:
        connection.send(UserError(str(error), code=error.code))


class _Loop:
    """One run: its worlds, and what is noted of it."""

    def __init__(self, server: Served, asked: LiveAsked, stage: Stage) -> None:
        self._server = server
        self._client = Client(server.address.url)
        self._asked = asked
        self._stage = stage
        self.opened: list[dict[str, Any]] = []
        self.seen: list[Seen] = []
        self.segments: list[Segment] = []
        self.moves: list[Span] = []
        self.reports: list[Report] = []
        self.arrivals: list[list[Arrival]] = []

    async def play(self, record: Path) -> None:
        """Open, play, move, play on, and keep the record."""
        async with AsyncExitStack() as players:
            await self._open(players)
            await self._blocks(SETTLE_BLOCKS)
            while (made := self._committed()) < self._asked.moves:
                self._stage(f"{made} of {self._asked.moves} moves")
                blocks = await self._segment(min(self._asked.segment, self._asked.moves - made))
                await self._rested_segment(max(1, round(blocks * self._asked.control)))
            await self._blocks(self._asked.after)
            await asyncio.to_thread(self._keep, record)
        self.arrivals = [await self._server.arrivals(opened["session"]) for opened in self.opened]

    def run(self, asked: LiveAsked, replay: dict[str, Any]) -> LiveRun:
        """Return what came of it."""
        return LiveRun(
            asked=asked,
            period_ms=1000 * self._server.address.period_s,
            num_bytes=self.opened[0]["num_bytes"],
            segments=self.segments,
            moves=self.moves,
            reports=self.reports,
            mine=self.arrivals[0],
            residents=self.arrivals[1:],
            seen=self.seen,
            replay=replay,
        )

    async def _open(self, players: AsyncExitStack) -> None:
        """Begin the world that is moved, and residents on each worker in turn; have all of them played."""
        names = [worker["worker"] for worker in (await asyncio.to_thread(self._client.get, "workers"))["workers"]]
        for number in range(1 + self._asked.residents):
            body = {"seed": 1 + number, "worker": names[(number + 1) % len(names)]}
            opened = await asyncio.to_thread(self._client.post, "sessions", body=body)
            self.opened.append(opened)
            playing_it = playing(self._server.address.url, opened["session"], turn=number)
            self.seen.append(await players.enter_async_context(playing_it))

    async def _segment(self, goal: int) -> int:
        """Move so often; return how many blocks that took."""
        first, begin, goal = self._next_block(), time.monotonic(), self._committed() + goal
        while self._committed() < goal:
            await self._blocks(self._asked.every)
            await self._move()
        self.segments.append(
            Segment(with_moves=True, blocks=(first, self._next_block()), span=(begin, time.monotonic()))
        )
        return self._next_block() - first

    async def _rested_segment(self, blocks: int) -> None:
        first, begin = self._next_block(), time.monotonic()
        await self._blocks(blocks)
        self.segments.append(
            Segment(with_moves=False, blocks=(first, self._next_block()), span=(begin, time.monotonic()))
        )

    async def _move(self) -> None:
        session, begin = self.opened[0]["session"], time.monotonic()
        try:
            report = await asyncio.to_thread(
                self._client.post, "sessions", session, "move", body={"strategy": self._asked.strategy}
            )
        except ServerError as error:
            if "move" not in error.body:
                raise
            report = dict(error.body["move"])
        self.moves.append((begin, time.monotonic()))
        self.reports.append(report)
        if len(self.reports) > TRIES_PER_MOVE * self._asked.moves + 3:
            raise UserError(f"too few moves come about: {report['outcome']}, {report['reason']}: {report['detail']}")

    async def _blocks(self, count: int) -> None:
        await self.seen[0].frames_later(count * self._server.address.frames_per_block)

    def _next_block(self) -> int:
        return (self.seen[0].next_frame or 0) // self._server.address.frames_per_block

    def _committed(self) -> int:
        return sum(report["outcome"] == "committed" for report in self.reports)

    def _keep(self, record: Path) -> None:
        query = {"follow": "false"}
        with self._client.download("sessions", self.opened[0]["session"], "record", query=query) as pieces:
            record_to(record, pieces)


async def _play(config: ServerConfig, asked: LiveAsked, record: Path, stage: Stage) -> _Loop:
    async with served(config, stage) as server:
        loop = _Loop(server, asked, stage)
        await loop.play(record)
        return loop
