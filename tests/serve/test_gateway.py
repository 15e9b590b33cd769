"""The gateway over a fleet without processes: what players see, what workers are sent, what is acknowledged."""

import asyncio
import hashlib
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest

from tests.move import virtual
from tests.serve.fakes import RECEIPTS, SPEC, Counting, FakeFleet, FakeIds, FakeSocket
from worldmove.errors import UserError
from worldmove.fleet.failover_report import FailoverOutcome, FailoverReport
from worldmove.fleet.ports import Owner
from worldmove.fleet.reports import Outcome
from worldmove.serve.desk import Desk
from worldmove.serve.frames import FrameHeader, Kind, unpack
from worldmove.serve.gateway import Gateway
from worldmove.serve.gateway_config import GatewayConfig
from worldmove.serve.limits import PlayLimits
from worldmove.serve.live_config import LiveConfig
from worldmove.serve.metrics import Metrics
from worldmove.serve.player import CloseCode, Player
from worldmove.serve.receipts import claim_of
from worldmove.serve.wording import engine_info
from worldmove.worker.messages import BlockDone, Failed, Inputs, Replayed

LIFE = 77


@dataclass
class House:
    fleet: FakeFleet
    gateway: Gateway
    desk: Desk


class Watcher:
    """One player and its socket; ``run`` sends beside the test."""

    def __init__(
        self,
        house: House,
        session: str,
        *,
        controls: bool = True,
        stuck: bool = False,
        limit: int = 64,
        received: int | None = None,
    ) -> None:
        self.house, self.session = house, session
        self.socket = FakeSocket(stuck=stuck)
        self.player = Player(self.socket, limits=PlayLimits(max_waiting=limit))
        self.number = 0
        claim = None if received is None else claim_of(received, RECEIPTS.of(session, received))
        house.desk.join(session, self.player, controls=controls, received=claim)
        self.task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        try:
            await self.player.run()
        finally:
            self.house.desk.leave(self.session, self.player)

    def press(self, *changes: tuple[str, bool]) -> None:
        numbered = [[self.number + index, key, down] for index, (key, down) in enumerate(changes, start=1)]
        self.number += len(changes)
        self.hear({"type": "keys", "changes": numbered})

    def hear(self, message: dict[str, Any]) -> None:
        self.house.desk.hear(self.session, self.player, json.dumps(message))

    def leave(self) -> None:
        self.task.cancel()

    def texts(self, kind: str) -> list[dict[str, Any]]:
        messages = [json.loads(message) for message in self.socket.sent if isinstance(message, str)]
        return [message for message in messages if message["type"] == kind]

    def frames(self, kind: Kind = Kind.LIVE) -> list[tuple[FrameHeader, bytes]]:
        frames = [unpack(message) for message in self.socket.sent if isinstance(message, bytes)]
        return [frame for frame in frames if frame[0].kind is kind]

    async def until(self, holds: Callable[[], object], within_s: float = 5.0) -> None:
        async with asyncio.timeout(within_s):
            while not holds():  # noqa: ASYNC110  (what is waited for has no event of its own)
                await asyncio.sleep(0.005)

    async def until_block(self, block: int) -> None:
        await self.until(lambda: any(header.block == block and header.index == 1 for header, _ in self.frames()))


def in_house(
    work: Callable[[House], Awaitable[None]],
    *,
    compute_s: float = 0.001,
    keep_s: float = 60.0,
    rest_after_s: float = 0.3,
    **settings: Any,
) -> None:
    async def run() -> None:
        fleet = FakeFleet(compute_s=compute_s)
        live = LiveConfig(spec=SPEC, server_life=LIFE, receipts=RECEIPTS, rest_after_s=rest_after_s)
        config = GatewayConfig(live=live, keep_s=keep_s, look_every_s=0.02, gap_within_s=0.5, **settings)
        gateway = Gateway(fleet=fleet, config=config, metrics=Metrics())
        fleet.attach(gateway)
        desk = Desk(gateway, engine=engine_info(SPEC, 8), ids=FakeIds())
        looking = asyncio.create_task(gateway.run())
        try:
            await work(House(fleet=fleet, gateway=gateway, desk=desk))
        finally:
            await gateway.end()
            looking.cancel()

    virtual.run(run())


def replayed(house: House, session: str, seed: int = 7) -> dict[int, bytes]:
    """Every block of a session, computed anew from its log alone."""
    world, log = Counting(seed), house.fleet.sessions_by_name[session].log
    return {block: world.step(log[block])[0] for block in range(len(log))}


