"""Moves whose state goes ahead in rounds while it is played: what is found again, what is pulled, what goes wrong."""

import asyncio
import re
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from tests.move.faulty_post import every, first
from tests.move.harness import BLOCK_S, SEED, Copy, Fleet, Outcome, Plays, World, inputs_of
from tests.move.rolling import BY, FIRST_BLOCKS, NUM_ROWS, PLACES, ROW_BYTES, STATIC_BYTES, Rolling, install, reference
from tests.move.toy import Toy
from tests.move.virtual import run
from worldmove.errors import StateRefused, TransportError
from worldmove.move import held_state, told_rows
from worldmove.move.destination import DestinationConfig
from worldmove.move.messages import AnyMoveMessage, Base, Begin, Boundary, Ended, Final, Landed, Proof, Ready, Start
from worldmove.move.precopy import PrecopyConfig
from worldmove.transport.loopback import Loopback, LoopbackChannel

Story = Callable[[Fleet], Coroutine[Any, Any, None]]

NEW_BYTES = ROW_BYTES * BY + PLACES * ROW_BYTES * BY
"""Of what rolls, a block writes so much anew."""
SHIFTED_BYTES = ROW_BYTES * (NUM_ROWS - BY) + PLACES * ROW_BYTES * (6 - BY)


def tell(story: Story, **made: Any) -> Fleet:
    async def main() -> Fleet:
        fleet = Fleet(world=World(first=Rolling, install=install), **made)
        fleet.source_config = replace(fleet.source_config, row_bytes=ROW_BYTES)
        await fleet.play(FIRST_BLOCKS)
        await moved(fleet, "B")  # from here on its memory lies in a slot
        await fleet.play(2)
        await fleet.settled()
        fleet.strategy = "pre-copy"
        await story(fleet)
        shown = fleet.gateway.shown
        assert shown == reference(SEED, [inputs_of(block) for block in range(len(shown))]), "the world is another one"
        return fleet

    return run(main())


async def moved(fleet: Fleet, to: str) -> Outcome:
    outcome = await fleet.move(to)
    assert outcome.outcomes == ("committed", "committed"), [end.detail for end in outcome.ended]
    return outcome


async def is_well_again(fleet: Fleet) -> None:
    fleet.post_fault = lambda message: (0.0005,)
    fleet.on_post = lambda message: None
    fleet.on_reserve = lambda copy: None
    at = await fleet.one_goes_on()
    await fleet.settled()
    await moved(fleet, "B" if at == "A" else "A")
    assert await fleet.one_goes_on() != at


def last(outcome: Outcome) -> Ended:
    end = outcome.of("destination")
    assert end is not None
    return end


def play_a_block_at(kind: type, fleet: Fleet) -> None:
    """One block is computed when the first message of a kind is on its way."""
    seen: list[AnyMoveMessage] = []

    def on_post(message: AnyMoveMessage) -> None:
        if isinstance(message, kind) and not seen:
            seen.append(message)
            fleet.owner.play()

    fleet.on_post = on_post


def test_of_a_world_that_rests_nothing_is_pulled_at_the_boundary_but_what_was_bound_anew() -> None:
    async def story(fleet: Fleet) -> None:
        end = last(await moved(fleet, "A"))
        assert end.plain == ""
        assert end.in_place_bytes + end.moved_bytes + end.pulled_bytes == end.num_bytes
        assert end.pulled_bytes == end.moved_bytes + end.pulled_bytes - end.moved_bytes <= 8 * 16 * 4 + 96 * 4
        assert {name for name, _, _ in end.phases} >= {"await_base", "rounds", "reconcile", "moves", "land"}

    tell(story)


def test_after_a_block_what_rolled_is_moved_and_what_is_new_is_pulled() -> None:
    """The engine says nothing of its rolling. Computed by hand from the shapes."""

    async def story(fleet: Fleet) -> None:
        at_rest = last(await moved(fleet, "A"))
        await fleet.play(2)
        await fleet.settled()
        play_a_block_at(Ready, fleet)
        end = last(await moved(fleet, "B"))
        others = end.pulled_bytes - NEW_BYTES
        assert 0 <= others <= at_rest.pulled_bytes + 96 * 4 + 8 * 16 * 4
        assert end.moved_bytes >= SHIFTED_BYTES
        assert end.in_place_bytes >= STATIC_BYTES
        assert end.in_place_bytes + end.moved_bytes + end.pulled_bytes == end.num_bytes

    tell(story)


