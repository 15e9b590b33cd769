"""A session of an earlier server at the gateway: what is shown, closed and said while its reports come in."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import pytest

from tests.move import virtual
from tests.serve.fakes import RECEIPTS, SPEC, FakeFleet, FakeIds, FakeSocket
from tests.serve.test_gateway import House, Watcher, replayed
from worldmove.errors import LedgerError
from worldmove.fleet.ports import Owner
from worldmove.serve.desk import Desk
from worldmove.serve.frames import FrameHeader
from worldmove.serve.gateway import Gateway
from worldmove.serve.gateway_config import GatewayConfig
from worldmove.serve.live_config import LiveConfig
from worldmove.serve.metrics import Metrics
from worldmove.serve.player import Player
from worldmove.serve.receipts import RECEIPT_BYTES, claim_of
from worldmove.serve.resumption import ResumptionConfig
from worldmove.serve.wording import engine_info
from worldmove.worker.messages import BlockDone, Inputs, Left, Opened, Replayed

SESSION = "s-1"
OPENED = Opened(session=SESSION, epoch=1, num_bytes=32, num_leaves=4, state_digest="d")


class Returning(Watcher):
    """A player that says what it has."""

    def __init__(self, house: House, received: int | None) -> None:
        super().__init__(house, SESSION, received=received)

    def blocks(self) -> list[int]:
        return [header.block for header, _ in self.frames() if header.index == SPEC.frames_per_block - 1]


@dataclass
class Restart:
    """A fleet whose worker ``a`` has played, and a new gateway before it."""

    house: House
    computed: dict[int, BlockDone] = field(default_factory=dict)
    shown: list[tuple[FrameHeader, bytes]] = field(default_factory=list)

    @property
    def gateway(self) -> Gateway:
        return self.house.gateway

    def list_of(self, block: int) -> Inputs:
        return self.house.fleet.sessions_by_name[SESSION].log[block]

    def owner_reports(self, left: int, *, held: bool = True) -> None:
        """As a worker does on a new link: its lists, its newest blocks that have left, then those that have not."""
        for block in sorted(self.house.fleet.sessions_by_name[SESSION].log):
            if block >= left and held:
                self.gateway.held(SESSION, block, self.list_of(block).changes)
        for block in sorted(self.computed):
            if left - 4 <= block < left:
                self.gateway.take("a", Left(session=SESSION, block=self.computed[block]))
        self.gateway.left(SESSION, left, len(self.computed), sends=True)
        self.gateway.owned(SESSION, Owner(worker="a", incarnation=1, epoch=1))
        self.gateway.may_show(SESSION, owner_lives=True)
        for block in sorted(self.computed):
            if block >= left:
                self.gateway.take("a", self.computed[block])


def gateway_over(fleet: FakeFleet, life: int, client_s: float) -> Gateway:
    live = LiveConfig(spec=SPEC, server_life=life, receipts=RECEIPTS, rest_after_s=0.3)
    config = GatewayConfig(live=live, look_every_s=0.02, resumption=ResumptionConfig(client_s=client_s))
    gateway = Gateway(fleet=fleet, config=config, metrics=Metrics())
    fleet.attach(gateway)
    return gateway


def restarted(work: Callable[[Restart], Awaitable[None]], *, client_s: float = 60.0) -> None:
    """Play eight blocks under one gateway, then do ``work`` under another."""

    async def run() -> None:
        fleet = FakeFleet()
        first = gateway_over(fleet, 1, 60.0)
        house = House(fleet=fleet, gateway=first, desk=Desk(first, engine=engine_info(SPEC, 8), ids=FakeIds()))
        restart = Restart(house)

        def keep(worker: str, block: BlockDone) -> BlockDone:
            restart.computed[block.block] = block
            return block

        fleet.on_block = keep
        assert (await house.desk.open(seed=7, on=None)).name == SESSION
        watcher = Watcher(house, SESSION)
        watcher.press(("up", True))
        await watcher.until_block(7)
        restart.shown = watcher.frames()
        first.lives[SESSION].feed.enabled = False
        await asyncio.sleep(0.02)
        await first.end()
        house.gateway = gateway_over(fleet, 2, client_s)
        house.desk = Desk(house.gateway, engine=engine_info(SPEC, 8), ids=FakeIds())
        house.gateway.resume(SESSION, OPENED)
        try:
            await work(restart)
        finally:
            await house.gateway.end()

    virtual.run(run())


def assert_continues(restart: Restart, watcher: Returning, received: int) -> None:
    """What was received before and what comes now are all frames in order, as a replay of the log has them."""
    old = [frame for frame in restart.shown if frame[0].block <= received]
    seen = [*old, *watcher.frames()]
    assert [header.frame for header, _ in seen] == list(range(len(seen)))
    expected = replayed(restart.house, SESSION)
    for header, pixels in seen:
        assert pixels == expected[header.block][header.index * len(pixels) : (header.index + 1) * len(pixels)]


def test_nothing_is_said_shown_or_closed_until_the_owner_has_reported() -> None:
    async def work(restart: Restart) -> None:
        watcher = Returning(restart.house, 5)
        closed = len(restart.house.fleet.sessions_by_name[SESSION].log)
        restart.gateway.may_close(SESSION)
        await asyncio.sleep(0.1)
        assert watcher.socket.sent == []
        assert restart.gateway.next_block(SESSION) is None
        assert restart.gateway.log_reaches(SESSION) is None
        assert len(restart.house.fleet.sessions_by_name[SESSION].log) == closed
        restart.owner_reports(6)
        await watcher.until_block(12)
        assert_continues(restart, watcher, 5)

    restarted(work)


def test_one_that_is_lost_before_it_goes_on_waits_for_nobody_any_more() -> None:
    async def work(restart: Restart) -> None:
        live = restart.gateway.lives[SESSION]
        assert live.resting_why is not None
        restart.gateway.lost(SESSION, "a ended and no other worker holds a copy")
        assert (live.lost_why, live.resuming is not None) == ("a ended and no other worker holds a copy", True)
        assert "reported" not in (live.resting_why or "")

    restarted(work)


def test_nothing_is_shown_until_the_client_has_come_back() -> None:
    async def work(restart: Restart) -> None:
        restart.owner_reports(6)
        restart.gateway.may_close(SESSION)
        await asyncio.sleep(0.1)
        assert restart.gateway.next_block(SESSION) is None
        assert "have not reported yet" in (restart.gateway.lives[SESSION].resting_why or "")
        watcher = Returning(restart.house, 7)
        await watcher.until_block(12)
        assert watcher.blocks()[0] == 8
        assert_continues(restart, watcher, 7)

    restarted(work)


def test_what_was_acknowledged_and_never_came_is_shown_again() -> None:
    async def work(restart: Restart) -> None:
        restart.owner_reports(8)
        restart.gateway.may_close(SESSION)
        watcher = Returning(restart.house, 4)
        await watcher.until_block(12)
        assert watcher.blocks()[:4] == [5, 6, 7, 8]
        assert_continues(restart, watcher, 4)

    restarted(work)


def test_a_block_that_only_another_holder_heard_to_have_left_is_shown_again() -> None:
    async def work(restart: Restart) -> None:
        restart.gateway.left(SESSION, 7, 0, sends=False)  # a shadow: the word reached it, and not the owner
        restart.owner_reports(6)
        restart.gateway.may_close(SESSION)
        watcher = Returning(restart.house, 3)
        await watcher.until_block(12)
        assert watcher.blocks()[:4] == [4, 5, 6, 7]
        assert_continues(restart, watcher, 3)

    restarted(work)


def test_a_block_that_another_holder_keeps_is_waited_for_before_a_player_is_let_in() -> None:
    async def work(restart: Restart) -> None:
        restart.gateway.left(SESSION, 6, 6, sends=True)  # it has taken over at block 6, and has made nothing before it
        restart.gateway.owned(SESSION, Owner(worker="a", incarnation=1, epoch=1))
        restart.gateway.may_show(SESSION, owner_lives=True)
        watcher = Returning(restart.house, 4)
        await asyncio.sleep(0.05)
        assert watcher.socket.sent == []
        restart.gateway.take("b", Left(session=SESSION, block=restart.computed[5]))
        await watcher.until(watcher.blocks)
        assert watcher.blocks() == [5]

    restarted(work)


def replaced(restart: Restart, replays: dict[int, tuple[bytes, ...]]) -> None:
    """``a`` was replaced and had not heard that blocks 6 and 7 had left; ``b`` has computed these anew, and goes on."""
    for block, frames in replays.items():
        restart.gateway.take("b", Replayed(session=SESSION, epoch=2, block=block, frame_sha256=frames))
    restart.gateway.take("a", Left(session=SESSION, block=restart.computed[5]))
    for block in (6, 7):
        restart.gateway.take("a", restart.computed[block])
    restart.gateway.left(SESSION, 6, 8, sends=False)
    restart.gateway.left(SESSION, 8, 8, sends=True)
    restart.gateway.owned(SESSION, Owner(worker="b", incarnation=1, epoch=2))
    restart.gateway.may_show(SESSION, owner_lives=True)
    restart.gateway.may_close(SESSION)


@pytest.mark.parametrize("is_equal", [True, False])
def test_what_a_replaced_owner_had_not_heard_to_have_left_is_shown_if_the_new_one_has_computed_the_same(
    is_equal: bool,
) -> None:
    async def work(restart: Restart) -> None:
        as_it_was = {block: restart.computed[block].frame_sha256 for block in (6, 7)}
        replaced(restart, as_it_was if is_equal else as_it_was | {7: (bytes(32),) * SPEC.frames_per_block})
        watcher = Returning(restart.house, 5)
        await watcher.until(lambda: watcher.texts("hello"))
        assert watcher.blocks() == ([6, 7] if is_equal else [])

    restarted(work)


def test_what_was_computed_anew_is_compared_as_soon_as_it_is_known_how_it_was_shown() -> None:
    async def work(restart: Restart) -> None:
        as_it_was = {block: restart.computed[block].frame_sha256 for block in (6, 7)}
        replaced(restart, {5: (bytes(32),) * SPEC.frames_per_block, **as_it_was})
        assert restart.house.fleet.comparisons == []
        watcher = Returning(restart.house, 7)
        await watcher.until(lambda: watcher.texts("hello"))
        assert restart.house.fleet.comparisons == [
            (SESSION, 2, 5, False),
            (SESSION, 2, 6, True),
            (SESSION, 2, 7, True),
        ]

    restarted(work)


def test_nothing_is_left_out_after_the_first_frame_though_a_block_is_gone_with_its_holder() -> None:
    async def work(restart: Restart) -> None:
        restart.gateway.take("b", Left(session=SESSION, block=restart.computed[4]))
        for block, inputs in sorted(restart.house.fleet.sessions_by_name[SESSION].log.items()):
            if block >= 6:
                restart.gateway.held(SESSION, block, inputs.changes)
        restart.gateway.left(SESSION, 6, 6, sends=True)
        restart.gateway.owned(SESSION, Owner(worker="a", incarnation=1, epoch=1))
        restart.gateway.may_show(SESSION, owner_lives=True)
        restart.gateway.may_close(SESSION)
        watcher = Returning(restart.house, 3)
        await watcher.until(lambda: watcher.texts("hello"))
        for block in (6, 7):
            restart.gateway.take("a", restart.computed[block])
        await watcher.until_block(7)
        assert watcher.blocks()[:2] == [6, 7]
        assert watcher.texts("hello")[0]["next_block"] == 6

    restarted(work)


def test_no_list_is_closed_until_every_holder_has_reported_and_none_that_is_held_is_closed_anew() -> None:
    async def work(restart: Restart) -> None:
        fleet, watcher = restart.house.fleet, Returning(restart.house, 7)
        closed = max(fleet.sessions_by_name[SESSION].log)
        only_elsewhere = Inputs(session=SESSION, block=closed + 1, changes=())
        fleet.sessions_by_name[SESSION].log[closed + 1] = only_elsewhere  # the old server had sent it to another holder
        restart.owner_reports(6, held=True)
        await watcher.until(lambda: watcher.texts("hello"))
        await asyncio.sleep(0.1)
        assert "a worker that holds a copy has not reported" in watcher.texts("rest")[0]["why"]
        assert restart.gateway.log_reaches(SESSION) is None
        assert max(fleet.sessions_by_name[SESSION].log) == closed + 1
        restart.gateway.held(SESSION, closed + 1, ())
        restart.gateway.may_close(SESSION)
        await watcher.until_block(closed + 4)  # the fleet asserts that no list was closed anew
        assert not watcher.texts("rest")[1]["resting"]
        assert_continues(restart, watcher, 7)

    restarted(work)


def test_keys_are_released_and_numbered_anew_and_what_is_pressed_now_acts() -> None:
    async def work(restart: Restart) -> None:
        watcher = Returning(restart.house, 7)
        restart.owner_reports(6)
        restart.gateway.may_close(SESSION)
        await watcher.until(lambda: watcher.texts("hello"))
        watcher.number = watcher.texts("hello")[0]["next_number"] - 1
        assert watcher.number == restart.gateway.config.live.server_life
        watcher.press(("down", True))
        await watcher.until_block(14)
        log = restart.house.fleet.sessions_by_name[SESSION].log
        changes = [(change.key, change.down) for block in sorted(log) for change in log[block].changes]
        assert changes == [("up", True), *((key, False) for key in SPEC.keys), ("down", True)]

    restarted(work)


def test_a_world_whose_client_never_comes_goes_on_by_its_owners_report_alone() -> None:
    async def work(restart: Restart) -> None:
        restart.owner_reports(6)
        restart.gateway.may_close(SESSION)
        async with asyncio.timeout(5):
            while restart.gateway.next_block(SESSION) != len(restart.computed):  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        assert restart.house.fleet.acknowledged("a")[-1] == (1, len(restart.computed) - 1)
        watcher = Returning(restart.house, 5)
        await watcher.until_block(12)
        assert_continues(restart, watcher, 5)

    restarted(work, client_s=0.05)


def test_a_block_that_the_client_has_is_acknowledged_and_not_shown_again() -> None:
    async def work(restart: Restart) -> None:
        watcher = Returning(restart.house, 7)
        restart.owner_reports(6)
        restart.gateway.may_close(SESSION)
        await watcher.until_block(9)
        assert watcher.blocks()[0] == 8
        assert {(1, 6), (1, 7)} <= set(restart.house.fleet.acknowledged("a"))

    restarted(work)


def test_a_player_that_waits_counts_as_a_watcher_and_may_leave() -> None:
    async def work(restart: Restart) -> None:
        watcher = Returning(restart.house, 7)
        assert restart.gateway.lives[SESSION].watched
        await asyncio.sleep(0.01)
        watcher.leave()
        await asyncio.sleep(0.05)
        assert not restart.gateway.lives[SESSION].watched

    restarted(work)


def test_a_player_that_waits_is_told_that_the_session_is_lost() -> None:
    async def work(restart: Restart) -> None:
        watcher = Returning(restart.house, 7)
        restart.gateway.lost(SESSION, "no copy was left")
        await watcher.until(lambda: watcher.socket.closed is not None)
        assert [message["sentence"] for message in watcher.texts("lost")] == ["no copy was left"]

    restarted(work)


def test_a_player_that_waits_is_told_that_the_server_ends() -> None:
    async def work(restart: Restart) -> None:
        watcher = Returning(restart.house, 7)
        await asyncio.sleep(0.01)
        await restart.gateway.end()
        await watcher.until(lambda: watcher.socket.closed is not None)
        assert watcher.socket.closed == (1001, "the server ends")

    restarted(work)


@pytest.mark.parametrize("false", [5, 6, 7, 8, 9, 100, 1 << 50])
@pytest.mark.parametrize("received", [5, 6, 7])
@pytest.mark.parametrize("stranger_first", [True, False])
def test_what_a_stranger_says_that_it_has_costs_a_player_no_frame_and_shows_it_none_again(
    false: int, received: int, *, stranger_first: bool
) -> None:
    async def work(restart: Restart) -> None:
        claims = (false, received) if stranger_first else (received, false)
        watchers = [Returning(restart.house, claim) for claim in claims]
        restart.owner_reports(6)
        restart.gateway.may_close(SESSION)
        player = watchers[stranger_first]
        await player.until_block(12)
        assert_continues(restart, player, received)
        assert {(1, block) for block in range(6, 12)} <= set(restart.house.fleet.acknowledged("a"))

    restarted(work)


@pytest.mark.parametrize(("proven", "next_block"), [(True, 51), (False, 6)])
def test_what_a_client_says_of_a_dead_owners_world_counts_with_its_receipt_alone(proven: bool, next_block: int) -> None:
    async def work(restart: Restart) -> None:
        claim = claim_of(50, RECEIPTS.of(SESSION, 50) if proven else bytes(RECEIPT_BYTES))
        player = Player(FakeSocket())
        restart.house.desk.join(SESSION, player, controls=False, received=claim)
        restart.gateway.left(SESSION, 6, 6, sends=False)
        restart.gateway.may_show(SESSION, owner_lives=False)
        restart.gateway.may_close(SESSION)
        await asyncio.sleep(1.0)
        assert restart.gateway.next_block(SESSION) == next_block

    restarted(work, client_s=0.05)


@pytest.mark.parametrize(("owner_lives", "lists", "forks"), [(True, 0, []), (False, 0, [6]), (False, 2, [8])])
def test_a_receipt_of_a_world_that_deaths_have_ended_counts_no_more(
    owner_lives: bool, lists: int, forks: list[int]
) -> None:
    """What is made from lists that are kept is the same world still."""

    async def work(restart: Restart) -> None:
        Returning(restart.house, 5)
        for block in range(6, 6 + lists):
            restart.gateway.held(SESSION, block, restart.list_of(block).changes)
        restart.gateway.left(SESSION, 6, 6, sends=owner_lives)
        restart.gateway.may_show(SESSION, owner_lives=owner_lives)
        restart.gateway.may_close(SESSION)
        await asyncio.sleep(1.0)
        assert restart.house.fleet.forks == forks
        screen = restart.gateway.live(SESSION).screen
        late = claim_of(20, RECEIPTS.of(SESSION, 20))
        assert RECEIPTS.proven(SESSION, late, screen.forks) == (20 if owner_lives else None)
        assert screen.forks == tuple(forks)

    restarted(work, client_s=0.05)


def test_who_comes_while_the_end_of_a_timeline_cannot_be_put_on_file_has_nothing_of_the_next_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    later: list[Returning] = []

    async def work(restart: Restart) -> None:
        fork = restart.house.fleet.fork

        def silent_once(session: str, block: int) -> None:
            if not later:
                later.append(Returning(restart.house, 7))
                raise LedgerError("the file is locked")
            fork(session, block)

        monkeypatch.setattr(restart.house.fleet, "fork", silent_once)
        Returning(restart.house, 5)
        restart.gateway.left(SESSION, 6, 6, sends=False)
        restart.gateway.may_show(SESSION, owner_lives=False)
        restart.gateway.may_close(SESSION)
        await asyncio.sleep(1.0)
        assert restart.house.fleet.forks == [6]
        assert later[0].player.had_block == -1  # its block 7 is another one than will be shown

    restarted(work, client_s=0.05)


@pytest.mark.parametrize(
    ("left", "reaches", "following"), [(3, 3, 8), (3, 5, 8), (3, 7, 8), (3, 8, 3), (7, 8, 7), (8, 8, 8)]
)
def test_without_the_owner_a_world_goes_on_where_no_block_that_a_player_has_is_made_from_another_list(
    left: int, reaches: int, following: int
) -> None:
    """``left``, ``reaches``: what the copy that is left knows to have left, and how far its lists reach."""

    async def work(restart: Restart) -> None:
        for claim in (None, 4, 7):
            Returning(restart.house, claim)
        for block in range(left, reaches):
            restart.gateway.held(SESSION, block, restart.list_of(block).changes)
        restart.gateway.left(SESSION, left, left, sends=False)
        restart.gateway.may_show(SESSION, owner_lives=False)
        restart.gateway.may_close(SESSION)
        await asyncio.sleep(1.0)
        assert restart.gateway.next_block(SESSION) == following
        log_reaches = restart.gateway.log_reaches(SESSION, left)
        assert log_reaches is not None
        assert (log_reaches >= following) is (reaches == 8)

    restarted(work, client_s=0.5)
