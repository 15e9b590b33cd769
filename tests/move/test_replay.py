"""Moves by replay: a snapshot goes ahead, the destination computes the rest, and both meet at one block."""

import asyncio
import random
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import msgspec
import pytest

from tests.move.harness import Copy, Fleet, Outcome, Plays, reference
from tests.move.virtual import inline, run
from worldmove.errors import TransportError
from worldmove.move.destination import DestinationConfig
from worldmove.move.fetching import FetchingConfig
from worldmove.move.messages import (
    AnyMoveMessage,
    Base,
    Begin,
    Boundary,
    Cancel,
    Fetched,
    Landed,
    Meet,
    Offer,
    Prepare,
    Prepared,
    Proof,
    Ready,
    Reserved,
    Start,
)
from worldmove.state.extent import Extent
from worldmove.transport.loopback import Loopback
from worldmove.transport.wrappers import Corrupting, Damage, DamagePlan

EARLY = (Begin, Base, Fetched, Ready, Meet)
OF_A_REPLAY = (Prepare, Prepared, Offer, Reserved, *EARLY, Start, Boundary, Landed, Proof)

Story = Callable[[Fleet], Coroutine[Any, Any, None]]


def tell(story: Story, **fleet_options: Any) -> Fleet:
    """Run a story of one fleet that moves by replay; its world must be the one that was never moved."""

    async def main() -> Fleet:
        fleet = Fleet(**fleet_options)
        fleet.strategy = "replay"
        await fleet.play(3)
        await story(fleet)
        return fleet

    fleet = run(main())
    assert fleet.gateway.shown == reference(fleet), "the world is another one"
    return fleet


async def moved_under_play(fleet: Fleet, to: str = "B") -> Outcome:
    playing = fleet.play_on()
    try:
        return await fleet.move(to)
    finally:
        await playing.end()


def is_clean(fleet: Fleet) -> bool:
    """Whether nobody but the owner holds a copy, and nothing lies aside."""
    workers = fleet.workers.values()
    return sum(len(worker.copies) for worker in workers) == 1 and not any(worker.asides for worker in workers)


async def plays_on_at(fleet: Fleet, at: str) -> None:
    """The session goes on there, every slot but its own is free, and its next move without a fault is committed."""
    fleet.post_fault = lambda message: (0.0005,)
    fleet.on_post = lambda message: None
    fleet.on_follow = lambda copy: None
    fleet.holds_follower = fleet.has_no_room_aside = False
    assert await fleet.one_goes_on() == at
    await fleet.settled()
    assert is_clean(fleet)
    outcome = await moved_under_play(fleet, "B" if at == "A" else "A")
    assert outcome.outcomes == ("committed", "committed")


def why(outcome: Outcome, side: str) -> str:
    ended = outcome.of(side)
    return "" if ended is None else ended.reason


def phases(outcome: Outcome, side: str) -> list[str]:
    ended = outcome.of(side)
    return [] if ended is None else [name for name, _, _ in ended.phases]


class Path(Loopback):
    """A path that counts what it brings; ``breaks`` says before each pull whether it breaks there."""

    def __init__(self) -> None:
        tokens = iter(range(1 << 40))
        super().__init__(blocking=inline, tokens=lambda: next(tokens).to_bytes(32, "big"))
        self.pulls: list[int] = []
        self.num_connects = 0
        self.breaks: Callable[[int], bool] = lambda number: False
        self.delay_s = 0.0

    async def connect(self, ticket: bytes) -> Any:
        self.num_connects += 1
        return Counted(await super().connect(ticket), self)


class Counted:
    def __init__(self, inner: Any, path: Path) -> None:
        self._inner = inner
        self._path = path

    async def pull(self, extents: Sequence[Extent], into: memoryview) -> None:
        number = len(self._path.pulls)
        self._path.pulls.append(sum(extent.length for extent in extents))
        await asyncio.sleep(self._path.delay_s)
        if self._path.breaks(number):
            raise TransportError("the path broke")
        await self._inner.pull(extents, into)

    async def close(self) -> None:
        await self._inner.close()


