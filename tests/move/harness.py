"""A whole small fleet in one loop: workers with toy worlds, a gateway, a ledger, a controller, a lossy post.

Everything that a test wants to break is a seam: ``Post`` (``Fleet.post``), the ledger (``Fleet.ledger_fault``),
the transport, and each worker's slots and copies. The drivers and the ledger's rules are the shipped ones.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import Enum

import msgspec

from tests.move.toy import Toy, frames_of_a_world_that_never_moved, install
from tests.move.virtual import inline
from worldmove.errors import MoveRefused
from worldmove.move.destination import Destination, DestinationConfig
from worldmove.move.host import Host
from worldmove.move.ledger_rules import (
    Answer,
    CloseAttempt,
    Denied,
    Facts,
    MarkShown,
    OpenAttempt,
    Operation,
    Row,
    decide,
    next_attempt,
)
from worldmove.move.messages import (
    CONTROLLER,
    AnyMoveMessage,
    Begin,
    Cancel,
    Declined,
    Ended,
    Offer,
    Prepare,
    Prepared,
    Ready,
    Reserved,
    Start,
)
from worldmove.move.protocol import DestinationPhase
from worldmove.move.shadow_slot import ComponentSlot
from worldmove.move.source import Refused, Source, SourceConfig
from worldmove.move.source_copy import Frozen, Resting, WhenReady
from worldmove.state import Environment, Layout, Manifest, Placement, Xxh3Digester, gather
from worldmove.state.arena import Arena
from worldmove.state.capture import Capture, capture
from worldmove.state.digest import BeginPass, Pass
from worldmove.state.landing import landed
from worldmove.state.placement import foreseen
from worldmove.state.preview import Preview
from worldmove.transport.base import Transport
from worldmove.transport.loopback import Loopback

ARENA_BYTES = 64 << 10
SESSION = "s-1"
SEED = 11
BLOCK_S = 0.02


def inputs_of(block: int) -> tuple[str, ...]:
    """The closed input list of a block."""
    return (f"key {block % 7}",) if block % 3 else ()


def reference(fleet: "Fleet") -> list[str]:
    """What a world that never moved would have shown."""
    return frames_of_a_world_that_never_moved(SEED, [inputs_of(block) for block in range(len(fleet.gateway.shown))])


class Plays(Enum):
    """What a copy does."""

    LIVE = "live"
    FROZEN = "frozen"
    SHADOW = "shadow"
    SUPERSEDED = "superseded"
    RETIRED = "retired"
    GONE = "gone"


class Copy:
    """A copy of a session in a slot: SourceCopy and ShadowSlot in one."""

    def __init__(self, worker: "Worker", toy: Toy | None, plays: Plays, epoch: int) -> None:
        self.worker = worker
        self.arena = worker.fleet.take_arena()
        self.toy = toy
        self.plays = plays
        self.epoch = epoch
        self.acknowledged_block = toy.block if toy else 0
        self.stands_at: int | None = None
        self.stops_before: int | None = None
        self.ahead = 0
        """By how much a follower was told wrongly which block its snapshot is before."""
        self.following: asyncio.Task[None] | None = None
        self.unacknowledged: dict[int, str] = {}
        self.taken = asyncio.Event()
        self.released = False
        self.offered: Preview | None = None
        self.retired_by: str | None = None
        """The attempt that it was retired by, or none; None while it is not retired."""
        self.after_install: Callable[[Copy], None] = lambda copy: None
        self.checked: list[tuple[int, bool]] = []
        self.after_freeze: Callable[[Copy], None] = lambda copy: None
        self.before_install: Callable[[Copy, Manifest, Placement], None] = lambda copy, manifest, placement: None

    # as a source

    @property
    def block_s(self) -> float:
        return 0.1

    @property
    def reach(self) -> tuple[int, int]:
        return self.acknowledged_block, self.world.block

    @property
    def world(self) -> Toy:
        assert self.toy is not None
        return self.toy

    def stay(self, *, stays: bool) -> None:
        """It stays as it is told by ``passed``."""

    async def layout(self) -> Layout:
        captured = self.world.capture()
        places = foreseen(captured, self.arena)
        layout = Layout.of(captured.manifest, arena_bytes=self.arena.size, places=places)
        self.offered = Preview.of(layout)
        return layout

    async def snapshot(self) -> "Aside":
        return self.worker.copy_aside(self)

    def finals(self) -> tuple[str, ...]:
        return self.worker.fleet.finals(self)

    def hush(self) -> None:
        """Nobody listens."""

    def hush_handed(self) -> None:
        """Nobody listens."""

    @property
    def followed(self) -> tuple[str, ...]:
        return self.worker.fleet.world.followed

    def handed(self) -> tuple[tuple[int, bytes], ...]:
        handed: list[tuple[int, bytes]] = getattr(self.world, "handed", [])
        told = tuple(handed)
        handed.clear()
        return told

    async def component(self) -> "Aside":
        tree = {key: self.world.tree[key] for key in self.followed}
        return self.worker.copy_aside(self, capture(tree))

    async def meet(self, tell: Callable[[int], None]) -> None:
        self._stop_before(self.world.block + 1, tell)
        begun = asyncio.get_running_loop().time()
        while self.world.block < (self.stops_before or 0):
            await asyncio.sleep(BLOCK_S / 4)
            if asyncio.get_running_loop().time() - begun > 3 * BLOCK_S:
                self._stop_before(self.world.block, tell)

    def _stop_before(self, block: int, tell: Callable[[int], None]) -> None:
        self.stops_before = block
        tell(block)

    async def settle(self, ready: WhenReady | None = None, *, brings: bool = False) -> None:
        if ready is not None and self.worker.fleet.waits_for_ready_s:
            with suppress(TimeoutError):
                async with asyncio.timeout(self.worker.fleet.waits_for_ready_s):
                    await ready()

    async def rest(self) -> Resting:
        captured = self.world.capture()
        return Resting(
            block=self.world.block,
            manifest=captured.manifest,
            placement=gather(captured, self.arena),
            rolled=self.worker.fleet.rolled,
        )

    async def freeze(
        self, *, is_pulled: bool = True, begin: BeginPass | None = None, still: Callable[[], None] | None = None
    ) -> Frozen:
        self.plays = Plays.FROZEN
        if still is not None and self.worker.fleet.says_still:
            still()
        captured = self.world.capture()
        placement = gather(captured, self.arena) if is_pulled else ()
        rolled = self.worker.fleet.rolled
        return Frozen(
            block=self.world.block,
            capture=captured,
            placement=placement,
            rolled=rolled,
            first=None if begin is None else begin(captured),
            offered=self.offered,
        )

    def thaw(self, epoch: int) -> None:
        if self.worker.dead:
            return
        self.plays, self.epoch, self.stops_before = Plays.LIVE, epoch, None
        self.worker.fleet.note_live(self)
        self.send_again()

    def supersede(self) -> None:
        self.plays = Plays.SUPERSEDED

    def retire(self, attempt: str = "") -> None:
        self.plays, self.retired_by, self.stops_before = Plays.RETIRED, attempt, None

    def replay(self, epoch: int, block: int) -> None:
        while self.world.block < block:
            self.world.step(inputs_of(self.world.block))
        self.acknowledged_block = block
        self.thaw(epoch)

    async def acknowledged(self, block: int) -> None:
        while self.acknowledged_block < block:
            self.send_again()
            self.taken.clear()
            if self.acknowledged_block < block:
                await self.taken.wait()

    async def passed(self, block: int) -> None:
        gateway = self.worker.fleet.gateway
        await gateway.left(block)
        picture = self.world.step(inputs_of(block))
        self.worker.fleet.checked.append((block, picture == gateway.shown[block]))

    def free(self) -> None:
        self.plays = Plays.GONE
        self.worker.drop(self)

    def play(self) -> bool:
        """Compute a block, if this copy is the one that plays, and offer its picture to the gateway."""
        if self.plays is not Plays.LIVE or self.world.block == self.stops_before:
            return False
        block = self.world.block
        self.worker.fleet.num_closed = max(self.worker.fleet.num_closed, block + 1)
        self.unacknowledged[block] = self.world.step(inputs_of(block))
        self.send_again()
        return True

    def send_again(self) -> None:
        for block, picture in list(self.unacknowledged.items()):
            self.worker.fleet.gateway.take(self, block, picture)

    def acknowledge(self, block: int) -> None:
        self.unacknowledged.pop(block, None)
        self.acknowledged_block = max(self.acknowledged_block, block + 1)
        self.taken.set()

    # as a shadow

    async def poison(self, gets_on: Callable[[], None]) -> None:
        self.arena.poison()
        gets_on()

    async def beside(self, num_bytes: int) -> ComponentSlot:
        return self.worker.fleet.beside(self, num_bytes)

    async def clear(self, block: int, ready: Callable[[], None]) -> None:
        """Nothing else is computed here."""
        ready()

    async def build(self, manifest: Manifest, placement: Placement) -> None:
        self.landing = manifest, placement

    async def install_landing(self, manifest: Manifest, placement: Placement, begin: BeginPass) -> None:
        await self.build(manifest, placement)

    async def install(self) -> Capture:
        self.before_install(self, *self.landing)
        self.toy = self.worker.fleet.world.install(*self.landing, self.arena)
        self.after_install(self)
        return self.toy.capture()

    @property
    def next_block(self) -> int:
        return self.world.block + self.ahead

    def follow(self, block: int, attempt: str) -> None:
        self.ahead = block - self.world.block
        self.following = asyncio.create_task(self._follow())
        self.worker.tasks.append(self.following)

    async def _follow(self) -> None:
        """Step what has left the gateway, and up to where the source is met; each block takes a while."""
        fleet = self.worker.fleet
        while True:
            reach = len(fleet.gateway.shown) if self.stops_before is None else min(self.stops_before, fleet.num_closed)
            if self.toy is not None and self.next_block < reach and not fleet.holds_follower:
                self.world.step(inputs_of(self.next_block))
                fleet.on_follow(self)
            await asyncio.sleep(BLOCK_S / 4)

    async def caught_up(self) -> None:
        while self.next_block < len(self.worker.fleet.gateway.shown):  # noqa: ASYNC110
            await asyncio.sleep(BLOCK_S / 8)

    def stop_before(self, block: int) -> None:
        self.stops_before = block if self.stops_before is None else min(block, self.stops_before)

    async def halt(self, begin: BeginPass) -> tuple[int, Capture, Pass | None]:
        while self.stops_before is None or self.next_block < self.stops_before:  # noqa: ASYNC110
            await asyncio.sleep(BLOCK_S / 8)
        if self.next_block > self.stops_before:
            raise MoveRefused("overshot", f"it stands before block {self.next_block}")
        capture = self.world.capture()
        return self.stops_before, capture, begin(capture)

    async def still(self) -> None:
        self._end_following()

    def verified(self, block: int) -> None:
        assert block >= self.acknowledged_block
        self.stands_at = block

    def promote(self, epoch: int, block: int) -> None:
        self._end_following()
        assert self.world.block == self.stands_at == block  # said before the commit was asked for
        self.acknowledged_block = block
        self.thaw(epoch)
        self.worker.fleet.on_promote(self)

    def _end_following(self) -> None:
        if self.following is not None:
            self.following.cancel()

    def discard(self) -> None:
        self.plays, self.toy = Plays.GONE, None

    def release(self) -> None:
        self.released = True
        self.worker.drop(self)


class Aside:
    """A state in a slot of its own (``move.source_copy.Aside``)."""

    def __init__(self, copy: Copy, captured: Capture) -> None:
        self.block = copy.world.block
        self.manifest = captured.manifest
        self.arena = Arena(ARENA_BYTES, "aside")
        self.placement = gather(captured, self.arena)
        self._worker = copy.worker

    def capture(self) -> Capture:
        return landed(self.manifest, self.placement, self.arena)

    def free(self) -> None:
        if self in self._worker.asides:
            self._worker.asides.remove(self)


class Worker:
    """One process's worth of copies and drivers."""

    def __init__(self, fleet: "Fleet", name: str, incarnation: int = 1) -> None:
        self.fleet = fleet
        self.name = name
        self.incarnation = incarnation
        self.copies: list[Copy] = []
        self.asides: list[Aside] = []
        self.sources: list[Source] = []
        self.destinations: list[Destination] = []
        self.tasks: list[asyncio.Task[None]] = []
        self.offers: list[str] = []
        self.dead = False
        self.host = Host(
            worker=name,
            incarnation=incarnation,
            environment=Environment(fields={"cpu": "toy"}),
            post=lambda message: fleet.post(self, message),
            ledger=Client(fleet, self),
            blocking=inline,
            digester=Xxh3Digester(),
            transports=fleet.transports,
            clock=asyncio.get_running_loop().time,
            log=lambda event, **fields: fleet.logged.append({"event": event, "worker": name, **fields}),
        )

    def open(self) -> Copy:
        """Begin the world here."""
        copy = Copy(self, self.fleet.world.first(SEED), Plays.LIVE, 1)
        self.copies.append(copy)
        self._drive_source(Source(host=self.host, session=SESSION, copy=copy, epoch=1, config=self.fleet.source_config))
        self.fleet.note_live(copy)
        return copy

    def copy_aside(self, copy: Copy, captured: Capture | None = None) -> Aside:
        """Copy a state, or a part of it, aside, if there is room."""
        if self.fleet.has_no_room_aside:
            raise MoveRefused("no_slot", "all slots are taken")
        aside = Aside(copy, captured or copy.world.capture())
        self.asides.append(aside)
        return aside

    def reserve(self, session: str, layout: Layout, *, is_followed: bool = False) -> Copy:
        """Take a slot for a shadow."""
        if self.copies:
            raise MoveRefused("copy_held", f"{self.name} still holds a copy")
        if layout.arena_bytes > ARENA_BYTES:
            raise MoveRefused("state_too_large", f"it needs {layout.arena_bytes} bytes")
        copy = Copy(self, None, Plays.SHADOW, 0)
        self.copies.append(copy)
        self.fleet.on_reserve(copy)
        return copy

    def drop(self, copy: Copy) -> None:
        self.copies.remove(copy)
        self.fleet.give_arena(copy)

    def deliver(self, message: AnyMoveMessage) -> None:
        """What arrives on this worker's link."""
        if self.dead:
            return
        if isinstance(message, Offer) and message.attempt not in self.offers:
            self.offers.append(message.attempt)
            driver = Destination(host=self.host, slots=self, offer=message, config=self.fleet.destination_config)
            self.destinations.append(driver)
            self.tasks.append(asyncio.create_task(self._run_destination(driver)))
            return
        for source in list(self.sources):
            source.deliver(message)
        for destination in list(self.destinations):
            destination.deliver(message)

    def refuse(self, epoch: int) -> None:
        for source in self.sources:
            source.deliver(Refused(epoch=epoch))

    def die(self) -> None:
        """Power off: nothing more runs here, and every mapping is gone."""
        self.dead = True
        for task in self.tasks:
            task.cancel()
        for copy in self.copies:
            copy.plays = Plays.GONE
            copy.arena.buffer[:] = bytes(len(copy.arena.buffer))
        self.copies.clear()

    def _drive_source(self, source: Source) -> None:
        self.sources.append(source)
        self.tasks.append(asyncio.create_task(self._run_source(source)))

    async def _run_source(self, source: Source) -> None:
        await source.run()
        self.sources.remove(source)

    async def _run_destination(self, driver: Destination) -> None:
        phase = await driver.run()
        self.destinations.remove(driver)
        if phase is DestinationPhase.NONE or self.dead:
            return
        copy = driver.slot
        assert isinstance(copy, Copy)
        retired_at = driver.boundary if phase is DestinationPhase.RETIRED else None
        self._drive_source(
            Source(
                host=self.host,
                session=SESSION,
                copy=copy,
                epoch=driver.epoch,
                config=self.fleet.source_config,
                retired_at=retired_at,
            )
        )


