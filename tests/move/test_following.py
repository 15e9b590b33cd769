"""Streaming with a followed component: what is computed is not pulled, and what is computed wrongly is."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any

import msgspec
import pytest
import torch

from tests.move.decoded import (
    DECODER,
    DECODER_BYTES,
    FEATURE_BYTES,
    HANDED_BYTES,
    WORLD,
    Part,
    follow,
    no_memory,
    reference,
    with_parts,
)
from tests.move.faulty_post import every, first
from tests.move.harness import SEED, Fleet, World, inputs_of
from tests.move.rolling import FIRST_BLOCKS, ROW_BYTES
from tests.move.test_rounds import is_well_again, last, moved, play_a_block_at, slow, tampering
from tests.move.virtual import run
from worldmove.errors import StateRefused
from worldmove.move import following
from worldmove.move.messages import AnyMoveMessage, Boundary, Component, Fetched, Handed, Ready, Start

Story = Callable[[Fleet, list[Part]], Coroutine[Any, Any, None]]


def tell(story: Story, transports: dict[str, Any] | None = None, *, world: World = WORLD, **made: Any) -> Fleet:
    async def main() -> Fleet:
        fleet = Fleet(world=world, transports=transports)
        parts = with_parts(fleet, **made)
        fleet.source_config = replace(fleet.source_config, row_bytes=ROW_BYTES)
        await fleet.play(FIRST_BLOCKS)
        await moved(fleet, "B")  # from here on its memory lies in a slot
        await fleet.play(2)
        await fleet.settled()
        fleet.strategy, fleet.waits_for_ready_s = "streaming", 1.0
        await story(fleet, parts)
        shown = fleet.gateway.shown
        assert shown == reference(SEED, [inputs_of(block) for block in range(len(shown))]), "the world is another one"
        for worker in fleet.workers.values():
            assert worker.dead or worker.asides == []
        return fleet

    return run(main())


def why_not(fleet: Fleet) -> list[str]:
    return [str(line["why"]) for line in fleet.logged if line["event"] == "not_followed"]


def test_what_a_decoder_remembers_is_computed_and_not_pulled() -> None:
    async def story(fleet: Fleet, parts: list[Part]) -> None:
        await fleet.play(1)
        await fleet.settled()
        play_a_block_at(Ready, fleet)
        end = last(await moved(fleet, "A"))
        assert end.followed_bytes == DECODER_BYTES
        assert end.in_place_bytes + end.moved_bytes >= DECODER_BYTES
        assert end.in_place_bytes + end.moved_bytes + end.pulled_bytes == end.num_bytes
        assert [part.is_freed for part in parts] == [True]
        assert why_not(fleet) == []

    tell(story)


async def moved_once(fleet: Fleet, to: str = "A") -> Any:
    """Move it, with a block played after the destination was ready; return the destination's last word."""
    play_a_block_at(Ready, fleet)
    return last(await moved(fleet, to))


def is_pulled(end: Any) -> bool:
    """Whether what was to be computed was pulled after all."""
    assert end.in_place_bytes + end.moved_bytes + end.pulled_bytes == end.num_bytes
    return bool(end.followed_bytes == 0)


def test_blocks_that_are_played_meanwhile_are_stepped_by_what_they_hand_on() -> None:
    async def story(fleet: Fleet, parts: list[Part]) -> None:
        end = await moved_once(fleet)
        assert parts[0].num_steps >= 1
        assert not is_pulled(end)

    tell(story)


def test_a_world_that_is_played_all_the_while_is_followed_again_and_again() -> None:
    async def story(fleet: Fleet, parts: list[Part]) -> None:
        playing = fleet.play_on()
        ends = []
        for to in "ABABAB":
            ends.append(last(await moved(fleet, to)))
            await fleet.settled()
        await playing.end()
        assert [end.followed_bytes for end in ends] == [DECODER_BYTES] * 6
        assert all(part.is_freed for part in parts)

    tell(story)


def test_a_freeze_that_is_not_announced_is_followed_too_and_the_last_step_is_hurried() -> None:
    async def story(fleet: Fleet, parts: list[Part]) -> None:
        fleet.waits_for_ready_s = 0.0
        assert not is_pulled(await moved_once(fleet))
        assert parts[0].hurried

    tell(story, takes_s=0.001)