def test_a_world_that_is_played_meanwhile_moves_and_shows_what_it_would_have_shown() -> None:
    async def story(fleet: Fleet) -> None:
        outcome = await moved_under_play(fleet)
        assert outcome.outcomes == ("committed", "committed")
        source, destination = outcome.of("source"), outcome.of("destination")
        assert source is not None
        assert destination is not None
        assert source.state_digest == destination.state_digest != ""
        assert (fleet.row.owner, fleet.row.epoch) == ("B", 2)
        await plays_on_at(fleet, "B")

    fleet = tell(story)
    assert all(equal for _, equal in fleet.checked)


def test_both_ends_say_what_they_did_before_the_boundary_and_at_it() -> None:
    async def story(fleet: Fleet) -> None:
        outcome = await moved_under_play(fleet)
        early = ["snapshot", "snapshot_digest", "meet"]
        assert phases(outcome, "source")[:3] == early
        assert "freeze" in phases(outcome, "source")
        assert phases(outcome, "destination")[:6] == [
            "reserve",
            "await_base",
            "fetch",
            "install_base",
            "verify_base",
            "catch_up",
        ]
        assert "halt" in phases(outcome, "destination")
        assert "land" not in phases(outcome, "destination")

    tell(story)


def test_nothing_is_pulled_from_the_freeze_on_and_the_snapshot_is_free_by_then() -> None:
    path, pulled_at, aside_at = Path(), dict[str, int](), dict[str, int]()

    async def story(fleet: Fleet) -> None:
        def on_post(message: AnyMoveMessage) -> None:
            if isinstance(message, Start | Boundary):
                pulled_at[type(message).__name__] = len(path.pulls)
                aside_at[type(message).__name__] = len(fleet.workers["A"].asides)

        fleet.on_post = on_post
        assert (await moved_under_play(fleet)).outcomes == ("committed", "committed")

    tell(story, transports={"loopback": path})
    assert pulled_at["Start"] == pulled_at["Boundary"] == len(path.pulls) > 0
    assert aside_at["Boundary"] == 0


def test_moves_in_a_row_by_either_strategy_are_bit_identical() -> None:
    async def story(fleet: Fleet) -> None:
        for number in range(60):
            fleet.strategy = "replay" if number % 3 else "boundary copy"
            outcome = await moved_under_play(fleet, "BA"[number % 2])
            assert outcome.outcomes == ("committed", "committed")
            await fleet.play(3)
            await fleet.settled()
            assert is_clean(fleet)

    fleet = tell(story)
    assert len(fleet.checked) >= 60
    assert all(equal for _, equal in fleet.checked)


def test_a_world_that_rests_is_met_where_it_stands() -> None:
    async def story(fleet: Fleet) -> None:
        shown = len(fleet.gateway.shown)
        assert (await fleet.move("B")).outcomes == ("committed", "committed")
        assert len(fleet.gateway.shown) == shown
        await plays_on_at(fleet, "B")

    tell(story)


def test_a_world_that_comes_to_rest_on_the_way_is_met_where_it_has_come_to() -> None:
    met: list[int] = []

    async def story(fleet: Fleet) -> None:
        playing = fleet.play_on()

        def on_post(message: AnyMoveMessage) -> None:
            if isinstance(message, Start):
                playing.task.cancel()
            if isinstance(message, Meet):
                met.append(message.block)

        fleet.on_post = on_post
        assert (await fleet.move("B")).outcomes == ("committed", "committed")
        await plays_on_at(fleet, "B")

    tell(story)
    assert met[:2] == [met[0], met[0] - 1]


