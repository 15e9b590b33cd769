"""A fleet whose every part can be made to lie: the shipped drivers and rules, with a seam at each thing they hear."""

import asyncio
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import msgspec

from tests.attacks import brook, pond
from tests.attacks.pond import Pond
from tests.move.decoded import Part
from tests.move.harness import BLOCK_S, SEED, Copy, Fleet, Outcome, Plays, Worker, World, inputs_of
from tests.move.virtual import inline
from worldmove.move.ledger_messages import Answer, Operation
from worldmove.move.messages import CONTROLLER, AnyMoveMessage, Boundary, Meet, Prepared, Ready, Start
from worldmove.state import Manifest
from worldmove.state.arena import Arena
from worldmove.state.extent import Extent
from worldmove.state.geometry import overlap
from worldmove.state.layout import Layout
from worldmove.state.leaf import ArrayLeaf
from worldmove.state.placement import extents
from worldmove.state.preview import Preview, hear
from worldmove.state.storage import leaf_runs
from worldmove.transport.base import Channel, Transport
from worldmove.transport.loopback import Loopback
from worldmove.transport.wrappers import Wrapped

SLOT_BYTES = 16 << 10
ROW_BYTES = 32
READY_S = 0.3
"""How long a source stands still before its freeze, so that the rows at rest are there."""
STREAMS_S = 0.05
"""How long a block has to stream, before the freeze is asked for."""
WORLD = World(first=Pond, install=pond.install)  # type: ignore[arg-type]

Deliveries = list[tuple[float, AnyMoveMessage]]
Pull = Callable[[Channel, Sequence[Extent], memoryview], Any]


class Lying(Wrapped):
    """A path that does what the attack of the day says."""

    def __init__(self, inner: Transport, fleet: "Attacked") -> None:
        super().__init__(inner, "loopback")
        self._fleet = fleet

    async def connect(self, ticket: bytes) -> "LyingChannel":
        return LyingChannel(await self._inner.connect(ticket), self._fleet)


class LyingChannel:
    def __init__(self, inner: Channel, fleet: "Attacked") -> None:
        self._inner = inner
        self._fleet = fleet

    async def pull(self, wanted: Sequence[Extent], into: memoryview) -> None:
        await self._fleet.pull(self._inner, wanted, into)

    async def close(self) -> None:
        await self._inner.close()


async def honest_pull(inner: Channel, wanted: Sequence[Extent], into: memoryview) -> None:
    await inner.pull(wanted, into)


