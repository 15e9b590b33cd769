"""Sessions on a device (the double stands in for a GPU) move between workers, and a path that lies moves nothing."""

import asyncio
import os
import random
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from tempfile import gettempdir
from typing import Any, TypeVar

import pytest
import torch

from tests.worker.bench_worker import inline
from tests.worker.device_engine import DeviceEngine, World
from tests.worker.test_move_between_workers import Pair
from worldmove.engine.base import Block, KeyChange, Tree
from worldmove.errors import TransportError
from worldmove.move.ledger_row import Facts
from worldmove.move.messages import Declined, Ended
from worldmove.state.device_window import DeviceWindow
from worldmove.state.double_copying import Done
from worldmove.state.extent import Extent
from worldmove.state.kits import kit_of
from worldmove.state.memory import Piece
from worldmove.transport.base import Transport
from worldmove.transport.loopback import Loopback
from worldmove.transport.peer import Peer, PeerChannel
from worldmove.transport.ring import RingShape
from worldmove.transport.staged import Staged
from worldmove.transport.staged_serving import StagedConfig
from worldmove.transport.wrappers import Corrupting, Damage, DamagePlan
from worldmove.worker.messages import BlockDone, CheckDone
from worldmove.worker.shadow import Shadow
from worldmove.worker.threads import OneThread

ARENA_BYTES = 1 << 20

AnyPeer = TypeVar("AnyPeer", bound=Peer)


def peer(kind: type[AnyPeer] = Peer) -> AnyPeer:  # type: ignore[assignment]
    tokens = iter(range(1000))
    cards = Loopback(blocking=inline, tokens=lambda: next(tokens).to_bytes(32, "big"))
    kit = kit_of("double")
    assert kit is not None
    return kind(kit=kit, cards=cards, blocking=inline)


def staged() -> Staged:
    kit = kit_of("double")
    assert kit is not None
    # One name for each process: a test has ended, and its socket with it, before the next one begins.
    config = StagedConfig(path=Path(gettempdir()) / f"worldmove-test-{os.getpid()}.ring", shape=RingShape(8192, 3))
    return Staged(config=config, kit=kit, new_thread=OneThread, tokens=lambda: os.urandom(32))


PATHS: dict[str, Callable[[], Peer | Staged]] = {"peer": peer, "staged": staged}
over_each = pytest.mark.parametrize("path", PATHS)


@asynccontextmanager
async def started(path: Peer | Staged) -> AsyncIterator[None]:
    if isinstance(path, Staged):
        await path.start()
    try:
        yield
    finally:
        if isinstance(path, Staged):
            await path.close()


def moved(
    path: Transport,
    trial: Callable[[Pair], Coroutine[Any, Any, None]],
    inner: Peer | Staged | None = None,
    *,
    engine: type[DeviceEngine] = DeviceEngine,
) -> None:
    async def run() -> None:
        if isinstance(path, Peer | Staged):
            async with started(path):
                await play()
        elif inner is not None:
            async with started(inner):
                await play()
        else:
            await play()

    async def play() -> None:
        pair = Pair(engines=(engine(), engine()), transports={"path": path}, arena_bytes=ARENA_BYTES)
        try:
            await pair.open_on_a(3)
            await trial(pair)
        finally:
            await pair.close()
        assert pair.benches["a"].failures == pair.benches["b"].failures == []

    asyncio.run(run())


@over_each
def test_a_session_on_a_device_goes_on_at_the_other_worker_and_its_retired_copy_agrees(path: str) -> None:
    async def trial(pair: Pair) -> None:
        pair.facts = Facts(owner="a", incarnation=1, epoch=1, owner_gone=False, next_block=3)
        await pair.start_move("path")
        ended: Ended = await pair.hears(Ended)
        assert ended.outcome == "committed"
        a, b = pair.benches["a"], pair.benches["b"]
        for each in (a, b):
            each.inputs(3, 4)
        await b.rest()
        assert b.blocks() == [3, 4]
        pair.facts = Facts(owner="b", incarnation=1, epoch=2, owner_gone=False, next_block=5)
        for name in ("a", "b"):
            pair.acknowledge(name, 4)
        await a.rest()
        await a.rest()
        checks = [(done.frame_sha256, done.state_digest) for done in a.of(CheckDone)]
        assert checks == [(done.frame_sha256, done.state_digest) for done in b.of(BlockDone)]
        assert checks[0][1].startswith("wmf1+xxh3-128:")

    moved(PATHS[path](), trial)


