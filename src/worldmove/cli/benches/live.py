"""A live loop: worlds are moved to and fro every few blocks while others play beside them on the same workers.

Several that are moved begin on different workers: their moves are under way at once, and in both directions.

Segments with moves and segments without take turns in one run, with the same worlds in the same processes: what
disturbs the machine disturbs both, and the second kind is the control. Afterwards each world's record is computed
anew, in a process of its own, on an engine that never moved; where workers have GPUs of their own, on the one on which
the world did not begin.
"""

import asyncio
import multiprocessing
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from itertools import cycle
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from worldmove.cli.benches.found import Report
from worldmove.cli.benches.live_asked import LiveAsked
from worldmove.cli.benches.live_blocks import Segment, Span
from worldmove.cli.benches.player import Seen, playing
from worldmove.cli.benches.served import Served, served
from worldmove.cli.benches.surroundings import environment
from worldmove.cli.benches.tap import Arrival
from worldmove.cli.client import Client
from worldmove.cli.no_answer import ServerError
from worldmove.cli.progress import Bar
from worldmove.cli.recording import record_to
from worldmove.cli.verdict import fields
from worldmove.cli.verifying import Asked, verify_record
from worldmove.errors import UserError, WorldMoveError
from worldmove.fleet.gpus import seeing
from worldmove.serve.server_config import ServerConfig

SETTLE_BLOCKS = 4
"""What every world plays before the first segment: windows fill, and nothing is new any more."""
TRIES_PER_MOVE = 3
"""More refusals than this for each move asked for end the run."""
NOT_OVER = {"equal": False, "num_blocks": 0, "num_states": 0, "num_moves": 0, "why": "took longer than it may"}
Stage = Callable[[str], None]


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
    others: Sequence[Sequence[Arrival]] = ()
    """Those of the other moved worlds."""
    residents: Sequence[Sequence[Arrival]]
    seen: Sequence[Seen]
    """What the players saw: the moved worlds' first."""
    replay: dict[str, Any]
    """What ``verify`` says of the record; of several, of all of them together."""


def run_live(config: ServerConfig, asked: LiveAsked, stage: Stage) -> LiveRun:
    """Play, and compute everything anew afterwards. Raises UserError."""
    with TemporaryDirectory(prefix="worldmove-bench-") as folder:
        records = [Path(folder) / f"{number}.record" for number in range(asked.sessions)]
        loop = asyncio.run(_play(config, asked, records, stage))
        stage("computing what was recorded anew")
        elsewhere = [seeing(gpu, config.gpus) for _, gpu in zip(records, cycle(config.gpus or ("",)), strict=False)]
        return loop.run(asked, together(replayed_all(records, config.worker.engine, elsewhere, asked.replay_s)))