def test_a_watched_world_plays_and_every_frame_equals_a_replay_of_the_log() -> None:
    async def work(house: House) -> None:
        session = (await house.desk.open(seed=7, on=None)).name
        watcher = Watcher(house, session)
        watcher.press(("up", True))
        await watcher.until_block(6)
        watcher.press(("up", False), ("flag", True), ("flag", False))
        await watcher.until_block(10)
        expected = replayed(house, session)
        headers = [header for header, _ in watcher.frames()]
        assert [header.frame for header in headers] == list(range(len(headers)))
        for header, pixels in watcher.frames():
            size = len(pixels)
            assert pixels == expected[header.block][header.index * size : (header.index + 1) * size]
            assert header.sha256 == hashlib.sha256(pixels).digest()
            assert header.server_life == LIFE
        log = house.fleet.sessions_by_name[session].log
        numbers = [change.number for block in sorted(log) for change in log[block].changes]
        assert numbers == [1, 2, 3, 4]

    in_house(work)


def test_hello_comes_first_and_says_what_the_client_needs() -> None:
    async def work(house: House) -> None:
        session = (await house.desk.open(seed=7, on=None)).name
        watcher = Watcher(house, session)
        await watcher.until(watcher.frames)
        first = json.loads(str(watcher.socket.sent[0]))
        assert first["type"] == "hello"
        assert first["owner"] == {"worker": "a", "pid": 100, "epoch": 1}
        assert first["engine"]["keys"] == list(SPEC.keys)
        assert (first["next_number"], first["next_block"], first["controls"]) == (1, 0, True)
        assert (first["num_parts"], first["num_bytes"], first["server_life"]) == (4, 32, LIFE)

    in_house(work)


def test_a_message_that_comes_twice_moves_the_world_once() -> None:
    async def work(house: House) -> None:
        session = (await house.desk.open(seed=7, on=None)).name
        watcher = Watcher(house, session)
        for _ in range(3):
            watcher.hear({"type": "keys", "changes": [[1, "up", True], [2, "up", False]]})
        await watcher.until_block(3)
        log = house.fleet.sessions_by_name[session].log
        assert [change.number for block in log for change in log[block].changes] == [1, 2]
        assert [message["number"] for message in watcher.texts("keys")] == [2, 2, 2]

    in_house(work)


def test_a_world_rests_when_no_key_was_down_and_goes_on_at_the_next_press() -> None:
    async def work(house: House) -> None:
        session = (await house.desk.open(seed=7, on=None)).name
        watcher = Watcher(house, session)
        await watcher.until(lambda: [m for m in watcher.texts("rest") if m["resting"]])
        reached = house.gateway.live(session).sequencer.reaches
        await asyncio.sleep(0.2)
        assert house.gateway.live(session).sequencer.reaches == reached
        watcher.press(("left", True))
        await watcher.until_block(reached)
        assert [m["resting"] for m in watcher.texts("rest")][-1] is False
        assert house.fleet.sessions_by_name[session].log[reached].changes[0].key == "left"

    in_house(work)


@pytest.mark.parametrize("by", ["a take-over", "silence"])
def test_what_keeps_a_world_going_goes_with_the_part_of_who_said_so(by: str) -> None:
    async def work(house: House) -> None:
        session = (await house.desk.open(seed=7, on=None)).name
        watcher = Watcher(house, session)
        watcher.hear({"type": "keep", "keep": True})
        if by == "a take-over":
            watcher = Watcher(house, session)
        await asyncio.sleep(2.0)
        assert house.gateway.live(session).resting_why is not None
        watcher.hear({"type": "keep", "keep": True})
        await watcher.until(lambda: house.gateway.live(session).resting_why is None)

    in_house(work, silent_s=1.0)


def test_keep_makes_a_world_go_on_without_keys_until_its_player_leaves() -> None:
    async def work(house: House) -> None:
        session = (await house.desk.open(seed=7, on=None)).name
        watcher = Watcher(house, session)
        watcher.hear({"type": "keep", "keep": True})
        await watcher.until_block(20)
        watcher.leave()
        other = Watcher(house, session, controls=False)
        await other.until(lambda: [m for m in other.texts("rest") if m["resting"]])

    in_house(work)


def test_a_world_that_nobody_watches_closes_no_list_and_is_closed_after_a_while() -> None:
    async def work(house: House) -> None:
        session = (await house.desk.open(seed=7, on=None)).name
        await asyncio.sleep(0.05)
        assert house.gateway.live(session).sequencer.reaches == 0
        await asyncio.sleep(0.2)
        with pytest.raises(UserError, match="no session s-1"):
            house.gateway.live(session)

    in_house(work, keep_s=0.1)


