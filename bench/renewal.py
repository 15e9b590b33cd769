"""What renewing a protected world's snapshot costs those who play: its owner, and a world at the worker that keeps it.

    python -m bench.renewal --engine reference:matrix-game-2 --protect 8

Two workers, a world at each; the second one's blocks begin as the first one's end, which is when a snapshot is taken
and pulled. Segments in which the first world is protected take turns with segments in which it is not: those are the
control. A renewal goes from the boundary whose state is copied aside until the server says that the other worker keeps
it; blocks that touch it are told apart from those between.
"""

import argparse
import asyncio
import sys
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress

from bench.record import Recorder, parser, quiet, require_worker_path
from bench.renewal_found import GOAL, Found, samples_of, summary_of
from bench.under_play import SLOTS
from worldmove.cli.benches.live import SETTLE_BLOCKS
from worldmove.cli.benches.live_blocks import Segment
from worldmove.cli.benches.player import Seen, playing
from worldmove.cli.benches.served import Served, served
from worldmove.cli.client import Client
from worldmove.cli.output import Verbosity
from worldmove.cli.start import Start, config_of
from worldmove.serve.server_config import ServerConfig

LOOK_S = 0.01
"""How often it is asked what is kept: also where nothing is, so that it costs both kinds of segments as much."""


def main() -> None:
    """Measure and write; ends with 1 where no snapshot was renewed."""
    options = options_of(None)
    quiet()
    require_worker_path()
    recorder = Recorder("renewal", options)
    found = asyncio.run(measure(options))
    recorder.write(summary_of(found, options.goal), samples_of(found))
    if not found.kept:
        sys.exit("no snapshot was kept, so nothing is known of what renewing one costs")


def options_of(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    options = parser("renewal", __doc__)
    options.add_argument("--protect", type=int, default=8, help="blocks between two snapshots")
    options.add_argument("--rounds", type=int, default=3, help="how often both kinds of segments take turns")
    options.add_argument("--blocks", type=int, default=32, help="of a segment with protection; one without has half")
    options.add_argument("--goal", type=float, default=GOAL, help="the largest cost that is good, as a share")
    return options.parse_args(arguments)


def server_of(options: argparse.Namespace) -> ServerConfig:
    """Return the server's configuration: two workers with room for an older snapshot beside a newer one."""
    told = Start(
        host="127.0.0.1",
        port=0,
        workers=2,
        engine=options.engine,
        threads=options.threads,
        slots=SLOTS + 1,
        keep_s=3600.0,
        check_blocks=0,
    )
    return config_of(told, Verbosity())


async def measure(options: argparse.Namespace) -> Found:
    """Run it."""

    def tell(text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    async with served(server_of(options), tell) as server, AsyncExitStack() as players:
        run = _Run(server, players)
        await run.open()
        for number in range(options.rounds):
            tell(f"round {number + 1} of {options.rounds}")
            await run.segment(0, options.blocks // 2)
            await run.segment(options.protect, options.blocks)
        await run.segment(0, options.blocks // 2)
        await run.end()
        return run.found


class _Run:
    def __init__(self, server: Served, players: AsyncExitStack) -> None:
        self.found = Found()
        self._server = server
        self._client = Client(server.address.url)
        self._players = players
        self._names: list[str] = []
        self._seen: list[Seen] = []

    async def open(self) -> None:
        """Begin a world at each worker, the second one's lists as the first one's blocks end."""
        for number, worker in enumerate(("worker-1", "worker-2")):
            if number:
                await self._until_a_block_ends()
            body = {"seed": 1 + number, "worker": worker}
            opened = await asyncio.to_thread(self._client.post, "sessions", body=body)
            self._names.append(opened["session"])
            self.found.num_bytes = opened["num_bytes"]
            it = playing(self._server.address.url, opened["session"], turn=number)
            self._seen.append(await self._players.enter_async_context(it))
        await self._blocks(SETTLE_BLOCKS)

    async def segment(self, protect: int, blocks: int) -> None:
        """Play so many blocks, protected or not; what is still on its way at the end is over before the next one."""
        await asyncio.to_thread(self._client.post, "sessions", self._names[0], "protect", body={"every": protect})
        first, begin = self._next_block(), time.monotonic()
        looking = asyncio.create_task(self._look())
        await self._blocks(blocks)
        looking.cancel()
        with suppress(asyncio.CancelledError):
            await looking
        span = (begin, time.monotonic())
        self.found.segments.append(Segment(with_moves=protect > 0, blocks=(first, self._next_block()), span=span))
        await asyncio.to_thread(self._client.post, "sessions", self._names[0], "protect", body={"every": 0})
        await self._blocks(1)

    async def end(self) -> None:
        """Take when each block came."""
        self.found.owner, self.found.resident = [await self._server.arrivals(name) for name in self._names]

    async def _look(self) -> None:
        """Note each snapshot as it is kept."""
        newest = None
        while True:
            told = await asyncio.to_thread(self._client.get, "sessions", self._names[0])
            kept = told["kept_block"]
            if kept is not None and kept != newest:
                newest = kept
                self.found.kept.append((kept, time.monotonic()))
            await asyncio.sleep(LOOK_S)

    async def _until_a_block_ends(self) -> None:
        """Return when a block of the first world should: as the newest one did, some periods ago perhaps."""
        await self._blocks(SETTLE_BLOCKS)
        newest = (await self._server.arrivals(self._names[0]))[-1]
        await asyncio.sleep((newest.arrived - time.monotonic()) % self._server.address.period_s)

    async def _blocks(self, count: int) -> None:
        await self._seen[0].frames_later(count * self._server.address.frames_per_block)

    def _next_block(self) -> int:
        return (self._seen[0].next_frame or 0) // self._server.address.frames_per_block


if __name__ == "__main__":
    main()
