"""Whole moves of a toy world over loopback, with the shipped drivers and the ledger's rules, in virtual time."""

import pickle
import random
from collections.abc import Callable, Coroutine
from typing import Any

import msgspec
import numpy as np
import pytest

from tests.move.harness import Copy, Fleet, Plays, reference
from tests.move.virtual import inline, run
from worldmove.move.messages import AnyMoveMessage, Boundary, Ended, Landed, Offer, Proof
from worldmove.state import Layout, Manifest, Placement
from worldmove.state.arena import Arena
from worldmove.state.capture import capture
from worldmove.state.extent import Extent
from worldmove.state.placement import extents
from worldmove.transport.loopback import Loopback
from worldmove.transport.wrappers import Corrupting, Damage, DamagePlan

Story = Callable[[Fleet], Coroutine[Any, Any, None]]


def tell(story: Story) -> Fleet:
    """Run a story of one fleet, and check what must hold at the end of every story."""

    async def main() -> Fleet:
        fleet = Fleet()
        await story(fleet)
        return fleet

    fleet = run(main())
    assert fleet.gateway.shown == reference(fleet), "the world is another one"
    return fleet


async def goes_on(fleet: Fleet, at: str, num_blocks: int = 3) -> None:
    """The session is played at ``at``, and every block that it makes is shown."""
    shown = len(fleet.gateway.shown)
    assert fleet.owner.worker.name == at
    await fleet.play(num_blocks)
    assert len(fleet.gateway.shown) == shown + num_blocks


def test_a_moved_world_shows_what_it_would_have_shown() -> None:
    async def story(fleet: Fleet) -> None:
        await fleet.play(4)
        outcome = await fleet.move("B")
        assert outcome.outcomes == ("committed", "committed")
        assert (fleet.row.owner, fleet.row.epoch) == ("B", 2)
        await goes_on(fleet, "B")

    tell(story)


def test_five_hundred_moves_in_a_row_are_bit_identical() -> None:
    async def story(fleet: Fleet) -> None:
        await fleet.play(2)
        for number in range(500):
            to = "BA"[number % 2]
            outcome = await fleet.move(to)
            assert outcome.outcomes == ("committed", "committed")
            source, destination = outcome.of("source"), outcome.of("destination")
            assert source is not None
            assert destination is not None
            assert source.state_digest == destination.state_digest != ""
            await fleet.play(2)
            await fleet.settled()
            assert fleet.row.epoch == number + 2
        assert len(fleet.gateway.shown) >= 1000

    fleet = tell(story)
    assert len(fleet.checked) == 500
    assert all(equal for _, equal in fleet.checked)


def test_the_pause_is_the_freeze_the_copy_and_one_pass_and_not_their_sum() -> None:
    async def story(fleet: Fleet) -> None:
        await fleet.play(3)
        outcome = await fleet.move("B")
        source, destination = outcome.of("source"), outcome.of("destination")
        assert source is not None
        assert destination is not None
        assert {name for name, _, _ in source.phases} == {
            *("settle", "freeze", "boundary", "acknowledge", "digest", "second_digest", "doubt", "state_digest")
        }
        assert {name for name, _, _ in destination.phases} == {
            *("reserve", "build", "land", "install", "verify", "wait_proof", "commit", "state_digest", "promote")
        }
        times = {name: (start, end) for name, start, end in source.phases}
        assert times["digest"][1] <= times["boundary"][1]  # beside the transfer
        assert times["freeze"][0] == 0.0

    tell(story)


def test_a_digest_of_every_group_is_compared_and_reported() -> None:
    async def story(fleet: Fleet) -> None:
        await fleet.play(3)
        outcome = await fleet.move("B")
        (proof,) = [message for message in fleet.sent if isinstance(message, Proof)]
        for side in ("source", "destination"):
            end = outcome.of(side)
            assert end is not None
            assert end.num_groups == len(proof.groups) / 16 > 1
            assert end.num_bytes == proof.num_bytes > 0
            assert end.num_leaves == 7

    tell(story)