def test_the_newest_connection_has_the_controls_and_the_older_goes_on_watching() -> None:
    async def work(house: House) -> None:
        session = (await house.desk.open(seed=7, on=None)).name
        first = Watcher(house, session)
        first.press(("up", True))
        await first.until_block(2)
        second = Watcher(house, session)
        await first.until(lambda: first.texts("taken_over"))
        first.press(("down", True))
        await first.until(lambda: first.texts("error"))
        assert first.texts("error")[0]["code"] == "watching_only"
        await second.until(lambda: second.texts("hello"))
        second.number = second.texts("hello")[0]["next_number"] - 1
        second.press(("left", True), ("left", False))
        block = house.gateway.live(session).sequencer.reaches + 3
        await second.until_block(block)
        await first.until_block(block)
        log = house.fleet.sessions_by_name[session].log
        changes = [(c.number, c.key, c.down) for block in sorted(log) for c in log[block].changes]
        assert changes == [(1, "up", True), (1, "up", False), (2, "left", True), (3, "left", False)]

    in_house(work)


def test_a_player_who_vanishes_lets_go_of_every_key() -> None:
    async def work(house: House) -> None:
        session = (await house.desk.open(seed=7, on=None)).name
        watcher = Watcher(house, session)
        watcher.press(("up", True), ("left", True))
        await watcher.until_block(2)
        watcher.leave()
        back = Watcher(house, session)
        await back.until(lambda: back.texts("hello"))
        assert back.texts("hello")[0]["next_number"] == 3
        await back.until(lambda: [m for m in back.texts("rest") if m["resting"]])
        log = house.fleet.sessions_by_name[session].log
        changes = [(c.number, c.key, c.down) for block in sorted(log) for c in log[block].changes]
        assert changes[2:] == [(2, "up", False), (2, "left", False)]

    in_house(work)


def test_a_reload_shows_the_newest_block_at_once_without_waking_the_world() -> None:
    async def work(house: House) -> None:
        session = (await house.desk.open(seed=7, on=None)).name
        watcher = Watcher(house, session)
        await watcher.until(lambda: [m for m in watcher.texts("rest") if m["resting"]])
        newest = watcher.frames()[-2:]
        watcher.leave()
        await asyncio.sleep(0.05)
        reached = house.gateway.live(session).sequencer.reaches
        back = Watcher(house, session)
        await back.until(lambda: len(back.frames()) == 2)
        same = [(replace(header, show_after_ms=0), pixels) for header, pixels in back.frames()]
        assert same == [(replace(header, show_after_ms=0), pixels) for header, pixels in newest]
        await asyncio.sleep(0.1)
        assert house.gateway.live(session).sequencer.reaches == reached

    in_house(work)


def test_a_move_under_play_loses_no_frame_and_its_checks_are_equal() -> None:
    async def work(house: House) -> None:
        session = (await house.desk.open(seed=7, on=None)).name
        watcher = Watcher(house, session)
        watcher.press(("up", True))
        for to, block in (("b", 4), ("a", 8), ("b", 12)):
            await watcher.until_block(block)
            report = await house.desk.move(session, to, damage=False)
            assert report.outcome is Outcome.COMMITTED
            assert report.gap_s is not None
        await watcher.until_block(18)
        headers = [header for header, _ in watcher.frames()]
        assert [header.frame for header in headers] == list(range(len(headers)))
        assert sorted({header.epoch for header in headers}) == [1, 2, 3, 4]
        expected = replayed(house, session)
        assert all(pixels in expected[header.block] for header, pixels in watcher.frames())
        assert len(watcher.texts("check")) >= 6
        owed = [check for check in watcher.texts("check") if check["owner"]["state_digest"]]
        assert len(owed) == 6
        assert all(check["equal"] for check in owed)
        results = [m for m in watcher.texts("move") if m["event"] == "result"]
        assert [(m["from"], m["to"], m["outcome"], m["proof"]) for m in results] == [
            ("a", "b", "committed", "checked 4/4"),
            ("b", "a", "committed", "checked 4/4"),
            ("a", "b", "committed", "checked 4/4"),
        ]
        assert watcher.texts("counts")[-1]["moved"] == 3
        assert [m["epoch"] for m in watcher.texts("owner")] == [2, 3, 4]

    in_house(work, rest_after_s=5.0)


def test_the_gap_of_a_move_has_the_lateness_that_its_source_made_before_the_new_owner_was_on_time() -> None:
    async def work(house: House) -> None:
        session = (await house.desk.open(seed=7, on=None)).name
        watcher = Watcher(house, session)
        watcher.press(("up", True))
        await watcher.until_block(4)
        stalled: list[BlockDone] = []

        def stall(worker: str, block: BlockDone) -> BlockDone | None:
            stalled.extend([block] if worker == "a" else [])
            return None if worker == "a" else block

        house.fleet.on_block = stall
        await watcher.until(lambda: len(stalled) == 2)
        moving = asyncio.create_task(house.desk.move(session, "b", damage=False))
        await asyncio.sleep(0.5)
        house.fleet.on_block = lambda worker, block: block
        for block in stalled:
            house.gateway.take("a", block)
        report = await moving
        assert report.outcome is Outcome.COMMITTED
        assert report.gap_s is not None
        assert report.gap_s > 0.4
        assert house.fleet.moves()[-1].gap_s == report.gap_s

    in_house(work, rest_after_s=5.0)