def test_a_world_that_is_played_all_the_while_moves_again_and_again() -> None:
    async def story(fleet: Fleet) -> None:
        playing = fleet.play_on()
        for to in "ABABABABAB":
            end = last(await moved(fleet, to))
            assert end.in_place_bytes >= STATIC_BYTES
            await fleet.settled()
        await playing.end()

    tell(story)


OF_THE_ROUNDS = [Begin, Base, Ready, Start, Boundary, Landed, Proof]


@pytest.mark.parametrize("kind", OF_THE_ROUNDS)
@pytest.mark.parametrize("deliveries", [(), (0.0005, 0.0011, 0.4, 7.0), (0.9,)])
def test_the_first_message_of_a_kind_is_lost_or_comes_often_or_late(kind: type, deliveries: tuple[float, ...]) -> None:
    async def story(fleet: Fleet) -> None:
        fleet.post_fault = first(kind, deliveries)
        playing = fleet.play_on()
        await moved(fleet, "A")
        await playing.end()
        await is_well_again(fleet)

    tell(story)


@pytest.mark.parametrize("kind", [Begin, Base, Ready, Boundary])
def test_every_message_of_a_kind_is_lost(kind: type) -> None:
    async def story(fleet: Fleet) -> None:
        fleet.patience_s = 5.0
        fleet.post_fault = every(kind, ())
        playing = fleet.play_on()
        outcome = await fleet.move("A")
        assert "committed" not in outcome.outcomes
        await playing.end()
        await is_well_again(fleet)

    tell(story)


@pytest.mark.parametrize("at", [Base, Ready, Boundary])
@pytest.mark.parametrize("who", ["A", "B"])
def test_an_end_dies(at: type, who: str) -> None:
    async def story(fleet: Fleet) -> None:
        fleet.on_post = lambda message: fleet.kill(who) if isinstance(message, at) and not fleet.suspected else None
        outcome = await fleet.move("A")
        assert "committed" not in outcome.outcomes
        if who == "A":
            fleet.restart("A")
            await is_well_again(fleet)

    tell(story)


class Tampering(Loopback):
    """A path that can damage what it brings, or break."""

    def __init__(self, **made: Any) -> None:
        super().__init__(**made)
        self.damage: Callable[[int, memoryview], None] = lambda pull, into: None
        self.num_pulls = 0

    async def connect(self, ticket: bytes) -> LoopbackChannel:
        channel = await super().connect(ticket)
        pull = channel.pull

        async def tampered(extents: Any, into: memoryview) -> None:
            await pull(extents, into)
            self.num_pulls += 1
            for extent in extents:
                self.damage(self.num_pulls, into[extent.offset : extent.end])

        channel.pull = tampered  # type: ignore[method-assign]
        return channel


def tampering() -> dict[str, Any]:
    async def inline(work: Callable[[], Any]) -> Any:
        return work()

    tokens = iter(range(1 << 40))
    return {"loopback": Tampering(blocking=inline, tokens=lambda: next(tokens).to_bytes(32, "big"))}


def test_what_a_round_brings_damaged_is_found_at_the_boundary_and_pulled() -> None:
    paths = tampering()

    async def story(fleet: Fleet) -> None:
        def damage(pull: int, into: memoryview) -> None:
            into[:] = bytes(byte ^ 0x5A for byte in into)

        paths["loopback"].damage = damage
        fleet.on_post = lambda message: (
            paths["loopback"].__setattr__("damage", lambda pull, into: None) if isinstance(message, Boundary) else None
        )
        end = last(await moved(fleet, "A"))
        assert end.pulled_bytes >= STATIC_BYTES
        await is_well_again(fleet)

    tell(story, transports=paths)


@pytest.mark.parametrize("at", [Begin, Ready])
def test_what_the_boundary_brings_damaged_ends_the_attempt_and_is_named(at: type) -> None:
    """Also where the boundary is told by what the base has told, which is not what the offer had."""
    paths = tampering()

    async def story(fleet: Fleet) -> None:
        def at_boundary(message: AnyMoveMessage) -> None:
            if isinstance(message, Boundary):
                paths["loopback"].damage = lambda pull, into: into.__setitem__(0, into[0] ^ 1)

        play_a_block_at(at, fleet)
        plays = fleet.on_post

        def both(message: AnyMoveMessage) -> None:
            plays(message)
            at_boundary(message)

        fleet.on_post = both
        outcome = await fleet.move("A")
        assert outcome.outcomes[1] == "aborted"
        assert last(outcome).reason == "mismatch"
        # Which groups is for time to say: a last round may have brought the window's new row before the boundary.
        assert re.fullmatch(r"groups? [\d, ]+ of 6 arrived damaged from B over loopback: .+", last(outcome).detail)
        paths["loopback"].damage = lambda pull, into: None
        await is_well_again(fleet)

    tell(story, transports=paths)


