"""Sessions on a device (the double stands in for a GPU) move between workers, and a path that lies moves nothing."""

import asyncio
import random
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar

import pytest

from tests.worker.bench_worker import inline
from tests.worker.device_engine import DeviceEngine
from tests.worker.test_move_between_workers import Pair
from worldmove.errors import TransportError
from worldmove.move.ledger_row import Facts
from worldmove.move.messages import Declined, Ended
from worldmove.state.device_window import DeviceWindow
from worldmove.state.extent import Extent
from worldmove.state.kits import kit_of
from worldmove.transport.base import Transport
from worldmove.transport.loopback import Loopback
from worldmove.transport.peer import Peer, PeerChannel
from worldmove.transport.wrappers import Corrupting, Damage, DamagePlan
from worldmove.worker.messages import BlockDone, CheckDone

ARENA_BYTES = 1 << 20

AnyPeer = TypeVar("AnyPeer", bound=Peer)


def peer(kind: type[AnyPeer] = Peer) -> AnyPeer:  # type: ignore[assignment]
    tokens = iter(range(1000))
    cards = Loopback(blocking=inline, tokens=lambda: next(tokens).to_bytes(32, "big"))
    kit = kit_of("double")
    assert kit is not None
    return kind(kit=kit, cards=cards, blocking=inline)


def moved(path: Transport, trial: Callable[[Pair], Coroutine[Any, Any, None]]) -> None:
    async def run() -> None:
        pair = Pair(engines=(DeviceEngine(), DeviceEngine()), transports={"path": path}, arena_bytes=ARENA_BYTES)
        try:
            await pair.open_on_a(3)
            await trial(pair)
        finally:
            await pair.close()
        assert pair.benches["a"].failures == pair.benches["b"].failures == []

    asyncio.run(run())


def test_a_session_on_a_device_goes_on_at_the_other_worker_and_its_retired_copy_agrees() -> None:
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

    moved(peer(), trial)


@pytest.mark.parametrize("damage", list(Damage))
def test_damage_on_the_way_to_a_device_moves_nothing_and_the_source_plays_on(damage: Damage) -> None:
    async def trial(pair: Pair) -> None:
        await pair.start_move("path")
        ended: Ended = await pair.hears(Ended)
        assert ended.outcome == "aborted"
        assert ended.reason == ("transport" if damage is Damage.SHORT else "mismatch")
        assert pair.benches["b"].of(BlockDone) == []

    moved(Corrupting(peer(), rng=random.Random(3), plan=DamagePlan(damage=damage)), trial)


class Lying(Peer):
    """A peer whose channels do what ``lie`` does instead of a pull, and report success."""

    lie: Callable[[int, Sequence[Extent], DeviceWindow], None]

    async def connect(self, ticket: bytes) -> PeerChannel:
        honest, lie = await super().connect(ticket), self.lie

        class LyingChannel(PeerChannel):
            async def pull_to_device(self, extents: Sequence[Extent], into: DeviceWindow) -> None:
                assert honest._memory is not None
                lie(honest._memory.address, extents, into)

        assert honest._memory is not None
        return LyingChannel(honest._memory, inline)


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


SEAMS = (("start_copy", 1), ("start_copy", 2), ("fingerprints", 1), ("fingerprints", 2), ("fingerprints", 3))
"""What fails, and which call of it: the gathering, the pull, the source's two passes, the destination's one."""


@pytest.mark.parametrize(("call", "number"), SEAMS)
def test_a_device_that_fails_in_the_middle_of_a_move_ends_it_and_its_owner_plays_on(
    monkeypatch: pytest.MonkeyPatch, call: str, number: int
) -> None:
    kit = kit_of("double")
    assert kit is not None
    works, calls = getattr(kit, call), iter(range(1, 1000))

    def fails(*arguments: Any) -> Any:
        if next(calls) == number:
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

    moved(peer(), trial)


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