def test_an_aborted_move_after_which_no_block_comes_has_the_delay_so_far_as_its_gap() -> None:
    async def work(house: House) -> None:
        session = (await house.desk.open(seed=7, on=None)).name
        watcher = Watcher(house, session)
        watcher.press(("up", True))
        await watcher.until_block(4)
        house.fleet.on_block = lambda worker, block: None
        report = await house.desk.move(session, "b", damage=True)
        assert report.outcome is Outcome.ABORTED
        assert report.gap_s is not None
        assert report.gap_s > 0.3

    in_house(work, rest_after_s=5.0)


def test_a_move_is_told_with_the_owner_that_the_row_names_by_then() -> None:
    async def work(house: House) -> None:
        session = (await house.desk.open(seed=7, on=None)).name
        watcher = Watcher(house, session)
        watcher.press(("up", True))
        await watcher.until_block(4)
        house.fleet.on_block = lambda worker, block: None  # so that the telling waits
        moving = asyncio.create_task(house.desk.move(session, "b", damage=True))
        await watcher.until(house.fleet.moves)
        assert house.fleet.moves()[-1].runs_at == "a"
        house.fleet.hand_over(session, "b")
        assert (await moving).runs_at == "b"
        await watcher.until(lambda: [m for m in watcher.texts("move") if m["event"] == "result"])
        assert "Your world goes on at b." in watcher.texts("move")[-1]["sentence"]
        assert house.fleet.moves()[-1].runs_at == "b"
        house.fleet.gone = {"b"}
        assert (await house.gateway.settled(session, house.fleet.moves()[-1])).runs_at is None

    in_house(work, rest_after_s=5.0)


def test_a_resting_world_that_is_moved_plays_the_blocks_owed_to_its_old_copy_and_rests_again() -> None:
    async def work(house: House) -> None:
        session = (await house.desk.open(seed=7, on=None)).name
        await asyncio.sleep(0.02)
        assert house.gateway.horizon_s(session) == float("inf")
        for to, blocks in (("b", 2), ("a", 4)):
            report = await house.desk.move(session, None, damage=False)
            assert (report.outcome, report.destination) == (Outcome.COMMITTED, to)
            async with asyncio.timeout(5):
                while house.gateway.next_block(session) != blocks:  # noqa: ASYNC110
                    await asyncio.sleep(0.005)
            await asyncio.sleep(0.2)
            assert house.gateway.next_block(session) == house.gateway.live(session).sequencer.reaches == blocks

    in_house(work)


def test_shown_is_recorded_once_an_epoch_before_its_first_frame_leaves_even_where_the_ledger_is_silent() -> None:
    async def work(house: House) -> None:
        house.fleet.silent_answers = 2
        session = (await house.desk.open(seed=7, on=None)).name
        watcher = Watcher(house, session)
        assert house.fleet.asked == []
        await watcher.until(lambda: len(house.fleet.asked) == 2)
        assert watcher.frames() == []
        watcher.press(("up", True))
        await watcher.until_block(4)
        await house.desk.move(session, "b", damage=False)
        await watcher.until_block(8)
        assert [getattr(operation, "epoch", None) for operation in house.fleet.asked] == [1, 1, 1, 2]

    in_house(work)


def test_a_block_of_a_worker_that_owns_no_more_is_not_shown() -> None:
    async def work(house: House) -> None:
        session = (await house.desk.open(seed=7, on=None)).name
        watcher = Watcher(house, session)
        watcher.press(("up", True))
        await watcher.until_block(3)
        stolen: list[BlockDone] = []

        def hold_back(worker: str, block: BlockDone) -> BlockDone | None:
            if worker == "a":
                stolen.append(block)
                return None
            return block

        house.fleet.on_block = hold_back
        await watcher.until(lambda: stolen)
        next_block = house.gateway.next_block(session)
        house.fleet.sessions_by_name[session].worlds["a"].next_block = 10**6
        house.fleet.hand_over(session, "b")
        house.gateway.take("a", stolen[0])
        house.gateway.take("a", replace_epoch(stolen[0], 2))
        await asyncio.sleep(0.05)
        assert house.gateway.next_block(session) == next_block

    in_house(work)


def replace_epoch(block: BlockDone, epoch: int) -> BlockDone:
    return BlockDone(**{**{name: getattr(block, name) for name in block.__struct_fields__}, "epoch": epoch})


