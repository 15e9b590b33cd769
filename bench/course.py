"""One world under play is moved by a list of ways, in a server of its own process; others may play beside it.

Before the first move and after the last it is played without any: that is the control. Everything goes through the
server's own interface, as a user would ask for it.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from bench.edges import BESIDE, least_mbit, link_of, verdict_of
from bench.ways import Ask
from worldmove.cli.benches.live import SETTLE_BLOCKS
from worldmove.cli.benches.live_blocks import Segment
from worldmove.cli.benches.player import Seen, playing
from worldmove.cli.benches.served import Served, served
from worldmove.cli.benches.tap import Arrival
from worldmove.cli.client import Client
from worldmove.cli.no_answer import ServerError
from worldmove.cli.recording import record_to
from worldmove.serve.server_config import ServerConfig

Stage = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class CourseConfig:
    """What a run is to be. ``within_s``: no move is asked for that would end later, by what the like has taken."""

    ways: Sequence[Ask]
    control_blocks: int
    residents: int
    within_s: float
    apart: bool = False
    """Worlds begin so that their lists, and with them their blocks, lie evenly in a period."""
    blocks_between: int = 1
    edges: Sequence[str] = ()
    """Strategies that are moved by just above and just below the least bandwidth that admits them, at the end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """A move that was asked for: how, when (seconds of the host's clock), from which block to which, its report."""

    ask: Ask
    span: tuple[float, float]
    blocks: tuple[int, int]
    report: dict[str, Any]
    note: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True, kw_only=True)
class Course:
    """What a run brought. Arrivals: the moved world's first; ``left_out``: moves that no time was left for."""

    period_ms: float
    made: list[Made] = field(default_factory=list)
    segments: list[Segment] = field(default_factory=list)
    arrivals: list[list[Arrival]] = field(default_factory=list)
    seen: list[Seen] = field(default_factory=list)
    opened: list[dict[str, Any]] = field(default_factory=list)
    left_out: list[Ask] = field(default_factory=list)
    edges: list[dict[str, Any]] = field(default_factory=list)
    rates: dict[str, dict[str, float]] = field(default_factory=dict)
    """What each worker measured before its hello."""


async def course(
    config: CourseConfig,
    server: ServerConfig,
    record: Path,
    stage: Stage,
    note: Callable[[Course], None] = lambda found: None,
) -> Course:
    """Run it; the moved world's record lies at ``record`` afterwards. ``note`` hears of all after each move.

    Raises UserError.
    """
    ends_at = time.monotonic() + config.within_s
    async with served(server, stage) as there:
        run = _Run(there, config, ends_at, stage, note)
        await run.run(record)
        return run.found