def lies(part: dict[str, Any], handed: bytes) -> None:
    follow(part, handed)
    part[DECODER][2][0, 0] += 1


def forgets(part: dict[str, Any], handed: bytes) -> None:
    """Steps nothing."""


def grows(part: dict[str, Any], handed: bytes) -> None:
    part[DECODER] = [torch.zeros(9) for _ in part[DECODER]]


def drops(part: dict[str, Any], handed: bytes) -> None:
    part.clear()


@pytest.mark.parametrize(("step", "least"), [(lies, 4), (forgets, DECODER_BYTES), (grows, DECODER_BYTES), (drops, 1)])
def test_what_an_engine_computes_otherwise_is_found_and_pulled(step: Any, least: int) -> None:
    async def story(fleet: Fleet, parts: list[Part]) -> None:
        end = await moved_once(fleet)
        assert parts[0].num_steps >= 1
        assert end.followed_bytes <= DECODER_BYTES - least

    tell(story, step=step)


def test_an_engine_that_raises_is_not_followed_and_the_move_goes_on() -> None:
    def raises(part: dict[str, Any], handed: bytes) -> None:
        raise StateRefused("", "this decoder is broken")

    async def story(fleet: Fleet, parts: list[Part]) -> None:
        assert is_pulled(await moved_once(fleet))
        assert "this decoder is broken" in why_not(fleet)[0]
        assert parts[0].is_freed

    tell(story, step=raises)


def test_a_destination_whose_residents_leave_no_time_pulls_and_waits_no_longer_than_that_takes() -> None:
    async def story(fleet: Fleet, parts: list[Part]) -> None:
        begun = asyncio.get_running_loop().time()
        assert is_pulled(await moved_once(fleet))
        assert asyncio.get_running_loop().time() - begun < 5
        assert parts[0].num_steps == 0

    tell(story, takes_s=1000.0)


def test_what_waits_to_be_stepped_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "MOST_WAITING_BYTES", 3 * HANDED_BYTES)
    monkeypatch.setattr(following, "LEAST_BYTES", 1)

    async def story(fleet: Fleet, parts: list[Part]) -> None:
        fleet.post_fault = lambda message: (0.5,) if isinstance(message, Start) else (0.0005,)
        playing = fleet.play_on()
        assert is_pulled(last(await moved(fleet, "A")))
        await playing.end()
        assert why_not(fleet) == ["it did not catch up"]

    tell(story, takes_s=0.3)


def test_what_is_handed_on_of_blocks_without_a_byte_is_bounded_too(monkeypatch: pytest.MonkeyPatch) -> None:
    most: list[int] = []
    take = following.Following.take

    def counted(self: following.Following, message: Component | Handed) -> None:
        take(self, message)
        most.append(len(self._waiting))

    async def story(fleet: Fleet, parts: list[Part]) -> None:
        monkeypatch.setattr(following.Following, "take", counted)
        seen: list[str] = []

        def flood(message: AnyMoveMessage) -> None:
            if not isinstance(message, Component) or seen:
                return
            seen.append(message.attempt)
            names = ("to", "sender", "incarnation", "session", "attempt", "epoch")
            head = {name: getattr(message, name) for name in names}
            for block in range(1000, 18_000):
                fleet.workers[message.to].deliver(Handed(block=block, data=b"", **head))

        fleet.on_post = flood
        assert is_pulled(last(await moved(fleet, "A")))
        assert max(most) <= following.MOST_WAITING_BYTES // following.LEAST_BYTES
        assert why_not(fleet) == ["it did not catch up"]

    tell(story)


OF_FOLLOWING = [Component, Handed, Fetched]


@pytest.mark.parametrize("kind", OF_FOLLOWING)
@pytest.mark.parametrize("deliveries", [(), (0.0005, 0.0011, 0.4, 3.0), (0.9,)])
def test_the_first_message_of_a_kind_is_lost_or_comes_often_or_late(kind: type, deliveries: tuple[float, ...]) -> None:
    async def story(fleet: Fleet, parts: list[Part]) -> None:
        fleet.post_fault = first(kind, deliveries)
        playing = fleet.play_on()
        await moved(fleet, "A")
        await playing.end()
        await is_well_again(fleet)

    tell(story)