def test_no_block_of_a_closed_epoch_is_shown() -> None:
    async def work(house: House) -> None:
        session = (await house.desk.open(seed=7, on=None)).name
        watcher = Watcher(house, session)
        watcher.press(("up", True))
        await watcher.until_block(3)
        house.gateway.close_epoch(session, 1)
        await asyncio.sleep(0.02)
        num = len(watcher.frames())
        await asyncio.sleep(0.15)
        assert len(watcher.frames()) == num

    in_house(work)


def test_a_block_is_acknowledged_to_every_holder_when_it_has_left_for_who_controls() -> None:
    async def work(house: House) -> None:
        session = (await house.desk.open(seed=7, on=None)).name
        watcher = Watcher(house, session, stuck=True)
        await watcher.until(lambda: house.gateway.next_block(session) == 2)
        assert house.fleet.acknowledged("a") == []
        house.gateway.holders(session, ("a", "b"))
        watcher.socket.release()
        await watcher.until(lambda: len(house.fleet.acknowledged("a")) >= 2)
        assert house.fleet.acknowledged("a")[:2] == [(1, 0), (1, 1)]
        assert house.fleet.acknowledged("b")[:2] == [(1, 0), (1, 1)]

    in_house(work)


def test_a_block_that_is_sent_again_is_acknowledged_again_and_shown_once() -> None:
    async def work(house: House) -> None:
        blocks: list[BlockDone] = []

        def keep(_: str, block: BlockDone) -> BlockDone:
            blocks.append(block)
            return block

        house.fleet.on_block = keep
        session = (await house.desk.open(seed=7, on=None)).name
        watcher = Watcher(house, session)
        await watcher.until(lambda: [m for m in watcher.texts("rest") if m["resting"]])
        num_frames, num_acknowledged = len(watcher.frames()), len(house.fleet.acknowledged("a"))
        house.gateway.take("a", blocks[-1])
        await watcher.until(lambda: len(house.fleet.acknowledged("a")) == num_acknowledged + 1)
        assert len(watcher.frames()) == num_frames

    in_house(work)


def test_a_slow_watcher_harms_only_itself() -> None:
    async def work(house: House) -> None:
        session = (await house.desk.open(seed=7, on=None)).name
        slow = Watcher(house, session, stuck=True, controls=False, limit=8)
        watcher = Watcher(house, session)
        watcher.press(("up", True))
        await watcher.until_block(12)
        await watcher.until(slow.task.done)
        assert slow.socket.closed is not None
        assert slow.socket.closed[0] == CloseCode.TOO_SLOW

    in_house(work)


def test_a_new_holder_is_sent_every_list_from_the_next_block_on() -> None:
    async def work(house: House) -> None:
        session = (await house.desk.open(seed=7, on=None)).name
        watcher = Watcher(house, session)
        watcher.press(("up", True))
        await watcher.until_block(5)
        next_block = house.gateway.next_block(session)
        house.gateway.holders(session, ("a", "b"))
        await watcher.until_block(10)
        sent = [m.block for to, m in house.fleet.sent if to == "b" and isinstance(m, Inputs)]
        assert sent == list(range(next_block or 0, next_block + len(sent) if next_block else 0))
        assert len(sent) >= 5

    in_house(work)


def test_a_throw_away_copy_walks_back_beside_the_world_and_leaves_it_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("worldmove.serve.recover.LOOK_S", 0.05)

    async def work(house: House) -> None:
        session = (await house.desk.open(seed=7, on=None)).name
        watcher = Watcher(house, session)
        await watcher.until_block(0)
        with pytest.raises(UserError, match="Walk a little first"):
            await house.desk.recover(session)
        watcher.press(("up", True), ("up", False), ("right", True), ("right", False))
        await watcher.until(lambda: len(house.gateway.live(session).screen.walked) == 2)
        name = await house.desk.recover(session)
        with pytest.raises(UserError, match="wait for its end"):
            await house.desk.recover(session)
        given = house.fleet.sessions_by_name[name]
        await watcher.until(lambda: [m for m in watcher.texts("recover") if m["state"] == "closed"])
        assert [(c.key, c.down) for block in given.log.values() for c in block.changes] == [
            ("left", True),
            ("left", False),
            ("down", True),
            ("down", False),
        ]
        assert [header.frame for header, _ in watcher.frames(Kind.RECOVERED)] == [0, 1]
        assert name not in house.fleet.sessions_by_name
        expected = replayed(house, session)
        assert all(pixels in expected[header.block] for header, pixels in watcher.frames())

    in_house(work)


def test_a_lost_world_says_so_and_closes_its_connections() -> None:
    async def work(house: House) -> None:
        session = (await house.desk.open(seed=7, on=None)).name
        watcher = Watcher(house, session)
        await watcher.until_block(0)
        house.gateway.lost(session, "The process that ran it ended.")
        await watcher.until(watcher.task.done)
        assert watcher.texts("lost") == [{"type": "lost", "sentence": "The process that ran it ended."}]
        assert watcher.texts("counts")[-1]["lost"] == 1
        assert watcher.socket.closed is not None
        assert watcher.socket.closed[0] == CloseCode.SESSION_ENDED

    in_house(work)


