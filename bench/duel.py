"""Two equal worlds take turns in one server: one is moved under play, the other, the control, never is.

Both have one seed and one scripted walk. They take turns segment by segment: the moved world plays until its
moves are made, then rests, and the control plays as many blocks. So whatever disturbs the machine disturbs both.
"""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass, field
from typing import Any

from bench.player import Player
from bench.walk import Walk
from worldmove.cli.benches.tap import Arrival, Checked, listen
from worldmove.fleet.reports import MoveReport, Outcome
from worldmove.move.strategy import Strategy
from worldmove.serve.house import House
from worldmove.serve.server import inhabited
from worldmove.serve.server_config import ServerConfig
from worldmove.worker.config import WorkerConfig

MOVED, CONTROL = "s-moved", "s-control"
OWED_BLOCKS = 2
"""A world plays so many blocks after a move, watched or not: the retired copy is compared by them."""
TRIES_PER_MOVE = 3
"""More refusals than this for each move asked for end the run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """How a move is asked for. None: as the server chooses; ``link``: as fast as the path is."""

    strategy: Strategy | None = None
    link: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DuelConfig:
    """How many moves, in segments of how many; ``rest_moves``: one more move in each rest."""

    engine: str
    threads: int
    workers: int
    moves: int
    segment: int
    seed: int
    rest_moves: bool
    settle_blocks: int = 8
    """Blocks that both worlds play before the first move."""
    ways: tuple[Way, ...] = (Way(),)
    """Each move's, in turn."""


@dataclass(slots=True, kw_only=True)
class Moves:
    """What became of the moves."""

    committed: list[MoveReport] = field(default_factory=list)
    others: list[MoveReport] = field(default_factory=list)
    at_rest: list[str] = field(default_factory=list)
    """Attempts that were made while the world rested."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Duel:
    """What a run brought. Blocks: one row each, in order."""

    moves: Moves
    period_ms: float
    """Of a block: its list is closed so long before it is due."""
    moved: list[dict[str, Any]]
    control: list[dict[str, Any]]
    moved_frames: list[str]
    """SHA-256 of each frame of the moved world, as its workers took it."""
    checks: list[Checked]
    """Blocks that the moved world's retired copies stepped."""
    moved_log: list[list[list[Any]]]
    """The input log: of each block its changes (number, key, down)."""
    control_log: list[list[list[Any]]]
    moved_seen: dict[str, Any]
    control_seen: dict[str, Any]
    rests: int


After = Callable[[], Awaitable[None]]


async def duel(config: DuelConfig, after_move: After) -> Duel:
    """Run it. ``after_move`` is awaited between two moves, while both workers are as busy as in a move."""
    worker = WorkerConfig(engine=config.engine, num_threads=config.threads, log_level="warning")
    server = ServerConfig(port=0, num_workers=config.workers, worker=worker, keep_s=36_000.0)
    async with inhabited(server, lambda text: print(text, file=sys.stderr)) as house:
        return await _Run(house, config, after_move).run()