def test_a_world_moves_while_it_is_played() -> None:
    async def story(fleet: Fleet) -> None:
        await fleet.play(1)
        playing = fleet.play_on()
        for to in "BABA":
            assert (await fleet.move(to)).outcomes == ("committed", "committed")
            await fleet.settled()
        await playing.end()

    tell(story)


# before a byte travels


def test_another_environment_is_refused_by_the_names_of_its_fields() -> None:
    async def story(fleet: Fleet) -> None:
        fleet.set_environment("B", {"cpu": "another", "threads": "2"})
        outcome = await fleet.move("B")
        assert outcome.declined is not None
        assert outcome.declined.reason == "environment"
        assert "cpu is another here and toy there" in outcome.declined.detail
        assert "threads is 2 here and not set there" in outcome.declined.detail
        assert fleet.workers["B"].copies == []
        await goes_on(fleet, "A")

    tell(story)


def test_a_canary_that_differs_refuses_the_move_by_its_name() -> None:
    """All settings are equal, and the one fixed block came out differently there."""

    async def story(fleet: Fleet) -> None:
        fleet.set_environment("B", {"cpu": "toy", "engine.canary.state": "xxh3-128:bb"})
        outcome = await fleet.move("B")
        assert outcome.declined is not None
        assert outcome.declined.reason == "environment"
        assert outcome.declined.detail == "engine.canary.state is xxh3-128:bb here and not set there"
        await goes_on(fleet, "A")

    tell(story)


def test_a_worker_that_still_holds_a_copy_takes_no_second_one() -> None:
    async def story(fleet: Fleet) -> None:
        await fleet.play(1)
        await fleet.move("B")
        assert fleet.copies(Plays.RETIRED) or fleet.copies(Plays.FROZEN)
        outcome = await fleet.move("A")
        assert outcome.declined is not None
        assert outcome.declined.reason == "copy_held"
        await goes_on(fleet, "B")

    tell(story)


def test_an_unknown_strategy_is_refused() -> None:
    async def story(fleet: Fleet) -> None:
        fleet.strategy = "teleport"
        outcome = await fleet.move("B")
        assert outcome.declined is not None
        assert outcome.declined.reason == "strategy"
        await goes_on(fleet, "A")

    tell(story)


def test_an_unknown_path_is_refused() -> None:
    async def story(fleet: Fleet) -> None:
        fleet.path = "pigeon"
        outcome = await fleet.move("B")
        assert outcome.declined is not None
        assert outcome.declined.reason == "transport"
        await goes_on(fleet, "A")

    tell(story)


# verify


@pytest.mark.parametrize("damage", [Damage.FLIP, Damage.DROP, Damage.SWAP, Damage.STALE])
def test_a_damaged_transfer_is_aborted_and_the_source_goes_on(damage: Damage) -> None:
    async def story(fleet: Fleet) -> None:
        await fleet.play(3)
        good = fleet.transports["loopback"]
        fleet.transports["loopback"] = Corrupting(
            good, rng=random.Random(3), plan=DamagePlan(damage=damage, num_bytes=8)
        )
        for _ in range(3):
            outcome = await fleet.move("B")
            assert outcome.outcomes == ("aborted", "aborted")
            end = outcome.of("destination")
            assert end is not None
            assert end.reason == "mismatch"
            assert "damaged" in end.detail
            await goes_on(fleet, "A")
        fleet.transports["loopback"] = good
        assert (await fleet.move("B")).outcomes == ("committed", "committed")
        await goes_on(fleet, "B")

    tell(story)


def test_a_boundary_of_another_state_in_the_places_that_were_foretold_is_one_clear_error() -> None:
    other = capture({"words": np.arange(9)}).manifest.to_bytes()

    async def story(fleet: Fleet) -> None:
        await fleet.play(3)
        places: list[Placement] = []

        def change(message: AnyMoveMessage) -> AnyMoveMessage:
            if isinstance(message, Offer):
                places.append(Layout.from_bytes(message.layout).places)
            if not isinstance(message, Boundary):
                return message
            return msgspec.structs.replace(message, manifest=other, placement=places[-1])

        fleet.change = change
        outcome = await fleet.move("B")
        assert outcome.outcomes == ("aborted", "aborted")
        end = outcome.of("destination")
        assert end is not None
        assert (end.reason, end.detail) == ("bad_manifest", f"{len(places[-1])} places for 1 storages")
        await goes_on(fleet, "A")

    tell(story)