@pytest.mark.parametrize(
    "text",
    ["", "{}", '{"type":"keys"}', '{"type":"fly"}', '{"type":"keep","keep":1}', '{"type":"ping","t":1,"x":2}', "[1]"],
)
def test_what_is_no_message_is_answered_with_an_error_and_changes_nothing(text: str) -> None:
    async def work(house: House) -> None:
        session = (await house.desk.open(seed=7, on=None)).name
        watcher = Watcher(house, session)
        house.desk.hear(session, watcher.player, text)
        await watcher.until(lambda: watcher.texts("error"))
        assert watcher.texts("error")[0]["code"] == "bad_message"
        assert watcher.socket.closed is None

    in_house(work)


def test_an_unknown_key_is_refused_by_name_and_the_others_are_taken() -> None:
    async def work(house: House) -> None:
        session = (await house.desk.open(seed=7, on=None)).name
        watcher = Watcher(house, session)
        watcher.press(("jump", True), ("up", True))
        await watcher.until(lambda: watcher.texts("error"))
        assert "jump" in watcher.texts("error")[0]["message"]
        assert watcher.texts("keys")[0]["number"] == 2

    in_house(work)


def test_a_message_full_of_unknown_keys_is_answered_with_one_error_and_drops_nobody() -> None:
    async def work(house: House) -> None:
        session = (await house.desk.open(seed=7, on=None)).name
        watcher = Watcher(house, session, limit=16)
        watcher.press(*(("jump", True) for _ in range(64)))
        await watcher.until(lambda: watcher.texts("keys"))
        assert len(watcher.texts("error")) == 1
        assert watcher.socket.closed is None

    in_house(work)


def test_ping_is_answered_with_its_own_number() -> None:
    async def work(house: House) -> None:
        session = (await house.desk.open(seed=7, on=None)).name
        watcher = Watcher(house, session)
        watcher.hear({"type": "ping", "t": 12.5})
        await watcher.until(lambda: watcher.texts("pong"))
        assert watcher.texts("pong")[0]["t"] == 12.5

    in_house(work)


def test_a_late_block_is_counted_and_said() -> None:
    async def work(house: House) -> None:
        session = (await house.desk.open(seed=7, on=None)).name
        watcher = Watcher(house, session)
        watcher.press(("up", True))
        await watcher.until(lambda: [m for m in watcher.texts("counts") if m["blocks_late"]])

    in_house(work, compute_s=3 * SPEC.period_s)


@pytest.mark.parametrize(("to", "hint"), [("aa", "did you mean a"), ("zzz", "there are a, b")])
def test_an_unknown_worker_is_answered_with_those_there_are(to: str, hint: str) -> None:
    async def work(house: House) -> None:
        session = (await house.desk.open(seed=7, on=None)).name
        with pytest.raises(UserError, match=hint):
            await house.desk.move(session, to, damage=False)
        with pytest.raises(UserError, match=hint):
            await house.desk.open(seed=7, on=to)

    in_house(work)


def test_a_connection_that_falls_silent_with_a_key_down_lets_go_of_it_and_can_go_on() -> None:
    async def work(house: House) -> None:
        session = (await house.desk.open(seed=7, on=None)).name
        watcher = Watcher(house, session)
        watcher.press(("up", True))
        await watcher.until(lambda: [m for m in watcher.texts("rest") if m["resting"]])
        watcher.press(("down", True), ("down", False))
        await watcher.until(lambda: len(changes_of(house, session)) == 4)
        assert changes_of(house, session) == [(1, "up", True), (1, "up", False), (2, "down", True), (3, "down", False)]

    in_house(work, silent_s=0.1)