class Gateway:
    """Shows frames: only the row's owner's, only the next block, and only once the epoch is marked as shown."""

    def __init__(self, fleet: "Fleet") -> None:
        self.fleet = fleet
        self.shown: list[str] = []
        self.closed_epoch: int | None = None
        self.deaf = False
        """Takes no frame: acknowledgements stay away."""
        self._left = asyncio.Event()

    def take(self, copy: Copy, block: int, picture: str) -> None:
        if self.deaf:
            return
        row = self.fleet.row
        if (row.owner, row.incarnation, row.epoch) != (copy.worker.name, copy.worker.incarnation, copy.epoch):
            copy.worker.refuse(row.epoch)
            return
        if block == len(self.shown):
            self.fleet.decide(MarkShown(session=SESSION, epoch=copy.epoch))
            self.shown.append(picture)
            self._left.set()
            self._left = asyncio.Event()
        if block < len(self.shown):
            copy.acknowledge(block)

    async def left(self, block: int) -> None:
        while len(self.shown) <= block:
            await self._left.wait()


class Client:
    """A worker's way to the ledger: it takes a moment, and may be silent."""

    def __init__(self, fleet: "Fleet", worker: Worker) -> None:
        self._fleet = fleet
        self._worker = worker

    async def ask(self, operation: Operation) -> Answer | None:
        await asyncio.sleep(0.001 if not self._worker.dead else 1e9)
        fault = self._fleet.ledger_fault(self._worker, operation)
        if fault is LedgerFault.BEFORE_EFFECT:
            await asyncio.sleep(0.5)
            return None
        answer = self._fleet.decide(operation)
        if fault is LedgerFault.AFTER_EFFECT:
            await asyncio.sleep(0.5)
            return None
        await asyncio.sleep(0.001)
        return answer