def test_a_broken_transfer_is_aborted_and_the_source_goes_on() -> None:
    async def story(fleet: Fleet) -> None:
        await fleet.play(3)
        path = Corrupting(fleet.transports["loopback"], rng=random.Random(3), plan=DamagePlan(damage=Damage.SHORT))
        fleet.transports["loopback"] = path
        outcome = await fleet.move("B")
        assert outcome.outcomes == ("aborted", "aborted")
        end = outcome.of("source")
        assert end is not None
        assert end.reason == "transport"
        await goes_on(fleet, "A")

    tell(story)


def test_memory_altered_between_landing_and_verification_aborts_the_move() -> None:
    """Every storage of the session, one after the other: a byte of each is enough."""

    def alter(copy: Copy, manifest: Manifest, placement: Placement, nth: int) -> None:
        run_of_bytes = extents(manifest, placement)
        at = run_of_bytes[nth % len(run_of_bytes)]
        copy.arena.buffer[at.offset + at.length // 2] ^= 0x10

    async def story(fleet: Fleet) -> None:
        await fleet.play(4)
        for nth in range(4):
            fleet.on_reserve = lambda copy, nth=nth: setattr(  # type: ignore[misc]
                copy, "before_install", lambda c, m, p: alter(c, m, p, nth)
            )
            outcome = await fleet.move("B")
            assert outcome.outcomes == ("aborted", "aborted")
            end = outcome.of("destination")
            assert end is not None
            assert end.reason == "mismatch"
            await goes_on(fleet, "A", 1)

    tell(story)


@pytest.mark.parametrize(
    ("forget", "named"),
    [
        (lambda copy: copy.world.generator.manual_seed(1), "generator"),
        (lambda copy: copy.world.waiting.append("x"), "waiting"),
        (lambda copy: setattr(copy.world, "block", 0), "block"),
        (lambda copy: setattr(copy.world, "late", None), "late"),
        (lambda copy: setattr(copy.world, "window", copy.world.window.double()), "window"),
    ],
)
def test_a_session_installed_with_a_wrong_leaf_is_blamed_on_who_installed_it_and_named(
    forget: Callable[[Copy], None], named: str
) -> None:
    async def story(fleet: Fleet) -> None:
        await fleet.play(4)
        fleet.on_reserve = lambda copy: setattr(copy, "after_install", forget)
        outcome = await fleet.move("B")
        assert outcome.outcomes == ("aborted", "aborted")
        end = outcome.of("destination")
        assert end is not None
        assert end.reason == "installed_otherwise"
        assert named in end.detail
        await goes_on(fleet, "A")

    tell(story)


@pytest.mark.parametrize("leaf", ["window", "base"])
def test_an_engine_that_writes_after_its_boundary_is_blamed_and_not_the_path(leaf: str) -> None:
    async def story(fleet: Fleet) -> None:
        await fleet.play(3)
        copy = fleet.owner
        before = getattr(copy.world, leaf).clone()

        def write() -> None:
            getattr(copy.world, leaf).add_(1.0)

        fleet.on_post = lambda message: write() if isinstance(message, Landed) else None
        outcome = await fleet.move("B")
        assert outcome.outcomes == ("aborted", "aborted")
        end = outcome.of("source")
        assert end is not None
        assert end.reason == "engine_wrote"
        assert leaf in end.detail
        getattr(copy.world, leaf).copy_(before)  # as if it had not, so that the world may be compared
        fleet.on_post = lambda message: None
        await goes_on(fleet, "A")

    tell(story)


def test_nothing_can_write_through_what_a_path_was_lent_once_the_window_is_closed() -> None:
    lent: list[memoryview] = []

    class Keeping(Loopback):
        async def connect(self, ticket: bytes) -> Any:
            channel = await super().connect(ticket)
            pull = channel.pull

            async def keeping(wanted: list[Extent], into: memoryview) -> None:
                lent.append(into)
                await pull(wanted, into)

            channel.pull = keeping  # type: ignore[method-assign, assignment]
            return channel

    async def story(fleet: Fleet) -> None:
        fleet.transports["loopback"] = Keeping(blocking=inline, tokens=iter([b"t" * 32, b"u" * 32]).__next__)
        await fleet.play(2)
        assert (await fleet.move("B")).outcomes == ("committed", "committed")
        (window,) = lent
        with pytest.raises(ValueError, match="released"):
            window[0] = 1
        await goes_on(fleet, "B")

    tell(story)


def test_a_path_that_holds_on_to_its_window_aborts_the_move() -> None:
    held: list[Any] = []

    class Holding(Loopback):
        async def connect(self, ticket: bytes) -> Any:
            channel = await super().connect(ticket)
            pull = channel.pull

            async def holding(wanted: list[Extent], into: memoryview) -> None:
                held.append(pickle.PickleBuffer(into))
                await pull(wanted, into)

            channel.pull = holding  # type: ignore[method-assign, assignment]
            return channel

    async def story(fleet: Fleet) -> None:
        fleet.transports["loopback"] = Holding(blocking=inline, tokens=iter([b"t" * 32, b"u" * 32]).__next__)
        await fleet.play(2)
        outcome = await fleet.move("B")
        assert outcome.outcomes == ("aborted", "aborted")
        end = outcome.of("destination")
        assert end is not None
        assert "still holds the memory" in end.detail
        await goes_on(fleet, "A")

    tell(story)


# after


def test_the_source_is_killed_and_unmapped_right_after_shown_and_the_world_goes_on() -> None:
    async def story(fleet: Fleet) -> None:
        await fleet.play(4)
        await fleet.move("B")
        assert not fleet.row.shown
        await fleet.play(1)
        assert fleet.row.shown
        fleet.kill("A")
        await goes_on(fleet, "B", 10)

    tell(story)


def test_the_retired_copy_steps_the_next_block_from_the_log_alone_and_agrees() -> None:
    async def story(fleet: Fleet) -> None:
        await fleet.play(4)
        await fleet.move("B")
        await fleet.play(3)
        await fleet.settled()
        assert fleet.checked == [(4, True)]
        assert fleet.workers["A"].copies == []

    tell(story)


def test_a_slot_is_not_free_before_a_block_past_the_boundary_has_left() -> None:
    async def story(fleet: Fleet) -> None:
        await fleet.play(4)
        await fleet.move("B")
        await fleet.wait(30.0)
        assert [copy.worker.name for copy in fleet.copies(Plays.FROZEN)] == ["A"]
        await fleet.play(1)
        await fleet.settled()
        assert fleet.workers["A"].copies == []

    tell(story)


def test_ended_tells_when_each_end_began_on_one_axis() -> None:
    async def story(fleet: Fleet) -> None:
        await fleet.play(4)
        outcome = await fleet.move("B")
        ends: list[Ended | None] = [outcome.of("source"), outcome.of("destination")]
        source, destination = ends
        assert source is not None
        assert destination is not None
        assert destination.clock < source.clock  # the shadow was there before the freeze
        promoted = max(end for name, _, end in destination.phases if name == "promote")
        frozen = next(end for name, _, end in source.phases if name == "freeze")
        assert destination.clock + promoted > source.clock + frozen

    tell(story)


def test_an_arena_of_a_slot_is_poisoned_before_it_is_used() -> None:
    seen: list[bytes] = []

    async def story(fleet: Fleet) -> None:
        poison = Arena(64 << 10, "poisoned")
        poison.poison()
        fleet.on_reserve = lambda copy: setattr(
            copy, "before_install", lambda c, m, p: seen.append(bytes(c.arena.buffer[-64:]))
        )
        await fleet.play(1)
        await fleet.move("B")
        assert seen == [bytes(poison.buffer[-64:])]

    tell(story)