def test_a_session_whose_closing_takes_long_keeps_nobody_elses_keys_down(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its worker is silent, say, and nobody watches it: what is due to others does not wait for that."""

    async def work(house: House) -> None:
        closing, has_begun = list[str](), asyncio.Event()

        async def never(session: str) -> None:
            closing.append(session)
            has_begun.set()
            await asyncio.get_running_loop().create_future()

        monkeypatch.setattr(house.fleet, "close", never)
        unwatched = (await house.desk.open(seed=7, on=None)).name
        session = (await house.desk.open(seed=7, on=None)).name
        watcher = Watcher(house, session)
        async with asyncio.timeout(5.0):
            await has_begun.wait()
        watcher.press(("up", True))
        await watcher.until(lambda: len(changes_of(house, session)) == 2)
        assert changes_of(house, session) == [(1, "up", True), (1, "up", False)]
        assert closing == [unwatched]

    in_house(work, silent_s=0.2, keep_s=0.1)


def test_a_new_world_is_never_given_the_name_of_one_that_an_earlier_server_has_opened() -> None:
    async def work(house: House) -> None:
        session = (await house.desk.open(seed=7, on=None)).name
        lives = house.gateway.lives[session]
        house.desk._ids.num -= 1  # type: ignore[attr-defined]  # it is drawn again: this server knows of no such name
        assert (await house.desk.open(seed=7, on=None)).name != session
        assert house.gateway.lives[session] is lives

    in_house(work)


def test_a_session_whose_player_has_come_back_makes_no_room_however_lately_it_was_looked_at() -> None:
    async def work(house: House) -> None:
        house.fleet.num_places = 2
        names = [(await house.desk.open(seed=7, on=None)).name for _ in range(2)]
        await asyncio.sleep(0.15)
        watchers = [Watcher(house, name) for name in names]
        with pytest.raises(UserError, match="Every slot is taken"):
            await house.desk.open(seed=7, on=None)
        assert sorted(house.gateway.lives) == sorted(names)
        for watcher in watchers:
            await watcher.until(watcher.frames)

    in_house(work, spare_s=0.1)


def test_a_session_whose_player_comes_back_while_another_is_closed_for_room_is_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def work(house: House) -> None:
        house.fleet.num_places = 2
        names = [(await house.desk.open(seed=7, on=None)).name for _ in range(2)]
        asked = list[str]()

        async def refuses(session: str) -> None:
            asked.append(session)
            Watcher(house, names[1])
            raise UserError("It moves.", code="moving", status=409)

        monkeypatch.setattr(house.fleet, "close", refuses)
        await asyncio.sleep(0.15)
        with pytest.raises(UserError, match="Every slot is taken"):
            await house.desk.open(seed=7, on=None)
        assert asked == names[:1]

    in_house(work, spare_s=0.1)


def test_a_session_whose_player_comes_back_as_its_closing_begins_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    async def work(house: House) -> None:
        session, spawned = (await house.desk.open(seed=7, on=None)).name, house.gateway.spawn

        def comes_back_first(work: Any) -> object:
            watcher = Watcher(house, session)
            assert watcher.player is not None
            return spawned(work)

        monkeypatch.setattr(house.gateway, "spawn", comes_back_first)
        await asyncio.sleep(0.3)
        assert session in house.gateway.lives

    in_house(work, keep_s=0.1)


def test_where_every_place_is_taken_the_session_that_nobody_watches_for_longest_makes_room() -> None:
    async def work(house: House) -> None:
        house.fleet.num_places = 2
        first = (await house.desk.open(seed=7, on=None)).name
        second = (await house.desk.open(seed=7, on=None)).name
        with pytest.raises(UserError, match="Every slot is taken"):
            await house.desk.open(seed=7, on=None)
        watcher = Watcher(house, first)
        await asyncio.sleep(0.15)
        third = (await house.desk.open(seed=7, on=None)).name
        assert sorted(house.gateway.lives) == [first, third]
        with pytest.raises(UserError, match=second):
            house.gateway.live(second)
        await watcher.until(watcher.frames)

    in_house(work, spare_s=0.1)


@pytest.mark.parametrize("kept", ["elsewhere", "lost"])
def test_no_session_is_closed_whose_room_would_be_of_no_use(kept: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def work(house: House) -> None:
        house.fleet.num_places = 2
        first = (await house.desk.open(seed=7, on=None)).name
        second = (await house.desk.open(seed=7, on=None)).name
        owner = house.fleet.owner

        def owner_of(session: str) -> Owner | None:
            return None if session == first else owner(session)

        if kept == "lost":
            monkeypatch.setattr(house.fleet, "owner", owner_of)
        else:
            house.fleet.hand_over(first, "b")
        await asyncio.sleep(0.15)
        third = (await house.desk.open(seed=7, on="a")).name
        assert sorted(house.gateway.lives) == [first, third]
        with pytest.raises(UserError, match=second):
            house.gateway.live(second)

    in_house(work, spare_s=0.1)


def test_two_that_want_room_at_once_have_that_of_two_sessions(monkeypatch: pytest.MonkeyPatch) -> None:
    async def work(house: House) -> None:
        house.fleet.num_places = 3
        old = [(await house.desk.open(seed=7, on=None)).name for _ in range(3)]
        close = house.fleet.close

        async def slowly(session: str) -> None:
            await close(session)
            await asyncio.sleep(0.1)

        monkeypatch.setattr(house.fleet, "close", slowly)
        await asyncio.sleep(0.15)
        new = await asyncio.gather(*(house.desk.open(seed=7, on=None) for _ in range(3)))
        assert sorted(house.gateway.lives) == sorted(view.name for view in new)
        assert not set(old) & set(house.gateway.lives)

    in_house(work, spare_s=0.1)


def test_a_session_that_cannot_be_closed_makes_no_room_and_is_no_answer_to_who_opens_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def work(house: House) -> None:
        house.fleet.num_places = 2
        first = (await house.desk.open(seed=7, on=None)).name
        close, moving = house.fleet.close, {first: None}

        async def closes(session: str) -> None:
            if session in moving:
                raise UserError(f"{session} is moving", code="moving", status=409)
            await close(session)

        monkeypatch.setattr(house.fleet, "close", closes)
        second = (await house.desk.open(seed=7, on=None)).name
        await asyncio.sleep(0.15)
        third = (await house.desk.open(seed=7, on=None)).name
        assert sorted(house.gateway.lives) == [first, third]
        moving |= {third: None, second: None}
        await asyncio.sleep(0.15)
        with pytest.raises(UserError, match="Every slot is taken"):
            await house.desk.open(seed=7, on=None)

    in_house(work, spare_s=0.1)


def test_a_lost_world_is_still_said_to_be_lost_after_a_reload() -> None:
    async def work(house: House) -> None:
        session = (await house.desk.open(seed=7, on=None)).name
        house.gateway.lost(session, "The process that ran it ended.")
        watcher = Watcher(house, session)
        await watcher.until(watcher.task.done)
        assert [m["sentence"] for m in watcher.texts("lost")] == ["The process that ran it ended."]

    in_house(work)


def test_a_ledger_that_cannot_answer_holds_frames_back_and_ends_nothing() -> None:
    async def work(house: House) -> None:
        house.fleet.failing_answers = 2
        session = (await house.desk.open(seed=7, on=None)).name
        watcher = Watcher(house, session)
        await watcher.until(lambda: len(house.fleet.asked) == 2)
        assert watcher.frames() == []
        await watcher.until_block(1)

    in_house(work)


def test_what_a_worker_cannot_do_is_said_to_who_watches() -> None:
    async def work(house: House) -> None:
        session = (await house.desk.open(seed=7, on=None)).name
        watcher = Watcher(house, session)
        house.gateway.take("a", Failed(session=session, code="engine", message="The engine failed."))
        await watcher.until(lambda: watcher.texts("error"))
        assert watcher.texts("error")[0]["message"] == "The engine failed."

    in_house(work)


def changes_of(house: House, session: str) -> list[tuple[int, str, bool]]:
    log = house.fleet.sessions_by_name[session].log
    return [(c.number, c.key, c.down) for block in sorted(log) for c in log[block].changes]


def test_a_player_that_comes_back_is_sent_what_it_lacks_and_nothing_twice() -> None:
    async def work(house: House) -> None:
        session = (await house.desk.open(seed=7, on=None)).name
        staying, leaving = Watcher(house, session), Watcher(house, session, controls=False)
        staying.press(("up", True))
        await leaving.until_block(4)
        leaving.leave()
        await staying.until_block(8)
        seen = leaving.frames()
        back = Watcher(house, session, controls=False, received=seen[-1][0].block)
        await back.until_block(11)
        assert [header.frame for header, _ in [*seen, *back.frames()]] == list(range(len(seen) + len(back.frames())))

    in_house(work)


def test_a_replayed_block_is_compared_with_what_was_shown_and_a_failover_is_told() -> None:
    async def test(house: House) -> None:
        session = (await house.desk.open(seed=7, on="a", protect=4)).name
        assert house.fleet.protected == {session: 4}
        watcher = Watcher(house, session)
        watcher.press(("up", True))
        await asyncio.sleep(1.0)
        shown = house.gateway.lives[session].screen.last
        assert shown is not None
        for frames in (shown.frame_sha256, tuple(bytes(32) for _ in shown.frame_sha256)):
            house.gateway.take("b", Replayed(session=session, epoch=2, block=shown.block, frame_sha256=frames))
        never = Replayed(session=session, epoch=2, block=shown.block + 100, frame_sha256=shown.frame_sha256)
        house.gateway.take("b", never)
        compared = [(session, 2, shown.block, True), (session, 2, shown.block, False)]
        assert house.fleet.comparisons == compared
        report = FailoverReport(
            session=session,
            source="a",
            destination="b",
            epoch=2,
            boundary=4,
            next_block=6,
            started_at=0.0,
            began=0.0,
            outcome=FailoverOutcome.RESUMED,
            took_s=0.25,
            num_compared=2,
        )
        house.gateway.failed_over(session, report)
        await asyncio.sleep(0.1)
        (told,) = watcher.texts("failover")
        assert (told["outcome"], told["replayed"], told["ms"]) == ("resumed", 2, 250.0)
        assert "b computed 2 blocks again (2 of 2 compared with what was shown, all equal)" in told["sentence"]
        watcher.leave()

    in_house(test)