@pytest.mark.parametrize("kind", OF_FOLLOWING)
def test_every_message_of_a_kind_is_lost_and_the_move_goes_on_without(kind: type) -> None:
    async def story(fleet: Fleet, parts: list[Part]) -> None:
        fleet.patience_s = 3.0
        fleet.post_fault = every(kind, ())
        playing = fleet.play_on()
        if kind is Handed:
            fleet.post_fault = lambda message: {Handed: (), Start: (0.1,)}.get(type(message), (0.0005,))
        end = last(await moved(fleet, "A"))
        assert kind is Fetched or is_pulled(end)
        await playing.end()
        await is_well_again(fleet)

    tell(story)


def test_a_gap_in_what_blocks_hand_on_is_found_and_all_of_it_pulled() -> None:
    async def story(fleet: Fleet, parts: list[Part]) -> None:
        lost: list[int] = []

        def fault(message: AnyMoveMessage) -> tuple[float, ...]:
            if isinstance(message, Handed) and parts and parts[0].part:
                lost[:] = lost or [message.block]
                return () if message.block == lost[0] else (0.0005,)
            return (0.0005,)

        playing = fleet.play_on()
        fleet.post_fault = lambda message: (0.5,) if isinstance(message, Start) else fault(message)
        assert is_pulled(last(await moved(fleet, "A")))
        await playing.end()
        assert why_not(fleet) == [f"what block {lost[0]} has handed on did not come"]

    tell(story)


@pytest.mark.parametrize(
    "lie",
    [
        {"manifest": b"none"},
        {"manifest": b"", "detail": "it was not wanted"},
        {"placement": (1 << 40,)},
        {"placement": (0, 0, 0, 0)},
        {"ticket": b"of nobody"},
        {"groups": bytes(16)},
        {"groups": b""},
        {"manifest_digest": bytes(32)},
        {"block": 1 << 40},
        {"num_bytes": 1},
    ],
)
def test_a_base_that_is_none_is_not_followed_and_the_move_goes_on(lie: dict[str, Any]) -> None:
    async def story(fleet: Fleet, parts: list[Part]) -> None:
        fleet.patience_s = 3.0
        fleet.change = lambda message: (
            msgspec.structs.replace(message, **lie) if isinstance(message, Component) else message
        )
        assert is_pulled(await moved_once(fleet))
        fleet.change = lambda message: message
        await is_well_again(fleet)

    tell(story)


@pytest.mark.parametrize("change", [{"data": b""}, {"data": bytes(HANDED_BYTES)}, {"block": 0}, {"block": 1 << 40}])
def test_what_is_handed_on_wrongly_costs_a_pull(change: dict[str, Any]) -> None:
    async def story(fleet: Fleet, parts: list[Part]) -> None:
        fleet.change = lambda message: (
            msgspec.structs.replace(message, **change) if isinstance(message, Handed) else message
        )
        assert is_pulled(await moved_once(fleet))
        fleet.change = lambda message: message
        await is_well_again(fleet)

    tell(story)


def test_without_a_place_for_the_copy_or_for_the_component_it_is_pulled() -> None:
    async def story(fleet: Fleet, parts: list[Part]) -> None:
        fleet.has_no_room_aside = True
        assert is_pulled(await moved_once(fleet))
        fleet.has_no_room_aside, fleet.beside = False, no_memory
        await fleet.play(2)
        await fleet.settled()
        assert is_pulled(await moved_once(fleet, "B"))
        assert [why.split()[-1] for why in why_not(fleet)] == ["taken", "many"]

    tell(story)


def test_a_base_that_a_path_damages_is_pulled_again_and_then_given_up() -> None:
    paths = tampering()

    async def story(fleet: Fleet, parts: list[Part]) -> None:
        def damage(pull: int, into: memoryview) -> None:
            if len(into) >= FEATURE_BYTES and parts and not parts[0].part and len(into.obj) == parts[0].arena.size:  # type: ignore[arg-type]
                into[0] ^= 1

        paths["loopback"].damage = damage
        await moved(fleet, "A")

    tell(story, transports=paths)