def test_a_path_that_breaks_in_a_round_is_gone_on_with() -> None:
    paths = tampering()

    async def story(fleet: Fleet) -> None:
        def breaks(pull: int, into: memoryview) -> None:
            if pull % 2:
                raise TransportError("it broke")

        paths["loopback"].damage = breaks
        fleet.on_post = lambda message: (
            paths["loopback"].__setattr__("damage", lambda pull, into: None) if isinstance(message, Start) else None
        )
        await moved(fleet, "A")

    tell(story, transports=paths)


def test_digests_of_another_boundary_are_caught_by_the_proof() -> None:
    """A source that says of its rows what they were a block ago: rows are taken to be in place that are not."""
    told: list[bytes] = []

    async def story(fleet: Fleet) -> None:
        def stale(message: AnyMoveMessage) -> tuple[float, ...]:
            if isinstance(message, Boundary):
                told.append(message.rows)
            return (0.0005,)

        fleet.post_fault = stale
        await moved(fleet, "A")
        await fleet.play(2)
        await fleet.settled()
        play_a_block_at(Ready, fleet)
        real = Fleet.post

        def post(sender: Any, message: AnyMoveMessage) -> None:
            if isinstance(message, Boundary) and len(message.rows) == len(told[0]):
                message = msgspec.structs.replace(message, rows=told[0])
            real(fleet, sender, message)

        fleet.post = post  # type: ignore[method-assign]
        outcome = await fleet.move("B")
        assert "committed" not in outcome.outcomes
        del fleet.post
        await is_well_again(fleet)

    tell(story)


@pytest.mark.parametrize("rows", [b"1234567", b"12345678", bytes(8 * 100_000)])
def test_digests_that_are_not_of_its_rows_end_the_attempt(rows: bytes) -> None:
    async def story(fleet: Fleet) -> None:
        real = Fleet.post

        def post(sender: Any, message: AnyMoveMessage) -> None:
            if isinstance(message, Boundary):
                message = msgspec.structs.replace(message, rows=rows)
            real(fleet, sender, message)

        fleet.post = post  # type: ignore[method-assign]
        outcome = await fleet.move("A")
        assert last(outcome).reason == "bad_manifest"
        del fleet.post
        await is_well_again(fleet)

    tell(story)