class Attacked(Fleet):
    """Plays one pond; an oracle that never moves plays the same one."""

    def __init__(self, world: World = WORLD) -> None:
        tokens = random.Random(0)
        inner = Loopback(blocking=inline, tokens=lambda: tokens.randbytes(32))
        self._arenas = [Arena(SLOT_BYTES, "pond") for _ in range(2)]
        super().__init__(transports={"loopback": Lying(inner, self)}, world=world)
        self.oracle: Pond = world.first(SEED)  # type: ignore[assignment]
        self.says_still = True
        self.beside = lambda copy, num_bytes: Part(copy, num_bytes, step=brook.follow)
        self.wrong: list[str] = []
        """What was played, or promoted, and is not what the oracle has."""
        self.undecodable = 0
        self.stale_slot = b""
        """The source's memory at the boundary before."""
        self.manifest: Manifest | None = None
        """Of the boundary that was sent last."""
        self.placement: tuple[int, ...] = ()
        self.earlier: dict[type, AnyMoveMessage] = {}
        """The messages of the move before."""
        self._latest: dict[type, AnyMoveMessage] = {}
        self._offered: Preview | None = None
        self.source_config = replace(self.source_config, row_bytes=ROW_BYTES)
        self.at_ease()
        self.on_promote = self._compare

    def at_ease(self) -> None:
        """End whatever attack there is."""
        self.pull: Pull = honest_pull
        self.deliver: Callable[[AnyMoveMessage], Deliveries] = lambda message: [(0.0005, message)]
        self.question: Callable[[Operation], Operation] = lambda operation: operation
        self.answer: Callable[[Operation, Answer | None], Answer | None] = lambda operation, answer: answer
        self.on_post = lambda message: None
        self.on_reserve = lambda copy: None
        self.finals = lambda copy: ()
        self._streams = False
        """Whether a block is computed once the destination is ready."""
        self.path, self.strategy, self.waits_for_ready_s, self.start_s = "loopback", "boundary copy", 0.0, 0.0

    def go_ahead(self, *, plays_on: bool) -> None:
        """Have the next move send its rows before the boundary, and tell of them at rest.

        ``plays_on``: one more block is played then, so that what was told is not of the boundary.
        """
        self.strategy, self.waits_for_ready_s = "pre-copy", READY_S
        if plays_on:
            self.on_post = self._play_once

    def go_streaming(self, *, rests: bool) -> None:
        """Have the next move stream: a block is computed while it is under way, and says what is final of it.

        A world that has a part which can be stepped by itself has it followed. ``rests``: what differs is told of, and
        brought over, before the freeze.
        """
        self.strategy, self.start_s = "streaming", STREAMS_S
        self.waits_for_ready_s = READY_S if rests else 0.0
        self._streams = True
        begun = self.owner.world.block
        self.finals = lambda copy: ("window", "trail") if copy.world.block > begun else ()

    def go_following(self) -> None:
        """Have the next move follow: a snapshot, and the lists since."""
        self.strategy = "replay"

    def _play_at_ready(self, message: AnyMoveMessage) -> None:
        if self._streams and isinstance(message, Ready) and len(self.live()) == 1:
            self._streams = False
            self.owner.play()

    def _play_once(self, message: AnyMoveMessage) -> None:
        if isinstance(message, Meet) and len(self.live()) == 1:
            self.on_post = lambda later: None
            self.owner.play()

    def take_arena(self) -> Arena:
        return self._arenas.pop() if self._arenas else Arena(SLOT_BYTES, "pond")

    def give_arena(self, copy: Copy) -> None:
        if len(self._arenas) < 4:
            self._arenas.append(copy.arena)  # with what lies in it

    def post(self, sender: Worker | None, message: AnyMoveMessage) -> None:
        """Carry a message as a link does, by its bytes; what does not decode would end the link, and is dropped."""
        self._latest[type(message)] = message
        if isinstance(message, Prepared):
            self._offered = Preview.of(Layout.from_bytes(message.layout))
        if isinstance(message, Boundary):
            self.manifest, self.placement = hear(self._offered, message.manifest, message.placement)
        self.on_post(message)
        self._play_at_ready(message)
        late_s = self.start_s if isinstance(message, Start) else 0.0
        for delay, said in self.deliver(message):
            try:
                heard = msgspec.msgpack.decode(msgspec.msgpack.encode(said), type=AnyMoveMessage)
            except (msgspec.MsgspecError, UnicodeError, OverflowError):
                self.undecodable += 1
                continue
            asyncio.get_running_loop().call_later(late_s + delay, self._arrive, heard)

    def decide(self, operation: Operation) -> Answer | None:
        asked = self.question(operation)
        if asked is not operation:
            try:
                asked = msgspec.msgpack.decode(msgspec.msgpack.encode(asked), type=Operation)
            except (msgspec.MsgspecError, UnicodeError, OverflowError):
                self.undecodable += 1
                return None
            if asked.session != self.row.session:
                return None  # the ledger has no such row
        answer = super().decide(asked)
        return answer if getattr(operation, "worker", CONTROLLER) == CONTROLLER else self.answer(operation, answer)

    async def play(self, num_blocks: int) -> None:
        for _ in range(num_blocks):
            for copy in self.copies(Plays.LIVE):
                copy.play()
            await asyncio.sleep(BLOCK_S)
            self.keep_up()

    def keep_up(self) -> None:
        """Let the oracle play what was shown."""
        while self.oracle.block < len(self.gateway.shown):
            block = self.oracle.block
            if self.oracle.step(inputs_of(block)) != self.gateway.shown[block]:
                self.wrong.append(f"block {block} was shown, and is another one")

    def _compare(self, copy: Copy) -> None:
        self.keep_up()
        if copy.world.bytes_of() != self.oracle.bytes_of():  # type: ignore[attr-defined]
            self.wrong.append(f"{copy.worker.name} plays a state that is not the one that was frozen")

    def spend(self, outcome: Outcome) -> None:
        """Let no later move use the attempt's id again: one that was declined has left no trace in the row."""
        self.decide(self._close(outcome))
        if self.row.attempt is not None:  # a controller closes what was left open, by the name that the row has
            self.decide(self._close(Outcome(attempt=self.row.attempt.attempt)))

    def live(self) -> list[Copy]:
        """The copies that play."""
        return self.copies(Plays.LIVE)

    def crashed(self) -> list[str]:
        """What ended a driver that should have gone on: a lie is never a reason to."""
        tasks = [task for worker in self.workers.values() for task in worker.tasks if task.done()]
        for worker in self.workers.values():
            worker.tasks[:] = [task for task in worker.tasks if not task.done()]
        return [f"a driver ended: {task.exception()!r}" for task in tasks if not task.cancelled() and task.exception()]

    async def alone(self) -> bool:
        """Play on until nobody but the owner holds a copy. False if that does not come about."""
        for _ in range(400):
            if sum(len(worker.copies) for worker in self.workers.values()) == 1:
                return True
            await self.play(1)
        return False

    def move_is_over(self) -> None:
        """Remember its messages, forget what would only grow."""
        self.earlier, self._latest = {**self.earlier, **self._latest}, {}
        self.sent.clear()
        self.rows.clear()
        self.suspected.clear()

    def used(self) -> tuple[Extent, ...]:
        """The extents of the boundary that was sent last."""
        return extents(self.manifest, self.placement) if self.manifest else ()

    def leaves_at(self, offset: int) -> list[str]:
        """The paths of the leaves that lie over a byte of a slot's memory."""
        assert self.manifest is not None
        found = []
        for leaf in self.manifest.leaves:
            if isinstance(leaf.content, ArrayLeaf) and leaf.content.storage is not None:
                at = offset - self.placement[leaf.content.storage]
                if at >= 0 and overlap(leaf_runs(leaf.content), [Extent(offset=at, length=1)]):
                    found.append(leaf.path)
        return found