@pytest.mark.parametrize("fault", [(), (0.0005, 0.001), (0.3,)], ids=["lost", "repeated", "late"])
@pytest.mark.parametrize("kind", EARLY, ids=lambda kind: kind.__name__)
def test_a_message_before_the_boundary_may_be_lost_repeated_or_late_once(
    kind: type[AnyMoveMessage], fault: tuple[float, ...]
) -> None:
    async def story(fleet: Fleet) -> None:
        struck: list[AnyMoveMessage] = []

        def post_fault(message: AnyMoveMessage) -> tuple[float, ...]:
            if isinstance(message, kind) and not struck:
                struck.append(message)
                return fault
            return (0.0005,)

        fleet.post_fault = post_fault
        outcome = await moved_under_play(fleet)
        assert struck
        assert outcome.outcomes == ("committed", "committed")
        await plays_on_at(fleet, "B")

    tell(story)


def test_every_message_repeated_is_a_move_as_ever() -> None:
    async def story(fleet: Fleet) -> None:
        fleet.post_fault = lambda message: (0.0005, 0.02)
        assert (await moved_under_play(fleet)).outcomes == ("committed", "committed")
        await plays_on_at(fleet, "B")

    tell(story)


@pytest.mark.parametrize("kind", OF_A_REPLAY, ids=lambda kind: kind.__name__)
def test_a_cancel_at_any_message_leaves_one_world_and_nothing_else(kind: type[AnyMoveMessage]) -> None:
    async def story(fleet: Fleet) -> None:
        cancelled: list[AnyMoveMessage] = []

        def on_post(message: AnyMoveMessage) -> None:
            if isinstance(message, kind) and not cancelled:
                cancelled.append(message)
                for end in "AB":
                    fleet.say(Cancel, end, message.attempt, message.epoch)

        fleet.on_post = on_post
        await moved_under_play(fleet)
        assert cancelled
        await plays_on_at(fleet, await fleet.one_goes_on())

    tell(story)


@pytest.mark.parametrize("kind", OF_A_REPLAY, ids=lambda kind: kind.__name__)
def test_a_destination_that_dies_at_any_message_before_the_proof_leaves_the_source_playing(
    kind: type[AnyMoveMessage],
) -> None:
    async def story(fleet: Fleet) -> None:
        killed: list[AnyMoveMessage] = []

        def on_post(message: AnyMoveMessage) -> None:
            if isinstance(message, kind) and not killed:
                killed.append(message)
                fleet.kill("B")

        fleet.on_post = on_post
        await moved_under_play(fleet)
        assert killed
        fleet.restart("B")
        fleet.decide(fleet.close_of(killed[0].attempt))
        await plays_on_at(fleet, "A")

    tell(story)


def test_a_source_without_room_aside_plays_on_and_says_so() -> None:
    async def story(fleet: Fleet) -> None:
        fleet.has_no_room_aside = True
        outcome = await moved_under_play(fleet)
        assert outcome.outcomes == ("aborted", "aborted")
        assert (why(outcome, "source"), why(outcome, "destination")) == ("no_slot", "no_slot")
        await plays_on_at(fleet, "A")

    tell(story)


def test_a_destination_that_never_catches_up_gives_up_and_its_source_was_never_frozen() -> None:
    path = Path()
    path.delay_s = 0.5

    async def story(fleet: Fleet) -> None:
        fleet.holds_follower, fleet.patience_s = True, 3.0
        outcome = await moved_under_play(fleet)
        assert outcome.outcomes == ("aborted", "aborted")
        ended = outcome.of("destination")
        assert ended is not None
        assert ended.reason == "never_caught_up"
        assert "had not caught up within 3" in ended.detail
        assert not any(isinstance(message, Start) for message in fleet.sent)
        await plays_on_at(fleet, "A")

    tell(story, transports={"loopback": path})


def test_both_ends_let_go_of_a_move_that_nobody_conducts_any_more() -> None:
    async def story(fleet: Fleet) -> None:
        fleet.holds_follower = True
        begun: list[AnyMoveMessage] = []

        def post_fault(message: AnyMoveMessage) -> tuple[float, ...]:
            if isinstance(message, Begin):
                begun.append(message)
            gone = len(begun) > 2 and message.sender == "controller"
            return () if gone else (0.0005,)

        fleet.post_fault = post_fault
        playing = fleet.play_on()
        moving = asyncio.ensure_future(fleet.move("B"))
        await asyncio.sleep(5.0)  # the lease is 2 s, the patience 10
        assert not fleet.copies(Plays.SHADOW)
        assert is_clean(fleet)
        await playing.end()
        moving.cancel()
        await asyncio.gather(moving, return_exceptions=True)
        fleet.decide(fleet.close_of(begun[0].attempt))
        await plays_on_at(fleet, "A")

    tell(story)