@pytest.mark.parametrize("where", [held_state, told_rows])
def test_a_state_of_too_many_rows_is_pulled_whole_and_the_report_says_why(
    where: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise StateRefused("", "it has more rows than there may be")

    monkeypatch.setattr(where, "rows_of", refuse)

    async def story(fleet: Fleet) -> None:
        end = last(await moved(fleet, "A"))
        assert end.plain == "state cannot be carried: it has more rows than there may be"
        assert end.pulled_bytes == end.num_bytes
        assert end.in_place_bytes == end.moved_bytes == 0

    tell(story)


def test_rounds_that_there_is_no_time_for_end_the_attempt() -> None:
    async def story(fleet: Fleet) -> None:
        config = PrecopyConfig(reserve_s=100.0)
        fleet.destination_config = replace(fleet.destination_config or DestinationConfig(), precopy=config)
        outcome = await fleet.move("A")
        assert last(outcome).reason == "does_not_converge"
        assert last(outcome).detail == "there is no time to bring its state over once"
        assert fleet.copies(Plays.LIVE)
        fleet.destination_config = DestinationConfig()
        await is_well_again(fleet)

    tell(story)


def slow(takes_s: float = BLOCK_S) -> dict[str, Any]:
    """A path on which each pull takes so long."""
    paths = tampering()
    connect = paths["loopback"].connect

    async def dragging_from(ticket: bytes) -> LoopbackChannel:
        channel: LoopbackChannel = await connect(ticket)
        pull = channel.pull

        async def dragging(extents: Any, into: memoryview) -> None:
            await asyncio.sleep(takes_s)
            await pull(extents, into)

        channel.pull = dragging  # type: ignore[method-assign]
        return channel

    paths["loopback"].connect = dragging_from
    return paths


def test_a_world_that_changes_faster_than_may_be_left_for_the_end_stays_where_it_is() -> None:
    async def story(fleet: Fleet) -> None:
        fleet.affordable_bytes = 0
        playing = fleet.play_on()
        outcome = await fleet.move("A")
        assert last(outcome).reason == "does_not_converge"
        assert last(outcome).detail.endswith("would be left, and 0 B fit into the pause")
        fleet.affordable_bytes = 1 << 20
        await moved(fleet, "A")
        await playing.end()

    tell(story, transports=slow())


def test_where_more_is_left_when_it_is_frozen_than_the_pause_bears_it_is_played_on() -> None:
    async def story(fleet: Fleet) -> None:
        await moved(fleet, "A")
        await fleet.play(2)
        await fleet.settled()
        fleet.affordable_bytes, fleet.pause_bytes = 1 << 30, NEW_BYTES // 2
        play_a_block_at(Ready, fleet)
        end = last(await fleet.move("B"))
        assert (end.outcome, end.reason) == ("aborted", "does_not_converge")
        assert end.detail.startswith("more has changed than came over in time: ")
        await fleet.settled()
        fleet.pause_bytes = 1 << 30
        await moved(fleet, "B")

    tell(story)


def test_of_a_world_that_rests_nothing_is_left_so_it_is_moved_whatever_may_be() -> None:
    async def story(fleet: Fleet) -> None:
        fleet.affordable_bytes, fleet.pause_bytes = 0, 1024  # a counter's array goes with the boundary
        await moved(fleet, "A")

    tell(story)


# leaf by leaf, while a block is computed


def streamed(fleet: Fleet, says: Callable[[Copy], tuple[str, ...]]) -> None:
    """A block is computed once the destination is ready, of which the engine says something; the freeze comes later."""
    fleet.strategy = "streaming"
    fleet.post_fault = lambda message: (0.2,) if isinstance(message, Start) else (0.0005,)
    play_a_block_at(Ready, fleet)
    begun = fleet.owner.world.block

    def finals(copy: Copy) -> tuple[str, ...]:
        return says(copy) if copy.world.block > begun else ()

    fleet.finals = finals


def test_what_is_final_before_its_block_ends_is_not_pulled_at_the_boundary() -> None:
    async def story(fleet: Fleet) -> None:
        streamed(fleet, lambda copy: ("keys", "mouse", "no such leaf", ""))
        end = last(await moved(fleet, "A"))
        rolling = 4 * 8 * (NUM_ROWS + 6 * PLACES)
        assert end.in_place_bytes >= STATIC_BYTES + rolling
        assert end.pulled_bytes <= end.num_bytes - end.in_place_bytes
        await is_well_again(fleet)

    tell(story)


def test_what_is_called_final_and_written_afterwards_is_found_at_the_boundary() -> None:
    async def story(fleet: Fleet) -> None:
        said: list[tuple[str, ...]] = []

        def lie(world: Toy) -> None:
            """Write to what was called final, and pulled since."""
            assert isinstance(world, Rolling)
            world.keys.add_(1.0)

        def once(copy: Copy) -> tuple[str, ...]:
            if said:
                return ()
            said.append(("keys", "mouse"))
            asyncio.get_running_loop().call_later(0.1, lie, copy.world)
            return said[0]

        streamed(fleet, once)
        end = last(await moved(fleet, "A"))
        assert said
        assert end.pulled_bytes >= 4 * 8 * NUM_ROWS
        await is_well_again(fleet)

    tell(story)


@pytest.mark.parametrize("deliveries", [(), (0.0005, 0.03, 0.5, 7.0)])
def test_word_of_what_is_final_may_be_lost_or_come_late(deliveries: tuple[float, ...]) -> None:
    async def story(fleet: Fleet) -> None:
        streamed(fleet, lambda copy: ("keys", "mouse"))
        fault = fleet.post_fault
        fleet.post_fault = lambda message: deliveries if isinstance(message, Final) else fault(message)
        await moved(fleet, "A")
        await is_well_again(fleet)

    tell(story)


# what the engine says of its rolling


@pytest.mark.parametrize(
    "rolled",
    [
        {"keys": (1, BY, 0), "mouse": (1, BY, 0)},
        {"keys": (1, BY + 1, 0), "mouse": (0, 1, 0), "static": (0, 2, 1), "no such leaf": (0, 1, 0)},
        {"keys": (7, 1, 0), "mouse": (1, 1 << 40, 0), "static": (0, 1, 1 << 40), "block": (0, 1, 0)},
    ],
    ids=["truth", "lie", "nonsense"],
)
def test_what_an_engine_says_of_its_rolling_changes_nothing_but_where_is_looked_first(
    rolled: dict[str, tuple[int, int, int]],
) -> None:
    async def story(fleet: Fleet) -> None:
        fleet.rolled = rolled
        play_a_block_at(Ready, fleet)
        end = last(await moved(fleet, "A"))
        assert end.moved_bytes >= SHIFTED_BYTES
        assert end.in_place_bytes >= STATIC_BYTES
        assert end.in_place_bytes + end.moved_bytes + end.pulled_bytes == end.num_bytes

    tell(story)
