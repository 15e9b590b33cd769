"""Moves of a GPU's sessions between two workers over the peer path, with the drivers as they are shipped."""

import asyncio
import random
from typing import Any

import pytest

from tests.worker.bench_worker import inline
from tests.worker.device_engine import DeviceEngine
from tests.worker.test_move_between_workers import Pair
from worldmove.move.ledger_row import Facts
from worldmove.move.messages import Ended
from worldmove.transport.base import Transport
from worldmove.transport.loopback import Loopback
from worldmove.transport.peer import Peer
from worldmove.transport.staged import Staged
from worldmove.transport.wrappers import Corrupting, Damage, DamagePlan
from worldmove.worker.messages import BlockDone, CheckDone

ARENA_BYTES = 64 << 20


def peer(kit: Any) -> Peer:
    tokens = iter(range(1000))
    cards = Loopback(blocking=inline, tokens=lambda: next(tokens).to_bytes(32, "big"))
    return Peer(kit=kit, cards=cards, blocking=inline)


def a_move(path: Transport, rows: int = 4096, inner: Staged | None = None) -> tuple[Ended, Pair]:
    """Move once. ``inner``: what of the path is to be started before and closed after."""

    async def run() -> tuple[Ended, Pair]:
        if inner is None:
            return await move()
        await inner.start()
        try:
            return await move()
        finally:
            await inner.close()

    async def move() -> tuple[Ended, Pair]:
        engines = [DeviceEngine(device="cuda", rows=rows) for _ in "ab"]
        pair = Pair(engines=engines, transports={"path": path}, arena_bytes=ARENA_BYTES)
        await pair.open_on_a(3)
        pair.facts = Facts(owner="a", incarnation=1, epoch=1, owner_gone=False, next_block=3)
        await pair.start_move("path")
        ended: Ended = await pair.hears(Ended)
        if ended.outcome == "committed":
            for each in pair.benches.values():
                each.inputs(3, 4)
            await pair.benches["b"].rest()
            pair.facts = Facts(owner="b", incarnation=1, epoch=2, owner_gone=False, next_block=5)
            for name in ("a", "b"):
                pair.acknowledge(name, 4)
            await pair.benches["a"].rest()
            await pair.benches["a"].rest()
        await pair.close()
        return ended, pair

    return asyncio.run(run())


def test_a_session_moves_and_its_retired_copy_agrees_with_what_is_played_on(kit: Any) -> None:
    ended, pair = a_move(peer(kit))
    assert ended.outcome == "committed"
    checks = [(done.frame_sha256, done.state_digest) for done in pair.benches["a"].of(CheckDone)]
    assert checks == [(done.frame_sha256, done.state_digest) for done in pair.benches["b"].of(BlockDone)]
    assert len(checks) == 2


@pytest.mark.parametrize("damage", list(Damage))
def test_damage_on_the_way_moves_nothing(kit: Any, damage: Damage) -> None:
    ended, pair = a_move(Corrupting(peer(kit), rng=random.Random(3), plan=DamagePlan(damage=damage)))
    assert ended.outcome == "aborted"
    assert ended.reason == ("transport" if damage is Damage.SHORT else "mismatch")
    assert pair.benches["b"].of(BlockDone) == []