def test_a_chunk_is_as_large_as_the_path_is_fast() -> None:
    path = Path()

    async def story(fleet: Fleet) -> None:
        fleet.destination_config = DestinationConfig(fetching=FetchingConfig(chunk_bytes=64, most_chunk_bytes=512))
        assert (await moved_under_play(fleet)).outcomes == ("committed", "committed")

    tell(story, transports={"loopback": path})
    assert path.pulls[:2] == [64, 512]
    assert set(path.pulls[1:-1]) == {512}


def test_a_broken_path_is_connected_anew_and_only_the_chunk_in_hand_comes_again() -> None:
    path = Path()
    path.breaks = lambda number: number in (3, 4, 9)

    async def story(fleet: Fleet) -> None:
        fleet.destination_config = DestinationConfig(fetching=FetchingConfig(chunk_bytes=64, most_chunk_bytes=64))
        assert (await moved_under_play(fleet)).outcomes == ("committed", "committed")

    tell(story, transports={"loopback": path})
    clean, whole = Path(), []

    async def unbroken(fleet: Fleet) -> None:
        fleet.destination_config = DestinationConfig(fetching=FetchingConfig(chunk_bytes=64, most_chunk_bytes=64))
        await moved_under_play(fleet)
        whole.extend(clean.pulls)

    tell(unbroken, transports={"loopback": clean})
    assert path.num_connects == 4
    assert len(whole) > 10
    assert sum(path.pulls) == sum(whole) + path.pulls[3] + path.pulls[4] + path.pulls[9]


def test_a_path_that_never_carries_ends_with_the_patience_and_says_how_far_it_came_and_why_not_farther() -> None:
    path = Path()
    path.breaks = lambda number: number > 1

    async def story(fleet: Fleet) -> None:
        fleet.destination_config = DestinationConfig(fetching=FetchingConfig(chunk_bytes=64, most_chunk_bytes=64))
        fleet.patience_s = 3.0
        outcome = await moved_under_play(fleet)
        ended = outcome.of("destination")
        assert ended is not None
        assert (ended.outcome, ended.reason) == ("aborted", "never_caught_up")
        assert "of the snapshot had come, and not all of it (the path broke: the path broke) within" in ended.detail
        path.breaks = lambda number: False
        await plays_on_at(fleet, "A")

    tell(story, transports={"loopback": path})


class DamagedAtFirst(Path):
    """A path that damages its first pulls and says nothing."""

    def __init__(self, num_damaged: int) -> None:
        super().__init__()
        self._lying = Corrupting(self, rng=random.Random(3), plan=DamagePlan(damage=Damage.FLIP))
        self._num_damaged = num_damaged

    async def connect(self, ticket: bytes) -> Any:
        inner = await super().connect(ticket)
        return LyingAtFirst(inner, self._lying, self, self._num_damaged)


class LyingAtFirst:
    def __init__(self, inner: Any, lying: Corrupting, path: Path, num_damaged: int) -> None:
        self._inner, self._lying, self._path, self._num_damaged = inner, lying, path, num_damaged

    async def pull(self, extents: Sequence[Extent], into: memoryview) -> None:
        if len(self._path.pulls) < self._num_damaged:
            await self._lying.damage(self._inner, extents, into)
        else:
            await self._inner.pull(extents, into)

    async def close(self) -> None:
        await self._inner.close()


@pytest.mark.parametrize("num_damaged", [1, 2, 3])
def test_a_part_of_the_snapshot_that_arrives_damaged_is_pulled_again(num_damaged: int) -> None:
    path = DamagedAtFirst(num_damaged)

    async def story(fleet: Fleet) -> None:
        assert (await moved_under_play(fleet)).outcomes == ("committed", "committed")
        await plays_on_at(fleet, "B")

    tell(story, transports={"loopback": path})


