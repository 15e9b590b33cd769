"""A block that can never be shown, as its frames are not of the engine: said, its owner replaced, no world left."""

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from structlog.testing import capture_logs

from tests.serve.test_gateway import House, Watcher, in_house
from tests.serve.test_resumed import SESSION, Restart, Returning, restarted
from worldmove.serve.show import Verdict
from worldmove.serve.stalls import LEAST_S
from worldmove.worker.messages import BlockDone

Change = Callable[[BlockDone], BlockDone]


def other(**fields: Callable[[BlockDone], object]) -> Change:
    return lambda block: msgspec.structs.replace(block, **{name: made(block) for name, made in fields.items()})


OTHER: dict[str, Change] = {
    "none": other(frames=lambda block: b""),
    "fewer bytes": other(frames=lambda block: block.frames[:-1]),
    "more bytes": other(frames=lambda block: block.frames + b"\0"),
    "fewer notes": other(notes=lambda block: block.notes[:-1]),
    "more notes": other(notes=lambda block: block.notes * 2),
    "fewer digests": other(frame_sha256=lambda block: block.frame_sha256[:-1]),
    "more digests": other(frame_sha256=lambda block: block.frame_sha256 * 2),
    "another engine's": other(
        frames=lambda block: block.frames * 2,
        notes=lambda block: block.notes * 2,
        frame_sha256=lambda block: block.frame_sha256 * 2,
    ),
}
BAD = 4


def spoil(house: House, change: Change, sent: list[BlockDone]) -> None:
    """From block BAD on the owner sends other blocks, which are kept."""

    def spoilt(_: str, block: BlockDone) -> BlockDone:
        if block.block < BAD:
            return block
        sent.append(change(block))
        return sent[-1]

    house.fleet.on_block = spoilt


@pytest.mark.parametrize("found", OTHER)
def test_an_owner_whose_block_can_never_be_shown_is_replaced_and_that_is_said_with_its_reason(found: str) -> None:
    said: list[Any] = []

    async def work(house: House) -> None:
        sent: list[BlockDone] = []
        spoil(house, OTHER[found], sent)
        session = (await house.desk.open(seed=7, on=None)).name
        watcher = Watcher(house, session)
        watcher.press(("up", True))
        await watcher.until(lambda: house.fleet.disowned)
        await asyncio.sleep(0.2)
        assert house.gateway.next_block(session) == BAD
        assert {header.block for header, _ in watcher.frames()} == set(range(BAD))
        ((name, epoch, why),) = house.fleet.disowned
        assert (name, epoch) == (session, 1)
        assert why.startswith(f"its block {BAD} has ")
        said.append(why)
        house.gateway.close_epoch(session, 1)  # as its controller does
        house.gateway.take("a", sent[0])  # its word was lost with a link, and it comes again
        await watcher.until(lambda: len(house.fleet.disowned) == 2)
        house.gateway.take("b", sent[0])  # of who owns nothing here
        await asyncio.sleep(0.2)
        assert len(house.fleet.disowned) == 2

    with capture_logs() as logs:
        in_house(work)
    lines = [line for line in logs if line["event"] == "block malformed"]
    assert [(line["log_level"], line["worker"], line["why"]) for line in lines] == [("warning", "a", said[0])] * 2


@pytest.mark.parametrize("verdict", [Verdict.MALFORMED, Verdict.AHEAD, Verdict.OTHER_EPOCH])
def test_a_block_that_came_and_was_not_shown_is_still_awaited(verdict: Verdict) -> None:
    changes: dict[Verdict, Change] = {
        Verdict.MALFORMED: OTHER["none"],
        Verdict.AHEAD: lambda block: msgspec.structs.replace(block, block=block.block + 1),
        Verdict.OTHER_EPOCH: lambda block: msgspec.structs.replace(block, epoch=block.epoch + 1),
    }

    async def work(house: House) -> None:
        spoil(house, changes[verdict], [])
        session = (await house.desk.open(seed=7, on=None)).name
        watcher = Watcher(house, session)
        watcher.press(("up", True))
        await watcher.until_block(BAD - 1)
        await asyncio.sleep(LEAST_S + 1.0)
        assert house.gateway.stalls.stalled_s(session) == pytest.approx(LEAST_S + 1.0, abs=0.5)

    with capture_logs() as logs:
        in_house(work)
    assert [line["log_level"] for line in logs if line["event"] == "session_stalled"] == ["warning"]


def test_a_throw_away_copy_whose_blocks_cannot_be_shown_ends_with_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("worldmove.serve.recover.LOOK_S", 0.05)

    async def work(house: House) -> None:
        session = (await house.desk.open(seed=7, on=None)).name
        watcher = Watcher(house, session)
        watcher.press(("up", True), ("up", False))
        await watcher.until(lambda: len(house.gateway.live(session).screen.walked) == 1)
        house.fleet.on_block = lambda _, block: OTHER["none"](block) if block.session != session else block
        await house.desk.recover(session)
        await watcher.until(lambda: [m for m in watcher.texts("recover") if m["state"] == "closed"])
        ((told),) = watcher.texts("error")
        assert told["code"] == "recover"
        assert "its block 0 has 0 bytes of pictures" in told["message"]

    in_house(work)


def test_a_world_that_an_earlier_server_has_shown_is_kept_for_one_that_can_and_is_said_to_stand() -> None:
    async def work(restart: Restart) -> None:
        restart.owner_reports(8)
        restart.gateway.may_close(SESSION)
        sent: list[BlockDone] = []
        restart.house.fleet.on_block = lambda _, block: sent.append(OTHER["more bytes"](block)) or sent[-1]  # type: ignore[func-returns-value]
        watcher = Returning(restart.house, 7)
        watcher.press(("up", True))
        await watcher.until(lambda: sent)
        await asyncio.sleep(1.0)
        assert restart.gateway.next_block(SESSION) == sent[0].block
        assert restart.house.fleet.disowned == []

    with capture_logs() as logs:
        restarted(work)
    assert "warning" in [line["log_level"] for line in logs if line["event"] == "block malformed"]
