"""What a worker says of sessions that another one plays: it ends none of them, and nothing of it counts as theirs."""

import asyncio

from tests.fleet.fakes import SilentGateway
from tests.fleet.test_containment import Hosts, controller_over
from tests.move import virtual
from worldmove.fleet.controller import Controller
from worldmove.worker.messages import BlockDone, Failed, Replayed

OTHERWISE = (bytes(32),)


def block(session: str, number: int, epoch: int) -> BlockDone:
    return BlockDone(
        session=session, epoch=epoch, block=number, frames=b"", frame_sha256=OTHERWISE, notes=(), compute_s=0.01
    )


def told(gateway: SilentGateway, kind: type[object]) -> list[object]:
    return [message for event, message in gateway.told if event == "take" and isinstance(message, kind)]


async def of_two() -> tuple[Controller, Hosts, SilentGateway]:
    gateway = SilentGateway()
    controller, hosts, _ = controller_over(gateway, [])
    await controller.start()
    await controller.open("s", 1, "a", protect_every=4)
    return controller, hosts, gateway


def test_nobody_but_who_plays_an_epoch_says_how_its_blocks_were_computed_anew() -> None:
    async def run() -> None:
        controller, hosts, gateway = await of_two()
        for worker, epoch in (("b", 1), ("b", 2), ("a", 2)):
            hosts.heard[worker](Replayed(session="s", epoch=epoch, block=3, frame_sha256=OTHERWISE))
        assert told(gateway, Replayed) == []
        own = Replayed(session="s", epoch=1, block=3, frame_sha256=OTHERWISE)
        hosts.heard["a"](own)
        assert told(gateway, Replayed) == [own]
        await controller.stop()

    virtual.run(run())


def test_nobody_but_who_plays_an_epoch_says_how_far_it_has_come() -> None:
    async def run() -> None:
        controller, hosts, _ = await of_two()
        hosts.heard["a"](block("s", 7, 1))
        for worker, epoch in (("b", 1), ("b", 2), ("a", 2)):
            hosts.heard[worker](block("s", 1 << 40, epoch))
        record = controller._books.sessions.get("s")
        assert record.computed == 8
        await controller.stop()

    virtual.run(run())


def test_a_throw_away_copy_ends_with_its_own_workers_word_only() -> None:
    async def run() -> None:
        controller, hosts, gateway = await of_two()
        copy = await controller.open_throwaway("s", b"", 1)
        failed = Failed(session=copy.name, code="engine_failed", message="why")
        other = next(name for name in ("a", "b") if name != copy.owner)
        hosts.heard[other](failed)
        assert "lost" not in [event for event, _ in gateway.told]
        hosts.heard[copy.owner](failed)
        assert "lost" in [event for event, _ in gateway.told]
        await asyncio.sleep(0)
        await controller.stop()

    virtual.run(run())