@pytest.mark.parametrize(
    ("forget", "named"),
    [
        (lambda copy: setattr(copy.world, "block", 0), "as installed, "),
        (lambda copy: copy.world.window.add_(1), "differed as installed: window"),
    ],
)
def test_what_is_made_otherwise_of_a_snapshot_that_arrived_as_it_was_sent_is_blamed_on_no_path(
    forget: Callable[[Copy], object], named: str
) -> None:
    async def story(fleet: Fleet) -> None:
        fleet.on_reserve = lambda copy: setattr(copy, "after_install", forget)
        ended = (await moved_under_play(fleet)).of("destination")
        assert ended is not None
        assert (ended.outcome, ended.reason) == ("aborted", "installed_otherwise")
        assert named in ended.detail
        await fleet.one_goes_on()

    tell(story)


def test_a_snapshot_that_arrives_damaged_each_time_is_given_up_by_name_and_never_installed() -> None:
    path = DamagedAtFirst(1000)
    installed: list[Copy] = []

    async def story(fleet: Fleet) -> None:
        fleet.on_reserve = lambda copy: setattr(copy, "before_install", lambda copy, *_: installed.append(copy))
        outcome = await moved_under_play(fleet)
        ended = outcome.of("destination")
        assert ended is not None
        assert (ended.outcome, ended.reason) == ("aborted", "mismatch")
        assert "arrived damaged from A" in ended.detail
        assert outcome.outcomes == ("aborted", "aborted")
        assert not installed
        await fleet.one_goes_on()
        assert is_clean(fleet)

    tell(story, transports={"loopback": path})


def test_a_follower_that_computes_something_else_is_never_played_and_the_leaf_is_named() -> None:
    async def story(fleet: Fleet) -> None:
        def on_follow(copy: Copy) -> None:
            copy.world.base[0, 0] += 1

        fleet.on_follow = on_follow
        outcome = await moved_under_play(fleet)
        ended = outcome.of("destination")
        assert ended is not None
        assert (ended.outcome, ended.reason) == ("aborted", "diverged")
        assert "base" in ended.detail
        await plays_on_at(fleet, "A")

    tell(story)


def test_a_follower_that_has_stepped_past_the_meeting_gives_up_and_the_source_plays_on() -> None:
    async def story(fleet: Fleet) -> None:
        def on_post(message: AnyMoveMessage) -> None:
            if isinstance(message, Start):
                (shadow,) = fleet.copies(Plays.SHADOW)
                for _ in range(5):
                    shadow.world.step(())

        fleet.on_post = on_post
        outcome = await moved_under_play(fleet)
        assert why(outcome, "destination") == "overshot"
        await plays_on_at(fleet, "A")

    tell(story)


def test_a_wrong_proof_of_the_snapshot_or_a_manifest_that_is_none_ends_the_move_and_nothing_else() -> None:
    for changes in ({"groups": bytes(16)}, {"manifest": b"none"}, {"placement": (0,)}):

        async def story(fleet: Fleet, changes: dict[str, Any] = changes) -> None:
            fleet.change = lambda message: (
                msgspec.structs.replace(message, **changes) if isinstance(message, Base) else message
            )
            outcome = await moved_under_play(fleet)
            assert outcome.outcomes == ("aborted", "aborted")
            fleet.change = lambda message: message
            await plays_on_at(fleet, "A")

        tell(story)


def test_an_early_message_of_another_attempt_or_incarnation_is_dropped() -> None:
    async def story(fleet: Fleet) -> None:
        def on_post(message: AnyMoveMessage) -> None:
            if isinstance(message, Base):
                for forged in (
                    msgspec.structs.replace(message, incarnation=9, manifest=b"none"),
                    msgspec.structs.replace(message, attempt="00000099-x", manifest=b"none"),
                ):
                    fleet.workers["B"].deliver(forged)

        fleet.on_post = on_post
        assert (await moved_under_play(fleet)).outcomes == ("committed", "committed")

    tell(story)