@pytest.mark.parametrize("at", [Component, Fetched, Handed])
@pytest.mark.parametrize("who", ["A", "B"])
def test_an_end_dies(at: type, who: str) -> None:
    async def story(fleet: Fleet, parts: list[Part]) -> None:
        playing = fleet.play_on()
        fleet.post_fault = lambda message: (0.1,) if isinstance(message, Start) else (0.0005,)
        fleet.on_post = lambda message: fleet.kill(who) if isinstance(message, at) and not fleet.suspected else None
        outcome = await fleet.move("A", limit_s=2.0)
        assert fleet.suspected == [who]
        assert "committed" not in outcome.outcomes
        await playing.end()
        if who == "A":
            fleet.restart("A")
            await is_well_again(fleet)

    tell(story)


def test_what_a_component_left_half_laid_is_taken_for_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    laid: list[tuple[int, ...]] = []
    whole = Part.lay

    async def lay(self: Part, manifest: Any, placement: Any) -> tuple[int, ...]:
        laid.append(await whole(self, manifest, placement))
        if len(laid) == 1:
            return laid[0]
        for storage in laid[-1]:
            begin, end = placement[storage], placement[storage] + manifest.storages[storage].num_bytes
            self._copy.arena.buffer[begin:end] = b"\xff" * (end - begin)
        raise StateRefused("", "the copy broke off")

    async def story(fleet: Fleet, parts: list[Part]) -> None:
        monkeypatch.setattr(Part, "lay", lay)

        def on_post(message: AnyMoveMessage) -> None:
            if isinstance(message, Ready) and message.to == "B" and len(laid) == 1:
                fleet.owner.play()

        fleet.on_post = on_post
        assert last(await moved(fleet, "A")).followed_bytes == 0
        assert len(laid) == 2

    tell(story, step=forgets, world=replace(WORLD, followed=(DECODER, "keys")))


# what the pause bears


def raises(part: dict[str, Any], handed: bytes) -> None:
    raise StateRefused("", "this decoder is broken")


HALF = DECODER_BYTES // 2
IN_PLACE_BYTES = FEATURE_BYTES
"""Of what it remembers, so much is written in place, and seen to change in rounds."""


async def tried(fleet: Fleet, most: int) -> Any:
    """Try to move a world of which no more than ``most`` may be left."""
    fleet.affordable_bytes = most
    outcome = await fleet.move("A")
    end = last(outcome)
    assert end.pulled_bytes <= most, end.plain
    return end


def test_a_component_that_cannot_be_followed_is_brought_over_before_the_pause() -> None:
    async def story(fleet: Fleet, parts: list[Part]) -> None:
        fleet.beside = no_memory
        end = await tried(fleet, HALF)
        assert (end.outcome, end.reason) == ("committed", "done")
        assert "many" in why_not(fleet)[0]

    tell(story)


def test_a_component_that_cannot_be_followed_and_changes_faster_than_the_pause_bears_ends_the_move_before_it() -> None:
    async def story(fleet: Fleet, parts: list[Part]) -> None:
        fleet.beside = no_memory
        frozen: list[AnyMoveMessage] = []
        fleet.on_post = lambda message: frozen.append(message) if isinstance(message, Boundary) else None
        playing = fleet.play_on()
        end = await tried(fleet, IN_PLACE_BYTES)
        assert (end.outcome, end.reason, frozen) == ("aborted", "does_not_converge", [])
        await playing.end()

    tell(story, slow())


def test_a_component_that_fails_once_the_move_is_ready_ends_it_where_the_pause_does_not_bear_it() -> None:
    async def story(fleet: Fleet, parts: list[Part]) -> None:
        fleet.waits_for_ready_s = 0.0
        play_a_block_at(Ready, fleet)
        end = await tried(fleet, HALF)
        assert (end.outcome, end.reason) == ("aborted", "does_not_converge")
        assert end.detail.startswith("what was to be computed there was not: ")
        await fleet.settled()
        fleet.affordable_bytes = None
        await is_well_again(fleet)

    tell(story, step=raises)