@over_each
@pytest.mark.parametrize("damage", list(Damage))
def test_damage_on_the_way_to_a_device_moves_nothing_and_the_source_plays_on(damage: Damage, path: str) -> None:
    async def trial(pair: Pair) -> None:
        await pair.start_move("path")
        ended: Ended = await pair.hears(Ended)
        assert ended.outcome == "aborted"
        assert ended.reason == ("transport" if damage is Damage.SHORT else "mismatch")
        assert pair.benches["b"].of(BlockDone) == []

    inner = PATHS[path]()
    moved(Corrupting(inner, rng=random.Random(3), plan=DamagePlan(damage=damage)), trial, inner)


@pytest.mark.parametrize("call", ["start_copy_out", "start_copy_in"])
@pytest.mark.parametrize("lie", ["nothing is copied", "one byte is missing", "it is copied from elsewhere"])
def test_a_ring_that_holds_other_bytes_than_were_frozen_moves_nothing(
    monkeypatch: pytest.MonkeyPatch, call: str, lie: str
) -> None:
    path = staged()
    kit = kit_of("double")
    assert kit is not None
    honest: Callable[[Sequence[Piece]], Done] = getattr(kit, call)

    def lies(pieces: Sequence[Piece]) -> Done:
        if lie == "nothing is copied":
            return Done()
        if lie == "one byte is missing":
            return honest([*pieces[:-1], pieces[-1]._replace(length=pieces[-1].length - 1)])
        return honest([piece._replace(source=pieces[0].source) for piece in pieces[1:]])

    async def trial(pair: Pair) -> None:
        monkeypatch.setattr(kit, call, lies)
        await pair.start_move("path")
        ended: Ended = await pair.hears(Ended)
        assert (ended.outcome, ended.reason) == ("aborted", "mismatch")
        assert pair.benches["b"].of(BlockDone) == []

    moved(path, trial)


class Lying(Peer):
    """A peer whose channels do what ``lie`` does instead of a pull, and report success."""

    lie: Callable[[int, Sequence[Extent], DeviceWindow], None]

    async def connect(self, ticket: bytes) -> PeerChannel:
        honest, lie = await super().connect(ticket), self.lie

        class LyingChannel(PeerChannel):
            def ready_to_device(self, extents: Sequence[Extent], into: DeviceWindow) -> Callable[[], Done]:
                def begin() -> Done:
                    assert honest._memory is not None
                    lie(honest._memory.address, extents, into)
                    return Done()

                return begin

        assert honest._memory is not None
        return LyingChannel(honest._memory, self._kit, inline)


def nothing(source: int, extents: Sequence[Extent], into: DeviceWindow) -> None:
    """Write nothing."""


def elsewhere(source: int, extents: Sequence[Extent], into: DeviceWindow) -> None:
    """Write what belongs to another place."""
    into.start_copy(source + 256, [Extent(offset=e.offset, length=max(e.length - 256, 0)) for e in extents])


class Unfinished:
    """A copy that is still under way."""

    def is_done(self) -> bool:
        return False

    def wait(self) -> None:
        return


def late(source: int, extents: Sequence[Extent], into: DeviceWindow) -> None:
    """Write, and go on writing."""
    into.start_copy(source, extents)
    into._started.append(Unfinished())


@pytest.mark.parametrize(("lie", "reason"), [(nothing, "mismatch"), (elsewhere, "mismatch"), (late, "transport")])
def test_a_peer_that_reports_success_and_lies_moves_nothing(lie: Any, reason: str) -> None:
    async def trial(pair: Pair) -> None:
        await pair.start_move("path")
        ended: Ended = await pair.hears(Ended)
        assert (ended.outcome, ended.reason) == ("aborted", reason)
        assert pair.benches["b"].of(BlockDone) == []

    path = peer(Lying)
    path.lie = lie
    moved(path, trial)


