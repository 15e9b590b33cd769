"""Kills the worker of a protected world again and again: how long is nothing shown? ``python -m bench.failover``.

One server with three workers, as ``worldmove serve --protect N`` starts it, and a world that is played over the play
wire. Each round waits until a snapshot is kept by another worker, and for some blocks more, so that every distance
from the snapshot comes about; then the world's worker gets SIGKILL. What is measured runs from that signal to the
arrival of the next new frame. At the end the frames must have come once, in order, and equal a replay of the lists.
"""

import argparse
import asyncio
import os
import random
import signal
import time
from typing import Any

from bench.numbers import spread
from bench.player import Player
from bench.record import Recorder, parser, quiet, require_worker_path
from bench.replay import Replayed, replayed
from bench.walk import Walk
from worldmove.fleet.failover_report import FailoverReport
from worldmove.serve.house import House
from worldmove.serve.server import inhabited
from worldmove.serve.server_config import ServerConfig
from worldmove.worker.config import WorkerConfig

WITHIN_S = 60.0
"""Everything that is to come about has this long."""
LOOK_S = 0.005


def main() -> None:
    """Measure and write."""
    options = parser("failover", __doc__)
    options.add_argument("--kills", type=int, default=24)
    options.add_argument("--within-s", type=float, default=1800.0, help="kill no more after so long")
    options.add_argument("--protect", type=int, default=8, help="blocks between two snapshots")
    options.add_argument("--workers", type=int, default=3, help="with a third one nobody waits for a new process")
    options.add_argument("--seed", type=int, default=7)
    asked = options.parse_args()
    quiet()
    require_worker_path()
    recorder = Recorder("failover", asked)
    rounds, player, again, lost = asyncio.run(measure(asked))
    recorder.write(summary_of(rounds, player, again, lost), {"kills": rounds, "replay_compute_ms": again.compute_ms})


async def measure(asked: argparse.Namespace) -> tuple[list[dict[str, Any]], Player, Replayed, str]:
    """Kill so often; then, with every worker ended, replay the world's log."""
    config = ServerConfig(
        port=0,
        num_workers=asked.workers,
        worker=WorkerConfig(engine=asked.engine, num_threads=asked.threads, log_level="error"),
        protect_every=asked.protect,
    )
    async with inhabited(config, lambda stage: None) as house:
        session = await opened(house, asked.seed)
        live = house.gateway.lives[session]
        player = Player(house.url, session, Walk(asked.seed), live.spec.frames_per_block)
        playing = asyncio.create_task(player.play(lambda blocks: False))
        rng, rounds = random.Random(asked.seed), list[dict[str, Any]]()
        ends_at = time.monotonic() + asked.within_s
        while len(rounds) < asked.kills and not live.lost_why and time.monotonic() < ends_at:
            rounds.append(await killed(house, session, player, rng.randrange(asked.protect)))
        playing.cancel()
        await asyncio.gather(playing, return_exceptions=True)
        lists = [live.sequencer.closed(block) for block in range(player.num_blocks)]
        lost = live.lost_why or ""
    log = [[[change.number, change.key, change.down] for change in changes] for changes in lists]
    again = await replayed(engine=asked.engine, threads=asked.threads, seed=asked.seed, log=log, boundaries=())
    return rounds, player, again, lost


async def opened(house: House, seed: int) -> str:
    """Open a world, by the gateway's own side that faces people."""
    live = house.gateway.begin(f"s-bench{seed}")
    await house.controller.open(live.name, seed)
    return live.name


async def killed(house: House, session: str, player: Player, blocks_after: int) -> dict[str, Any]:
    """Kill the world's worker so many blocks after a snapshot, and wait for the next new frame."""
    await until(lambda: kept_elsewhere(house, session) is not None)
    kept = kept_elsewhere(house, session) or 0
    await until(lambda: player.num_blocks >= kept + blocks_after)
    owner = house.controller.owner(session)
    views = [view for view in house.controller.workers() if owner is not None and view.name == owner.worker]
    pid = next(view.pid for view in views if view.pid is not None)
    newest, known, begun = player.seen.newest, len(house.controller.failovers()), time.monotonic()
    os.kill(pid, signal.SIGKILL)
    epoch = owner.epoch if owner else 0
    await until(lambda: player.seen.newest > newest and player.seen.epoch > epoch)
    shown_ms = 1000 * (time.monotonic() - begun)
    await until(lambda: len(house.controller.failovers()) > known)
    return row_of(house.controller.failovers()[-1], shown_ms)


def kept_elsewhere(house: House, session: str) -> int | None:
    """Return the boundary of what a worker keeps that does not play the world; None where none does."""
    view = next(view for view in house.controller.sessions() if view.name == session)
    return view.kept_block if view.keeper not in (None, view.owner) else None


def row_of(report: FailoverReport, shown_ms: float) -> dict[str, Any]:
    """Return one kill."""
    return {
        "to_next_frame_ms": round(shown_ms, 2),
        "known_to_shown_ms": None if report.took_s is None else round(1000 * report.took_s, 2),
        "kept_block": report.boundary,
        "next_block": report.next_block,
        "replayed": report.num_replayed,
        "compared": report.num_compared,
        "outcome": report.outcome.value,
        "epoch": report.epoch,
    }


def summary_of(rounds: list[dict[str, Any]], player: Player, again: Replayed, lost: str) -> dict[str, Any]:
    """Say what came out, and whether it is exact."""
    seen, per_block = player.seen, len(again.frames) // max(1, player.num_blocks)
    whole = player.num_blocks * per_block
    equal = sum(seen.frames[number] == again.frames[number] for number in range(whole))
    return {
        "kills": len(rounds),
        "lost": lost,
        "to_next_frame_ms": spread([row["to_next_frame_ms"] for row in rounds]),
        "known_to_shown_ms": spread([row["known_to_shown_ms"] for row in rounds if row["known_to_shown_ms"]]),
        "blocks_replayed": spread([row["replayed"] for row in rounds]),
        "blocks_compared": sum(row["compared"] for row in rounds),
        "blocks_replayed_in_all": sum(row["replayed"] for row in rounds),
        "frames": whole,
        "frames_equal_to_replay": equal,
        "frames_skipped": seen.missing,
        "frames_damaged": seen.damaged,
        "bit_identical": equal == whole and not (seen.missing or seen.damaged or seen.changed),
        "block_compute_ms": spread(again.compute_ms),
    }


async def until(holds: Any) -> None:
    """Return once something holds. Raises TimeoutError."""
    async with asyncio.timeout(WITHIN_S):
        while True:
            if holds():
                return
            await asyncio.sleep(LOOK_S)


if __name__ == "__main__":
    main()
