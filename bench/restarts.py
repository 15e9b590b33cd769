"""Kill the server again and again while worlds play and move, and check every frame: ``python -m bench.restarts``.

Each round: moves are asked for without a pause, the server is killed at a random instant, and started again. At the
end every client's frames must have come once, in order, and equal a replay of the lists that were stepped. Prints one
JSON document; the exit status is 1 where a world was not exact.
"""

import argparse
import asyncio
import json
import random
import sys
import tempfile
import time
from collections import Counter
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any

import httpx

from tests.serve.restarted import Client, Server, staying
from tests.serve.test_restart import assert_exact

STANDSTILL_S = 40.0


async def move_on(server: Server, sessions: list[str], chance: random.Random, outcomes: Counter[str]) -> None:
    """Ask for moves, one after the other, for ever."""
    while True:
        with suppress(httpx.HTTPError, KeyError, ValueError):
            answer = await server.ask("POST", f"sessions/{chance.choice(sessions)}/move")
            outcomes[answer["outcome"] if "outcome" in answer else f"error {answer['error']['code']}"] += 1
        await asyncio.sleep(0.01 + 0.2 * chance.random())


async def press_on(client: Client, chance: random.Random) -> None:
    while True:
        await client.press(chance.choice(("up", "down")))
        await asyncio.sleep(0.2 * chance.random())


async def round_of(server: Server, clients: list[Client], chance: random.Random) -> float:
    """Kill and start again; return how long the slowest world stood still."""
    await asyncio.sleep(1.5 * chance.random())
    await server.kill()
    killed_at = time.monotonic()
    goals = [len(client.frames) + 8 for client in clients]
    await server.start()
    for client, goal in zip(clients, goals, strict=True):
        await client.until(lambda client=client, goal=goal: len(client.frames) >= goal, STANDSTILL_S)  # type: ignore[misc]
    return time.monotonic() - killed_at


async def work(rounds: int, seed: int, num_worlds: int) -> dict[str, Any]:
    chance, outcomes, stood_still = random.Random(seed), Counter[str](), []
    with tempfile.TemporaryDirectory() as folder:
        server = Server(folder=Path(folder))
        await server.start()
        try:
            async with AsyncExitStack() as stack:
                names = [(await server.ask("POST", "sessions", seed=s))["session"] for s in range(num_worlds)]
                clients = [await stack.enter_async_context(staying(server, name)) for name in names]
                tasks = [asyncio.create_task(move_on(server, names, chance, outcomes))]
                tasks += [asyncio.create_task(press_on(client, chance)) for client in clients]
                try:
                    for number in range(rounds):
                        stood_still.append(await round_of(server, clients, chance))
                        print(f"round {number + 1}: {stood_still[-1]:.2f} s, {dict(outcomes)}", file=sys.stderr)
                except TimeoutError:
                    print(await server.ask("GET", "sessions"), await server.ask("GET", "workers"), file=sys.stderr)
                    raise
                finally:
                    for task in tasks:
                        task.cancel()
                    await asyncio.gather(*tasks, return_exceptions=True)
                moves = (await server.ask("GET", "moves"))["moves"]
            for world, client in enumerate(clients):
                assert_exact(client, server.lists, world)
            frames = sum(len(client.frames) for client in clients)
        finally:
            with suppress(ProcessLookupError):
                await server.end()
            print(server.errors[-4000:], file=sys.stderr)
    return {
        "kills": rounds,
        "seed": seed,
        "worlds": num_worlds,
        "frames": frames,
        "moves": dict(Counter(f"{move['outcome']}, {move['reason']}" for move in moves)),
        "stood_still_s": {"median": sorted(stood_still)[len(stood_still) // 2], "most": max(stood_still)},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-n", type=int, default=20, help="how often to kill the server")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--worlds", type=int, default=2)
    told = parser.parse_args()
    print(json.dumps(asyncio.run(work(told.n, told.seed, told.worlds)), indent=2))


if __name__ == "__main__":
    main()