class Ordered:
    """A kit that does what it is asked for late and in order, as a device does: when somebody waits for it."""

    def __init__(self, kit: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        self._queue: list[Callable[[], None]] = []
        for name in ("start_copy", "begin_fingerprints"):
            monkeypatch.setattr(kit, name, self._later(getattr(kit, name)))
        for name in ("read", "write", "read_all", "write_all", "poison"):
            monkeypatch.setattr(kit, name, self._after_all(getattr(kit, name)))

    def put(self, job: Callable[[], None]) -> None:
        self._queue.append(job)

    def drain(self) -> None:
        while self._queue:
            self._queue.pop(0)()

    def _later(self, works: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *asked: _Later(self, partial(works, *asked))

    def _after_all(self, works: Callable[..., Any]) -> Callable[..., Any]:
        def works_later(*asked: Any) -> Any:
            self.drain()
            return works(*asked)

        return works_later


class _Later:
    """A copy, or digests, on their way."""

    def __init__(self, order: Ordered, job: Callable[[], Any]) -> None:
        self._order, self._job = order, job
        self._done: Any = None
        order.put(self._run)

    def _run(self) -> None:
        self._done = self._job()

    def is_done(self) -> bool:
        return self._done is not None

    def wait(self) -> None:
        self._order.drain()

    def joined(self) -> bytes:
        self._order.drain()
        digests: bytes = self._done.joined()
        return digests


class Unread(DeviceEngine):
    """All of it lies on the device, and an install reads none of it."""

    installs_unread = True

    def open(self, seed: int) -> World:
        world = super().open(seed)
        world.counts = torch.zeros(256, dtype=torch.int64)
        return world

    def step(self, session: World, changes: Sequence[KeyChange]) -> Block:
        session.counts, counts = session.counts[:3], session.counts
        block = super().step(session, changes)
        session.counts = counts  # a window of which is added to
        return block


class Reads(Unread):
    """It says that it reads nothing."""

    def install(self, state: Tree, into: World | None = None) -> World:
        world = super().install(state, into)
        world.number = int(world.counts[0])
        return world


@pytest.mark.parametrize(("engine", "outcome"), [(Unread, "committed"), (Reads, "aborted")])
def test_what_is_installed_while_it_lands_is_read_after_it_has_landed(
    monkeypatch: pytest.MonkeyPatch, engine: type[Unread], outcome: str
) -> None:
    waits: list[bool] = []
    real = Shadow.install_landing

    async def noted(self: Shadow, *asked: Any) -> Any:
        found = await real(self, *asked)
        waits.append(found is None)
        return found

    async def trial(pair: Pair) -> None:
        monkeypatch.setattr(Shadow, "install_landing", noted)
        Ordered(kit_of("double"), monkeypatch)
        await pair.start_move("path")
        ended: Ended = await pair.hears(Ended)
        assert ended.outcome == outcome
        assert waits == [False]

    moved(peer(), trial, engine=engine)


SEAMS = (
    *(("peer", "start_copy", 1), ("peer", "start_copy", 2), ("peer", "fingerprints", 1), ("peer", "fingerprints", 2)),
    *(("peer", "fingerprints", 3), ("staged", "start_copy_out", 2), ("staged", "start_copy_in", 2)),
)
"""What fails, and which call of it: the gathering, the pull, the source's two passes, the destination's one; and a load
of a pull through host memory, at either end."""


@pytest.mark.parametrize(("path", "call", "number"), SEAMS)
def test_a_device_that_fails_in_the_middle_of_a_move_ends_it_and_its_owner_plays_on(
    monkeypatch: pytest.MonkeyPatch, path: str, call: str, number: int
) -> None:
    kit = kit_of("double")
    assert kit is not None
    works, calls = getattr(kit, call), iter(range(1, 1000))

    def fails(*arguments: Any) -> Any:
        if next(calls) >= number:
            raise TransportError("the device has failed")
        return works(*arguments)

    async def trial(pair: Pair) -> None:
        monkeypatch.setattr(kit, call, fails)
        await pair.start_move("path")
        ended: Ended = await pair.hears(Ended)
        assert (ended.outcome, ended.reason) == ("aborted", "transport")
        assert "the device has failed" in ended.detail
        monkeypatch.setattr(kit, call, works)
        await pair.settle()
        row = await pair.ledger.row("s-1")
        assert row is not None
        assert (row.owner, row.epoch) == ("a", 1)
        a, b = pair.benches["a"], pair.benches["b"]
        a.inputs(3, 4)
        await a.rest()
        assert a.blocks() == [0, 1, 2, 3, 4]
        assert b.blocks() == []

    moved(PATHS[path](), trial)


def test_another_device_is_refused_before_a_byte_travels_and_each_differing_field_is_named() -> None:
    here = {
        "device.name": "NVIDIA H200",
        "device.num_processors": "132",
        "device.driver": "13000",
        "cuda.cudnn": "91200",
    }
    there = here | {"device.num_processors": "114", "cuda.cudnn": "91300"}

    async def run() -> Declined:
        pair = Pair(
            engines=(DeviceEngine(), DeviceEngine()),
            transports={"path": peer()},
            arena_bytes=ARENA_BYTES,
            environments={"a": here, "b": there},
        )
        await pair.open_on_a(3)
        await pair.offer("path")
        declined: Declined = await pair.hears(Declined)
        await pair.close()
        return declined

    declined = asyncio.run(run())
    assert declined.reason == "environment"
    assert "device.num_processors is 114 here and 132 there" in declined.detail
    assert "cuda.cudnn" in declined.detail
    assert "device.name" not in declined.detail


def test_a_path_between_hosts_memories_declines_a_slot_on_a_device() -> None:
    async def trial(pair: Pair) -> None:
        pair.prepare("path")
        declined: Declined = await pair.hears(Declined)
        assert (declined.reason, "no device" in declined.detail) == ("transport", True)

    tokens = iter(range(1000))
    moved(Loopback(blocking=inline, tokens=lambda: next(tokens).to_bytes(32, "big")), trial)