def together(replays: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return one replay as it is; of several what holds for all, and each."""
    if len(replays) == 1:
        return replays[0]
    counts = {name: sum(replay[name] for replay in replays) for name in ("num_blocks", "num_states", "num_moves")}
    found = {"equal": all(replay["equal"] for replay in replays), **counts, "worlds": list(replays)}
    why = next((replay["why"] for replay in replays if "why" in replay), None)
    return found if why is None else {**found, "why": why}


def replayed(record: Path, engine: str) -> dict[str, Any]:
    """Verify a record in a fresh process. Raises UserError where that cannot be done."""
    return replayed_all([record], engine, [{}])[0]


def replayed_all(
    records: Sequence[Path], engine: str, variables: Sequence[Mapping[str, str]], within_s: float = 1e6
) -> list[dict[str, Any]]:
    """Verify records at once, each in a fresh process with some variables of its own. Raises UserError.

    One that is not over within a time says ``why`` instead.
    """
    context, ends_at = multiprocessing.get_context("spawn"), time.monotonic() + within_s
    begun: list[tuple[BaseProcess, Connection]] = []
    for record, own in zip(records, variables, strict=True):
        here, there = context.Pipe()
        process: BaseProcess = context.Process(
            target=_verify, args=(record, engine, there), name="worldmove-bench-replay"
        )
        with environment(own):
            process.start()
        there.close()
        begun.append((process, here))
    try:
        return [_said(here, ends_at) for _, here in begun]
    finally:
        for process, here in begun:
            here.close()
            process.kill()  # it has answered, or is not waited for
            process.join()


def _said(here: Connection, ends_at: float) -> dict[str, Any]:
    if not here.poll(max(0.0, ends_at - time.monotonic())):
        return {**NOT_OVER}
    try:
        found: dict[str, Any] | WorldMoveError = here.recv()
    except EOFError as error:
        raise UserError("the record could not be computed anew: that process has ended") from error
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

    async def play(self, records: Sequence[Path]) -> None:
        """Open, play, move, play on, and keep the records."""
        async with AsyncExitStack() as players:
            await self._open(players)
            await self._blocks(SETTLE_BLOCKS)
            ends_at = time.monotonic() + self._asked.within_s
            while (made := self._committed()) < self._asked.moves and time.monotonic() < ends_at:
                self._stage(f"{made} of {self._asked.moves} moves")
                blocks = await self._segment(min(self._asked.segment, self._asked.moves - made))
                await self._rested_segment(max(1, round(blocks * self._asked.control)))
            await self._blocks(self._asked.after)
            for opened, record in zip(self.opened, records, strict=False):
                await asyncio.to_thread(self._keep, opened["session"], record)
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
            others=self.arrivals[1 : asked.sessions],
            residents=self.arrivals[asked.sessions :],
            seen=self.seen,
            replay=replay,
        )

    async def _open(self, players: AsyncExitStack) -> None:
        """Begin the worlds that are moved, and residents, on each worker in turn; have all of them played."""
        names = [worker["worker"] for worker in (await asyncio.to_thread(self._client.get, "workers"))["workers"]]
        for number in range(self._asked.sessions + self._asked.residents):
            body = {"seed": 1 + number, "worker": names[(number + 1) % len(names)]}
            opened = await asyncio.to_thread(self._client.post, "sessions", body=body)
            self.opened.append(opened)
            playing_it = playing(self._server.address.url, opened["session"], turn=number)
            self.seen.append(await players.enter_async_context(playing_it))

    async def _segment(self, goal: int) -> int:
        """Move so often; return how many blocks that took."""
        goal += self._committed()
        async with self._noted(with_moves=True):
            while self._committed() < goal:
                await self._blocks(self._asked.every)
                await asyncio.gather(*(self._move(self.opened[number]) for number in range(self._asked.sessions)))
        first, end = self.segments[-1].blocks
        return end - first

    async def _rested_segment(self, blocks: int) -> None:
        async with self._noted(with_moves=False):
            await self._blocks(blocks)

    @asynccontextmanager
    async def _noted(self, *, with_moves: bool) -> AsyncIterator[None]:
        """Note what is played inside as a segment."""
        firsts, begin = self._next_blocks(), time.monotonic()
        yield
        blocks = tuple(zip(firsts, self._next_blocks(), strict=True))
        span = (begin, time.monotonic())
        self.segments.append(Segment(with_moves=with_moves, blocks=blocks[0], others=blocks[1:], span=span))

    async def _move(self, opened: Mapping[str, Any]) -> None:
        begin = time.monotonic()
        try:
            report = await asyncio.to_thread(
                self._client.post, "sessions", opened["session"], "move", body={"strategy": self._asked.strategy}
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

    def _next_blocks(self) -> list[int]:
        """Return the next block of each moved world."""
        moved = self.seen[: self._asked.sessions]
        return [(seen.next_frame or 0) // self._server.address.frames_per_block for seen in moved]

    def _committed(self) -> int:
        return sum(report["outcome"] == "committed" for report in self.reports)

    def _keep(self, session: str, record: Path) -> None:
        with self._client.download("sessions", session, "record", query={"follow": "false"}) as pieces:
            record_to(record, pieces)


async def _play(config: ServerConfig, asked: LiveAsked, records: Sequence[Path], stage: Stage) -> _Loop:
    async with served(config, stage) as server:
        loop = _Loop(server, asked, stage)
        await loop.play(records)
        return loop
