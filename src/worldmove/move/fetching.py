"""A base on its way into a slot: pulled in chunks, each again after a break, and what is damaged pulled again.

A path may break as often as it likes while there is time: what had arrived by then stays. The write window is closed
before anything is digested, and opened anew for what is pulled again; nothing is installed meanwhile.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

from worldmove.errors import NoDescriptors, TransportError
from worldmove.move.attempt import Attempt, GaveUpError
from worldmove.move.damage import say_damage
from worldmove.move.device_path import DeviceWriteWindow, open_window
from worldmove.move.protocol import DestinationEvent
from worldmove.move.window import WriteWindow
from worldmove.state.arena import AnyArena
from worldmove.state.extent import Extent
from worldmove.state.groups import groups
from worldmove.state.landing import landed
from worldmove.state.manifest import Manifest
from worldmove.state.placement import Placement, extents
from worldmove.state.proof import Mismatch, MoveProof
from worldmove.state.runs import Runs
from worldmove.transport.base import Channel, Transport
from worldmove.units import seconds_text

MOST_GROWTH = 8.0
"""From one chunk to the next."""

LEAST_CHUNK_BYTES = 64 << 10


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchingConfig:
    """How a base is pulled. Times in seconds."""

    chunk_bytes: int = 1 << 20
    """What is pulled at a time, at first."""
    least_chunks: int = 8
    """As many as this there are of all but the smallest states: a path that has time for one has time for each."""
    most_chunk_bytes: int = 1 << 28
    fitting_s: float = 0.05
    """How long a chunk is to take, and what is lost when a path breaks. The next is as large as the last was fast."""
    chunk_s: float = 30.0
    """From a chunk's first to its last byte; longer, and the path counts as broken."""
    retry_s: float = 0.2
    """From a break until the path is connected anew."""
    num_again: int = 3
    """How often what arrived damaged is pulled again."""


class Fetching:
    """One base's."""

    def __init__(
        self,
        *,
        attempt: Attempt,
        transport: Transport,
        ticket: bytes,
        arena: AnyArena,
        manifest: Manifest,
        placement: Placement,
        config: FetchingConfig,
    ) -> None:
        self.num_fetched = 0
        """Bytes that have arrived."""
        self._broke = ""
        self._attempt = attempt
        self._transport = transport
        self._ticket = ticket
        self._arena = arena
        self._manifest = manifest
        self._placement = placement
        self._config = config
        self._channel: Channel | None = None
        self._chunk_bytes = config.chunk_bytes

    async def run(self, theirs: MoveProof, nonce: bytes, layout_digest: bytes) -> None:
        """Return when the slot has what ``theirs`` is the proof of.

        Raises GaveUpError(MISMATCH), or TransportError where a path keeps what it was lent.
        """
        try:
            await self.pull(extents(self._manifest, self._placement))
            for again in range(self._config.num_again + 1):
                differences = await self._differences(theirs, nonce, layout_digest)
                if not differences:
                    return
                wrong = [difference.group for difference in differences if difference.group is not None]
                if again == self._config.num_again or len(wrong) < len(differences):
                    self._give_up(differences, theirs.num_groups)
                await self.pull(self._extents_of(wrong))
        finally:
            await self.release()

    async def release(self) -> None:
        """Let go of the path. Idempotent."""
        channel, self._channel = self._channel, None
        if channel is not None:
            await channel.close()

    async def pull(self, wanted: Sequence[Extent]) -> None:
        """Bring some of the arena over. Raises TransportError where a path keeps what it was lent."""
        window = open_window(self._arena)
        try:
            rest, most = Runs.of(wanted), self._most_bytes(wanted)
            while len(rest):
                batch, rest = rest.parted(min(self._chunk_bytes, most))
                begun = self._attempt.host.clock()
                await self._bring(batch, window)
                self.num_fetched += batch.num_bytes
                self._attempt.gets_on()
                self._fit(batch.num_bytes, self._attempt.host.clock() - begun)
        except BaseException:
            window.abandon()
            raise
        window.close()

    def how_it_broke(self) -> str:
        """Say why the path broke last, to be added to a sentence; empty where it never did."""
        return f" (the path broke: {self._broke})" if self._broke else ""

    def _most_bytes(self, wanted: Sequence[Extent]) -> int:
        """Return the largest chunk that there may be of what is wanted."""
        share = Runs.of(wanted).num_bytes // self._config.least_chunks
        return min(self._config.most_chunk_bytes, max(LEAST_CHUNK_BYTES, share))

    def _fit(self, num_bytes: int, took_s: float) -> None:
        """Let a chunk be what the path carries in the time that one is to take; at most a few times the last one."""
        config = self._config
        fitting = int(num_bytes * min(config.fitting_s / max(took_s, 1e-6), MOST_GROWTH))
        if num_bytes >= min(self._chunk_bytes, LEAST_CHUNK_BYTES):  # the last one of a pull says little
            self._chunk_bytes = max(config.chunk_bytes, min(fitting, config.most_chunk_bytes))

    async def _bring(self, batch: Sequence[Extent], window: WriteWindow | DeviceWriteWindow) -> None:
        """Pull some of it, as often as it takes: there is as much time for it as for all of this."""
        has_come = await self._has_come(batch, window)
        while not has_come:
            await asyncio.sleep(self._config.retry_s)
            has_come = await self._has_come(batch, window)

    async def _has_come(self, batch: Sequence[Extent], window: WriteWindow | DeviceWriteWindow) -> bool:
        """Pull some of it; False where the path broke, which is let go then. Raises NoDescriptors."""
        try:
            async with asyncio.timeout(self._config.chunk_s):
                if self._channel is None:
                    self._channel = await self._transport.connect(self._ticket)
                await window.fill(self._channel, batch)
        except NoDescriptors:
            await self.release()
            raise
        except (TransportError, TimeoutError) as error:
            self._broke = str(error) or f"a piece took longer than {seconds_text(self._config.chunk_s)}"
            await self.release()
            return False
        return True

    async def _differences(self, theirs: MoveProof, nonce: bytes, layout_digest: bytes) -> tuple[Mismatch, ...]:
        ours = await self._attempt.prove(
            lambda: landed(self._manifest, self._placement, self._arena),
            boundary=theirs.boundary,
            nonce=nonce,
            layout_digest=layout_digest,
        )
        return ours.compare(theirs, self._manifest)

    def _extents_of(self, wrong: Sequence[int]) -> tuple[Extent, ...]:
        """Return where some groups lie."""
        known = groups(self._manifest)
        return tuple(
            Extent(offset=self._placement[known[index].storage] + extent.offset, length=extent.length)
            for index in wrong
            for extent in known[index].extents
        )

    def _give_up(self, differences: tuple[Mismatch, ...], num_groups: int) -> NoReturn:
        said = say_damage(differences, num_groups, f"arrived damaged from {self._attempt.peer}, again and again")
        raise GaveUpError(DestinationEvent.MISMATCH, "mismatch", said)