class _Run:
    def __init__(
        self, server: Served, config: CourseConfig, ends_at: float, stage: Stage, note: Callable[[Course], None]
    ) -> None:
        self.found = Course(period_ms=1000 * server.address.period_s, rates=server.address.rates)
        self._server = server
        self._client = Client(server.address.url)
        self._config = config
        self._ends_at = ends_at
        self._stage = stage
        self._note = note
        self._took: dict[Ask, float] = {}
        """How long the longest move of each way took."""

    async def run(self, record: Path) -> None:
        async with AsyncExitStack() as players:
            await self._open(players)
            await self._blocks(SETTLE_BLOCKS)
            await self._part(self._control, with_moves=False)
            await self._part(self._moves, with_moves=True)
            await self._part(self._control, with_moves=False)
            await asyncio.to_thread(self._keep, record)
        for opened in self.found.opened:
            self.found.arrivals.append(await self._server.arrivals(opened["session"]))

    async def _open(self, players: AsyncExitStack) -> None:
        """Begin the world that is moved on the first worker, and the others on the second, where it is moved to."""
        names = await self._workers()
        for number in range(1 + self._config.residents):
            body = {"seed": 1 + number, "worker": names[min(number, 1)]}
            opened = await asyncio.to_thread(self._client.post, "sessions", body=body)
            self.found.opened.append(opened)
            if number and self._config.apart:
                await self._until_apart(number)
            it = playing(self._server.address.url, opened["session"], turn=number)
            self.found.seen.append(await players.enter_async_context(it))

    async def _until_apart(self, number: int) -> None:
        """Return when a world that begins has its lists so many parts of a period after those of the first one."""
        await self._blocks(SETTLE_BLOCKS)
        newest = (await self._server.arrivals(self._session))[-1]
        period_s, due_s = self._server.address.period_s, newest.arrived + (newest.margin_s or 0.0)
        begins_s = due_s + period_s * number / (1 + self._config.residents)
        await asyncio.sleep((begins_s - time.monotonic()) % period_s)

    async def _part(self, play: Callable[[], Any], *, with_moves: bool) -> None:
        first, begin = self._next_block(), time.monotonic()
        await play()
        blocks, span = (first, self._next_block()), (begin, time.monotonic())
        self.found.segments.append(Segment(with_moves=with_moves, blocks=blocks, span=span))

    async def _control(self) -> None:
        await self._blocks(self._config.control_blocks // 2)

    async def _moves(self) -> None:
        for number, way in enumerate(self._config.ways):
            if time.monotonic() + self._took.get(way, 0.0) > self._ends_at:
                self.found.left_out.append(way)
                continue
            made = await self._move(way)
            self._stage(f"{number + 1} of {len(self._config.ways)}: {said_of(made)}")
        for strategy in self._config.edges:
            await self._edge(strategy)

    async def _move(self, way: Ask, note: dict[str, Any] | None = None) -> Made:
        """Ask for one move to the other worker, and for the answer."""
        await self._blocks(self._config.blocks_between)
        body = {"to": await self._other(), "strategy": way.strategy, "link": way.link}
        first, begin = self._next_block(), time.monotonic()
        try:
            report = await asyncio.to_thread(self._client.post, "sessions", self._session, "move", body=body)
        except ServerError as error:
            if "move" not in error.body:
                raise
            report = {**error.body["move"], "detail": str(error)}
        span = (begin, time.monotonic())
        made = Made(ask=way, span=span, blocks=(first, self._next_block()), report=report, note=note or {})
        self.found.made.append(made)
        await asyncio.to_thread(self._note, self.found)
        self._took[way] = max(self._took.get(way, 0.0), span[1] - span[0])
        return made

    async def _edge(self, strategy: str) -> None:
        """Move just below and just above the least bandwidth that the server's own plan admits just then."""
        for side, times in BESIDE.items():
            to = await self._other()
            least = await asyncio.to_thread(least_mbit, partial(self._plan, to), strategy)
            entry: dict[str, Any] = {"strategy": strategy, "side": side, "least_mbit": least}
            self.found.edges.append(entry)
            if least is None or time.monotonic() + self._longest_s(to, strategy, link_of(least)) > self._ends_at:
                continue
            made = await self._move(Ask(strategy, link_of(least * times)), {"edge": side})
            entry["move"] = len(self.found.made) - 1
            self._stage(f"just {side} {least:.3f} Mb/s: {said_of(made)}")

    def _plan(self, to: str, link: str) -> dict[str, Any]:
        return self._client.get("sessions", self._session, "plan", query={"to": to, "link": link})

    def _longest_s(self, to: str, strategy: str, link: str) -> float:
        """Return how long a move is expected to take by the plan, and a second."""
        told = verdict_of(self._plan(to, link), strategy)
        return ((told["before_ms"] or 0.0) + (told["pause_ms"] or 0.0)) / 1000 + 1.0

    async def _other(self) -> str:
        here = await asyncio.to_thread(self._client.get, "sessions", self._session)
        return next(name for name in (await self._workers())[:2] if name != here["worker"])

    async def _workers(self) -> list[str]:
        return [worker["worker"] for worker in (await asyncio.to_thread(self._client.get, "workers"))["workers"]]

    async def _blocks(self, count: int) -> None:
        if count:
            await self.found.seen[0].frames_later(count * self._server.address.frames_per_block)

    def _next_block(self) -> int:
        return (self.found.seen[0].next_frame or 0) // self._server.address.frames_per_block

    @property
    def _session(self) -> str:
        name: str = self.found.opened[0]["session"]
        return name

    def _keep(self, record: Path) -> None:
        query = {"follow": "false"}
        with self._client.download("sessions", self._session, "record", query=query) as pieces:
            record_to(record, pieces)


def said_of(made: Made) -> str:
    """Say one move in a line."""
    report = made.report
    told = [made.ask.name, report["strategy"], report["outcome"]]
    if report["outcome"] != "committed":
        return ", ".join([*told, report["reason"], report["detail"]])
    expected = (report["expected"] or {}).get("pause_ms")
    return ", ".join([*told, f"{report['pause_ms']:.1f} ms (expected {expected}), {report['took_ms'] / 1000:.1f} s"])
