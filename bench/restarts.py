"""Kill the server again and again while worlds play and move, and check every frame: ``python -m bench.restarts``.

Each round: moves are asked for without a pause, the server is killed at a random instant, with ``--workers-too``
sometimes a worker beside it, and started again. At the end every client's frames must have come once, in order, and
equal a replay of the lists that were stepped; a world that was lost with its worker is checked as far as it went.
Prints one JSON document; the exit status is 1 where a world was not exact, or did not go on.
"""

import argparse
import asyncio
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from tests.serve.restarted import Client, Server, staying
from tests.serve.test_restart import assert_exact
from worldmove.cli.json_text import json_text

STANDSTILL_S = 60.0
NUM_BLOCKS = 4
"""What every world must show after each restart."""


@dataclass
class Trial:
    """One run: its server, its worlds, what became of them."""

    server: Server
    chance: random.Random
    workers_too: bool
    stack: AsyncExitStack
    clients: list[Client] = field(default_factory=list)
    """By seed."""
    stood_still_s: list[float] = field(default_factory=list)
    num_workers_killed: int = 0
    moves: Counter[str] = field(default_factory=Counter)
    tasks: "list[asyncio.Task[None]]" = field(default_factory=list)

    @property
    def playing(self) -> list[Client]:
        return [client for client in self.clients if not client.heard("lost")]

    async def open(self) -> None:
        session = (await self.server.ask("POST", "sessions", seed=len(self.clients)))["session"]
        client = await self.stack.enter_async_context(staying(self.server, session))
        self.clients.append(client)
        self.tasks.append(asyncio.create_task(self.press_on(client)))

    async def press_on(self, client: Client) -> None:
        while True:
            await client.press(self.chance.choice(("up", "down")))
            await asyncio.sleep(0.2 * self.chance.random())

    async def move_on(self) -> None:
        """Ask for moves, one after the other, for ever."""
        while True:
            with suppress(httpx.HTTPError, KeyError, ValueError, IndexError):
                session = self.chance.choice(self.playing).session
                answer = await self.server.ask("POST", f"sessions/{session}/move")
                self.moves[answer.get("outcome") or f"error {answer['error']['code']}"] += 1
            await asyncio.sleep(0.01 + 0.1 * self.chance.random())

    async def round(self) -> None:
        """Kill and start again, and wait until every world has gone on or is lost."""
        await asyncio.sleep(1.5 * self.chance.random())
        pids = [row["pid"] for row in (await self.server.workers()).values() if row["state"] == "ready"]
        await asyncio.sleep(0.1 * self.chance.random())
        await self.server.kill()
        killed_at = time.monotonic()
        if self.workers_too and self.chance.random() < 0.4:
            os.kill(self.chance.choice(pids), signal.SIGKILL)
            self.num_workers_killed += 1
        goals = [(client, len(client.frames) + 2 * NUM_BLOCKS) for client in self.playing]
        await self.server.start()
        for client, goal in goals:
            await client.until(lambda c=client, g=goal: len(c.frames) >= g or c.heard("lost"), STANDSTILL_S)  # type: ignore[misc]
        self.stood_still_s.append(time.monotonic() - killed_at)

    async def fill_up(self, num_worlds: int) -> None:
        """Open worlds in the place of those that are lost."""
        while len(self.playing) < num_worlds:
            with suppress(KeyError):  # no slot yet: a worker is being started
                await self.open()
            await asyncio.sleep(0.2)

    async def stop(self) -> None:
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)


async def work(rounds: int, seed: int, num_worlds: int, *, workers_too: bool) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        server = Server(folder=Path(folder))
        await server.start()
        try:
            return await checked(server, rounds, seed, num_worlds, workers_too=workers_too)
        except BaseException:
            print(server.errors[-20_000:], file=sys.stderr)
            raise
        finally:
            await server.end()


async def checked(server: Server, rounds: int, seed: int, num_worlds: int, *, workers_too: bool) -> dict[str, Any]:
    """Run the rounds, and return what was found exact. Raises AssertionError, TimeoutError."""
    async with AsyncExitStack() as stack:
        trial = Trial(server=server, chance=random.Random(seed), workers_too=workers_too, stack=stack)
        try:
            await played(trial, rounds, num_worlds)
        except TimeoutError:
            print(await server.ask("GET", "sessions"), await server.ask("GET", "workers"), file=sys.stderr)
            raise
        finally:
            await trial.stop()
        history = (await server.ask("GET", "moves"))["moves"]
    for world, client in enumerate(trial.clients):
        assert_exact(client, server.lists, world)
    return {
        "servers_killed": rounds,
        "workers_killed": trial.num_workers_killed,
        "seed": seed,
        "worlds": len(trial.clients),
        "worlds_lost_with_their_worker": len(trial.clients) - len(trial.playing),
        "frames_exact": sum(len(client.frames) for client in trial.clients),
        "moves": dict(Counter(f"{move['outcome']}, {move['reason']}" for move in history)),
        "stood_still_s": {
            "median": round(sorted(trial.stood_still_s)[rounds // 2], 3),
            "most": round(max(trial.stood_still_s), 3),
        },
    }


async def played(trial: Trial, rounds: int, num_worlds: int) -> None:
    await trial.fill_up(num_worlds)
    trial.tasks.append(asyncio.create_task(trial.move_on()))
    for number in range(rounds):
        await trial.round()
        await trial.fill_up(num_worlds)
        print(f"round {number + 1}: {trial.stood_still_s[-1]:.2f} s, {dict(trial.moves)}", file=sys.stderr)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-n", type=int, default=20, help="how often to kill the server")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--worlds", type=int, default=2)
    parser.add_argument("--workers-too", action="store_true", help="kill a worker beside it, in two rounds of five")
    told = parser.parse_args()
    found = asyncio.run(work(told.n, told.seed, told.worlds, workers_too=told.workers_too))
    print(json_text(found, indent=2))


if __name__ == "__main__":
    main()
