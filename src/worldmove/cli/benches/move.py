"""Moves a played world to and fro in a server of its own, and copies as many bytes between the moves."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from worldmove.cli.benches.copies import copy_ms, peer_copy_ms
from worldmove.cli.benches.found import Measured, Report, measured
from worldmove.cli.benches.player import Seen, playing
from worldmove.cli.benches.served import served
from worldmove.cli.client import Client
from worldmove.cli.no_answer import ServerError
from worldmove.serve.server_config import ServerConfig
from worldmove.state.kit_double import NAME as DOUBLE
from worldmove.state.kits import kit_of
from worldmove.state.memory import MemoryKit

Stage = Callable[[str], None]
FRAMES_BETWEEN = 8


@dataclass(frozen=True, slots=True)
class Moves:
    """How many, what each is asked for with, and whether from one GPU to another."""

    count: int
    body: Mapping[str, Any]
    between_gpus: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class UnderPlay:
    """What was measured, the bytes of each leaf, and where sessions lie: ``cpu`` or ``cuda``."""

    found: Measured
    leaf_bytes: tuple[int, ...]
    device: str


def measure(config: ServerConfig, num_moves: int, stage: Stage, *, strategy: str | None = None) -> UnderPlay:
    """Run it. ``strategy``: the one that each move is asked for by."""
    return asyncio.run(_measure(config, num_moves, stage, {"strategy": strategy}))


async def _measure(config: ServerConfig, num_moves: int, stage: Stage, body: dict[str, Any]) -> UnderPlay:
    async with served(config, stage) as server:
        url = server.address.url
        client = Client(url)
        opened = await asyncio.to_thread(client.post, "sessions", body={"seed": 1})
        async with playing(url, opened["session"]) as seen:
            reports, copies = await _moves(client, opened, seen, Moves(num_moves, body, len(config.gpus) > 1), stage)
            leaves = await asyncio.to_thread(client.get, "sessions", opened["session"], "leaves")
            kit = await asyncio.to_thread(kit_of_workers, client)
    return UnderPlay(
        found=measured(opened["num_bytes"], reports, copies, seen),
        leaf_bytes=tuple(leaf["num_bytes"] for leaf in leaves["leaves"]),
        device="cpu" if kit is None or kit.name == DOUBLE else "cuda",
    )


async def _moves(
    client: Client, opened: dict[str, Any], seen: Seen, asked: Moves, stage: Stage
) -> tuple[list[Report], list[float]]:
    reports: list[Report] = []
    copies, kit = [], await asyncio.to_thread(kit_of_workers, client)
    for number in range(1, asked.count + 1):
        stage(f"move {number} of {asked.count}")
        await seen.frames_later(FRAMES_BETWEEN)
        copies.append(await asyncio.to_thread(_copy_ms, opened["num_bytes"], kit, asked))
        with suppress(ServerError):  # a refused move is in the list too
            await asyncio.to_thread(client.post, "sessions", opened["session"], "move", body=asked.body)
        reports.append((await asyncio.to_thread(client.get, "moves"))["moves"][-1])
    await seen.frames_later(2 * FRAMES_BETWEEN)
    return reports, copies


def _copy_ms(num_bytes: int, kit: MemoryKit | None, asked: Moves) -> float:
    if asked.between_gpus and kit is not None and kit.name != DOUBLE:
        return peer_copy_ms(num_bytes, "cuda:0", "cuda:1")
    return copy_ms(num_bytes, kit)


def kit_of_workers(client: Client) -> MemoryKit | None:
    """Return a kit of the device on which the workers' sessions lie, if they lie on one."""
    workers = client.get("environment")["workers"].values()
    names = [fields.get("device.name") for fields in workers]
    if not names or names[0] is None:
        return None
    return kit_of(DOUBLE if names[0] == DOUBLE else "cuda")