class LedgerFault(Enum):
    """When the ledger falls silent."""

    BEFORE_EFFECT = "before"
    AFTER_EFFECT = "after"


@dataclass(slots=True)
class Outcome:
    """What a controller knows at the end of a move."""

    attempt: str
    declined: Declined | None = None
    denied: Denied | None = None
    ended: list[Ended] = field(default_factory=list)

    def of(self, side: str) -> Ended | None:
        """The last word of one end."""
        words = [ended for ended in self.ended if ended.side == side]
        return words[-1] if words else None

    @property
    def outcomes(self) -> tuple[str, str]:
        """(source, destination)."""
        return tuple(end.outcome if (end := self.of(side)) else "" for side in ("source", "destination"))  # type: ignore[return-value]


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """What kind of sessions a fleet plays."""

    first: Callable[[int], Toy] = Toy
    install: Callable[[Manifest, Placement, Arena], Toy] = install
    followed: tuple[str, ...] = ()


def no_room_beside(copy: Copy, num_bytes: int) -> ComponentSlot:
    """Nothing can be stepped by itself here."""
    raise MoveRefused("no_component", f"there is no room for {num_bytes} bytes")


class Fleet:
    """Everything, and the faults of it."""

    def __init__(self, *, transports: dict[str, Transport] | None = None, world: World | None = None) -> None:
        self.world = world or World()
        tokens = iter(range(1 << 40))
        loopback = Loopback(blocking=inline, tokens=lambda: next(tokens).to_bytes(32, "big"))
        self.transports = transports or {"loopback": loopback}
        self.source_config = SourceConfig()
        self.destination_config = DestinationConfig()
        self.gateway = Gateway(self)
        self.ledger_fault: Callable[[Worker, Operation], LedgerFault | None] = lambda worker, operation: None
        self.post_fault: Callable[[AnyMoveMessage], tuple[float, ...]] = lambda message: (0.0005,)
        self.on_reserve: Callable[[Copy], None] = lambda copy: None
        self.on_promote: Callable[[Copy], None] = lambda copy: None
        self.change: Callable[[AnyMoveMessage], AnyMoveMessage] = lambda message: message
        self.on_post: Callable[[AnyMoveMessage], None] = lambda message: None
        self.on_follow: Callable[[Copy], None] = lambda copy: None
        self.holds_follower = False
        self.waits_for_ready_s = 0.0
        """How long a source waits with its freeze for its destination's word that it is ready for it."""
        self.rolled: dict[str, tuple[int, int, int]] = {}
        self.finals: Callable[[Copy], tuple[str, ...]] = lambda copy: ()
        self.beside: Callable[[Copy, int], ComponentSlot] = no_room_beside
        self.has_no_room_aside = False
        self.says_still = False
        """Whether a source says when nothing writes its slot any more, as one on a device does."""
        self.num_closed = 0
        """Blocks whose lists are closed: nobody can compute a later one."""
        self.checked: list[tuple[int, bool]] = []
        """(block, equal): what retired copies found when they stepped it from the log."""
        self.logged: list[dict[str, object]] = []
        """What the workers' drivers have logged."""
        self.gone: list[tuple[str, int]] = []
        self.suspected: list[str] = []
        self.heard: asyncio.Queue[AnyMoveMessage] = asyncio.Queue()
        self.sent: list[AnyMoveMessage] = []
        self.row = Row(session=SESSION, owner="A", incarnation=1, epoch=1)
        self.rows: list[Row] = []
        self.workers = {name: Worker(self, name) for name in "AB"}
        self.workers["A"].open()
        self._timers: list[asyncio.TimerHandle] = []

    def take_arena(self) -> Arena:
        """Return a slot's memory."""
        return Arena(ARENA_BYTES, "toy")

    def give_arena(self, copy: Copy) -> None:
        """A slot is free."""

    # the server's part

    def decide(self, operation: Operation) -> Answer | None:
        """Run an operation on the ledger's row, with what the server knows."""
        self.row, answer = decide(self.row, operation, self.facts())
        self.rows.append(self.row)
        return answer

    def facts(self) -> Facts:
        row = self.row
        return Facts(
            owner=row.owner,
            incarnation=row.incarnation,
            epoch=row.epoch,
            owner_gone=self._gone(row),
            owner_suspected=row.owner in self.suspected,
            next_block=len(self.gateway.shown),
            closed_epoch=self.gateway.closed_epoch,
        )

    def _gone(self, row: Row) -> bool | None:
        if (row.owner, row.incarnation) in self.gone:
            return True
        return None if row.owner in self.suspected else False

    def post(self, sender: Worker | None, message: AnyMoveMessage) -> None:
        """Carry a message, as the fault of the day has it: each number is one delivery's delay."""
        if sender is not None and sender.dead:
            return
        message = msgspec.msgpack.decode(msgspec.msgpack.encode(message), type=AnyMoveMessage)
        message = self.change(message)
        self.sent.append(message)
        self.on_post(message)
        for delay in self.post_fault(message):
            loop = asyncio.get_running_loop()
            self._timers.append(loop.call_later(delay, self._arrive, message))

    def _arrive(self, message: AnyMoveMessage) -> None:
        if message.to == CONTROLLER:
            self.heard.put_nowait(message)
        elif message.to in self.workers:
            self.workers[message.to].deliver(message)

    # what tests look at

    def copies(self, plays: Plays) -> list[Copy]:
        return [copy for worker in self.workers.values() for copy in worker.copies if copy.plays is plays]

    @property
    def owner(self) -> Copy:
        (copy,) = self.copies(Plays.LIVE)
        return copy

    async def one_goes_on(self, num_blocks: int = 3) -> str:
        """One copy plays, and every block that it makes is shown. Return where."""
        await self.wait(40.0)  # longer than every wait of the drivers
        shown = len(self.gateway.shown)
        name = self.owner.worker.name
        await self.play(num_blocks)
        assert len(self.gateway.shown) == shown + num_blocks
        assert (self.row.owner, self.row.epoch) == (name, self.owner.epoch)
        return name

    def note_live(self, copy: Copy) -> None:
        """Two live copies may be there only if one of them was suspected."""
        live = [other for other in self.copies(Plays.LIVE) if other is not copy]
        assert not live or self.suspected, f"{copy.worker.name} plays beside {live[0].worker.name}"
        assert all(other.epoch != copy.epoch for other in live)

    async def play(self, num_blocks: int) -> None:
        """Let whoever owns the session play, for so many block times."""
        for _ in range(num_blocks):
            for copy in self.copies(Plays.LIVE):
                copy.play()
            await asyncio.sleep(BLOCK_S)

    def play_on(self) -> "Playing":
        """Let it be played in the background."""
        return Playing(asyncio.create_task(self.play(1 << 30)))

    async def wait(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def settled(self) -> None:
        """Wait until nobody but the owner holds a copy."""
        async with asyncio.timeout(60.0):
            while sum(len(worker.copies) for worker in self.workers.values()) != 1:  # noqa: ASYNC110
                await asyncio.sleep(BLOCK_S)

    def kill(self, name: str, *, noticed_after_s: float = 0.0) -> None:
        """Power a worker off; the server suspects it at once, and after a while it knows for certain."""
        incarnation = self.workers[name].incarnation
        self.workers[name].die()
        self.suspected.append(name)
        self._timers.append(asyncio.get_running_loop().call_later(noticed_after_s, self._notice, name, incarnation))

    def _notice(self, name: str, incarnation: int) -> None:
        self.gone.append((name, incarnation))

    def restart(self, name: str) -> None:
        """A killed worker comes back, empty, under its next incarnation."""
        self.workers[name] = Worker(self, name, self.workers[name].incarnation + 1)
        self.suspected.remove(name)

    def set_environment(self, name: str, fields: dict[str, str]) -> None:
        worker = self.workers[name]
        worker.host = replace(worker.host, environment=Environment(fields=fields))

    # a plain controller

    async def move(self, to: str, *, limit_s: float = 20.0, cancel_at: type | None = None) -> Outcome:
        """Move the session; come back when both ends have said their last word, or after ``limit_s``."""
        attempt = next_attempt(self.row, "t")
        outcome = Outcome(attempt=attempt)
        try:
            async with asyncio.timeout(limit_s):
                await self._move(to, outcome)
        except TimeoutError:
            self._cancel(outcome, to)
            self.decide(self._close(outcome))
            await self._collect(outcome, 20.0)
        if "aborted" in outcome.outcomes:
            self.decide(self._close(outcome))
        return outcome

    async def _move(self, to: str, outcome: Outcome) -> None:
        row, peer = self.row, self.workers[to]
        self.say(Prepare, row.owner, outcome.attempt, row.epoch, transport="loopback")
        prepared = await self._expect(outcome, Prepared, Declined)
        if isinstance(prepared, Declined):
            outcome.declined = prepared
            return
        assert isinstance(prepared, Prepared)
        self.say(
            Offer,
            to,
            outcome.attempt,
            row.epoch,
            layout=prepared.layout,
            environment=prepared.environment,
            ticket=prepared.ticket,
            nonce=bytes(range(32)),
            source=row.owner,
            source_incarnation=row.incarnation,
            transport=self.path,
            strategy=self.strategy,
            lease_s=2.0,
            patience_s=self.patience_s,
            affordable_bytes=self.affordable_bytes,
            pause_bytes=self.affordable_bytes if self.pause_bytes is None else self.pause_bytes,
        )
        reserved = await self._expect(outcome, Reserved, Declined, Ended)
        if not isinstance(reserved, Reserved):
            outcome.declined = reserved if isinstance(reserved, Declined) else None
            return
        answer = self.decide(
            OpenAttempt(
                session=SESSION,
                attempt=outcome.attempt,
                epoch=row.epoch,
                destination=to,
                destination_incarnation=peer.incarnation,
            )
        )
        if isinstance(answer, Denied):
            outcome.denied = answer
            self._cancel(outcome, to)
            return
        if self.strategy != "boundary copy" and not await self._is_ready(to, row, peer, outcome):
            self._cancel(outcome, to)
            await self._collect(outcome, 20.0)
            return
        self._start(row, peer, outcome)
        while not self._is_over(outcome):
            if isinstance(await self._expect(outcome, Ended, Ready), Ready):
                self._start(row, peer, outcome)  # it may have been lost

    def _start(self, row: Row, peer: Worker, outcome: Outcome) -> None:
        self.say(
            Start,
            row.owner or "",
            outcome.attempt,
            row.epoch,
            destination=peer.name,
            destination_incarnation=peer.incarnation,
            nonce=bytes(range(32)),
        )

    async def _is_ready(self, to: str, row: Row, peer: Worker, outcome: Outcome) -> bool:
        """Begin what comes before the boundary, again and again, until it is over."""
        begin: dict[str, object] = {
            "destination": to,
            "destination_incarnation": peer.incarnation,
            "nonce": bytes(range(32)),
            "lease_s": 2.0,
            "patience_s": self.patience_s,
            "strategy": self.strategy,
        }
        while True:
            for end in (row.owner, to):
                self.say(Begin, end, outcome.attempt, row.epoch, **begin)
            try:
                async with asyncio.timeout(0.5):
                    return isinstance(await self._expect(outcome, Ready, Ended), Ready)
            except TimeoutError:
                continue

    patience_s = 10.0
    affordable_bytes: int | None = None
    """What a destination may leave for the end."""
    pause_bytes: int | None = None
    """What of it in the pause; None: all."""
    path = "loopback"
    strategy = "boundary copy"

    def say(self, kind: type[AnyMoveMessage], to: str, attempt: str, epoch: int, **fields: object) -> None:
        self.post(
            None,
            kind(to=to, sender=CONTROLLER, incarnation=1, session=SESSION, attempt=attempt, epoch=epoch, **fields),  # type: ignore[arg-type]
        )

    def _cancel(self, outcome: Outcome, to: str) -> None:
        for worker in (self.row.owner, to):
            self.say(Cancel, worker, outcome.attempt, self.row.epoch)

    def _close(self, outcome: Outcome) -> CloseAttempt:
        return self.close_of(outcome.attempt)

    def close_of(self, attempt: str) -> CloseAttempt:
        """Return the controller's question that closes an attempt."""
        return CloseAttempt(
            session=SESSION, attempt=attempt, epoch=self.row.epoch, worker=CONTROLLER, incarnation=1, boundary=0
        )

    async def _expect(self, outcome: Outcome, *kinds: type) -> AnyMoveMessage:
        """Return the next message of these kinds about this attempt; an ``Ended`` is noted."""
        while True:
            message = await self.heard.get()
            if message.attempt != outcome.attempt:
                continue
            if isinstance(message, Ended):
                outcome.ended.append(message)
            if isinstance(message, kinds):
                return message

    async def _collect(self, outcome: Outcome, wait_s: float) -> None:
        try:
            async with asyncio.timeout(wait_s):
                while not self._is_over(outcome):
                    await self._expect(outcome, Ended)
        except TimeoutError:
            return

    def _is_over(self, outcome: Outcome) -> bool:
        ends = [outcome.of("source"), outcome.of("destination")]
        return all(end and end.outcome != "in_doubt" for end in ends)


@dataclass(frozen=True, slots=True)
class Playing:
    """A session being played in the background."""

    task: asyncio.Task[None]

    async def end(self) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)