class _Run:
    def __init__(self, house: House, config: DuelConfig, after_move: After) -> None:
        self._house = house
        self._config = config
        self._after_move = after_move
        self._moves = Moves()
        self._tap, port = listen(house.gateway)
        house.controller.attach(port)
        self._rests = 0

    async def run(self) -> Duel:
        moved, control = await self._begin(MOVED), await self._begin(CONTROL)
        await self._play(moved, lambda blocks: blocks >= self._config.settle_blocks)
        await self._catch_up(control)
        while len(self._moves.committed) < self._config.moves:
            await self._moved_segment(moved)
            await self._catch_up(control)
            self._rests += 1
            self._report_progress(moved)
        await self._at_rest(MOVED)
        await self._at_rest(CONTROL)
        arrivals = self._tap.arrivals(MOVED)
        return Duel(
            moves=self._moves,
            period_ms=1000 * self._house.gateway.config.live.spec.period_s,
            moved=[_row(arrival) for arrival in arrivals],
            control=[_row(arrival) for arrival in self._tap.arrivals(CONTROL)],
            moved_frames=[digest for arrival in arrivals for digest in arrival.frames],
            checks=self._tap.checks(MOVED),
            moved_log=self._log(MOVED),
            control_log=self._log(CONTROL),
            moved_seen=_seen(moved),
            control_seen=_seen(control),
            rests=self._rests,
        )

    async def _begin(self, session: str) -> Player:
        live = self._house.gateway.begin(session)
        first = self._house.controller.workers()[0].name
        await self._house.controller.open(session, self._config.seed, first)
        return Player(self._house.url, session, Walk(self._config.seed), live.spec.frames_per_block)

    async def _play(self, player: Player, stop: Callable[[int], bool]) -> None:
        """Play until ``stop``, and on to the end of what is closed already: it would be shown to nobody."""
        sequencer = self._house.gateway.live(player.session).sequencer
        await player.play(lambda blocks: stop(blocks) and sequencer.reaches <= blocks)

    async def _catch_up(self, control: Player) -> None:
        """Play the control as far as the moved world was played."""
        reached = self._house.gateway.live(MOVED).screen.next_block
        await self._play(control, lambda blocks: blocks >= reached)

    async def _moved_segment(self, player: Player) -> None:
        goal = min(len(self._moves.committed) + self._config.segment, self._config.moves)
        last = asyncio.get_running_loop().create_future()
        playing = asyncio.create_task(self._play(player, lambda blocks: last.done() and blocks >= last.result()))
        await player.blocks(player.num_blocks + 1)
        while len(self._moves.committed) < goal:
            if not await self._move():
                await player.blocks(player.num_blocks + 1)
            await self._after_move()
        last.set_result(player.num_blocks + OWED_BLOCKS)
        await playing
        if self._config.rest_moves and len(self._moves.committed) < self._config.moves:
            await self._move_at_rest()

    async def _at_rest(self, session: str) -> None:
        """Return when a world rests: every block whose list is closed was shown, and none is owed."""
        await self._house.gateway.live(session).standstill.until(lambda: False)

    async def _move_at_rest(self) -> None:
        await self._at_rest(MOVED)
        if await self._move():
            self._moves.at_rest.append(self._moves.committed[-1].attempt)
        await self._at_rest(MOVED)

    async def _move(self) -> bool:
        """Move the world to the next worker; say whether it was."""
        controller, gateway = self._house.controller, self._house.gateway
        names = [view.name for view in controller.workers()]
        owner = controller.owner(MOVED)
        if owner is None:
            raise RuntimeError("the moved world has no owner any more")
        to = names[(names.index(owner.worker) + 1) % len(names)]
        ways, asked = self._config.ways, len(self._moves.committed) + len(self._moves.others)
        way = ways[asked % len(ways)]
        made = await controller.move(MOVED, to, strategy=way.strategy, link=way.link)
        report = await gateway.settled(MOVED, made)
        committed = report.outcome is Outcome.COMMITTED
        if len(ways) > 1:
            said = f"{report.pause_s * 1000:.1f} ms" if report.pause_s is not None else report.detail
            print(f"{report.strategy} over {report.transport}: {report.outcome.value}, {said}", file=sys.stderr)
        (self._moves.committed if committed else self._moves.others).append(report)
        if len(self._moves.others) > TRIES_PER_MOVE * self._config.moves:
            raise RuntimeError(f"too few moves come about: {report.outcome.value}, {report.reason}: {report.detail}")
        return committed

    def _log(self, session: str) -> list[list[list[Any]]]:
        sequencer = self._house.gateway.live(session).sequencer
        return [[[c.number, c.key, c.down] for c in sequencer.closed(block)] for block in range(sequencer.reaches)]

    def _report_progress(self, player: Player) -> None:
        made, asked = len(self._moves.committed), self._config.moves
        others = f", {len(self._moves.others)} did not come about" if self._moves.others else ""
        print(f"{made} of {asked} moves{others}; {player.num_blocks} blocks each", file=sys.stderr)


def _row(arrival: Arrival) -> dict[str, Any]:
    margin_s = arrival.margin_s
    return {
        "block": arrival.block,
        "epoch": arrival.epoch,
        "worker": arrival.worker,
        "margin_ms": None if margin_s is None else round(margin_s * 1000, 3),
        "compute_ms": round(arrival.compute_s * 1000, 3),
    }


def _seen(player: Player) -> dict[str, Any]:
    return asdict(player.seen)


def move_row(report: MoveReport) -> dict[str, Any]:
    """Return a move as one row of samples. Times in ms from the freeze."""
    return {
        "attempt": report.attempt,
        "epoch": report.epoch,
        "to": report.destination,
        "outcome": report.outcome.value,
        "reason": report.reason,
        "detail": report.detail,
        "pause_ms": _ms(report.pause_s),
        "gap_ms": _ms(report.gap_s),
        "took_ms": _ms(report.took_s),
        "num_bytes": report.num_bytes,
        "source_digest": report.source_digest,
        "destination_digest": report.destination_digest,
        "phases": {f"{p.side}.{p.name}": [_ms(p.start_s), _ms(p.end_s)] for p in report.phases},
    }


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds * 1000, 3)
