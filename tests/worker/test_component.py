"""A component that is stepped at the destination, between two workers with a real streaming decoder."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import replace
from threading import current_thread, main_thread
from types import SimpleNamespace
from typing import Any, TypeVar

import pytest

from tests.worker.test_move_between_workers import HEAD, Pair
from worldmove.engine.matrix import MatrixEngine
from worldmove.engine.matrix.presets import tiny
from worldmove.errors import MoveRefused
from worldmove.move.following import Following
from worldmove.move.ledger_row import Facts
from worldmove.move.messages import Ended, Handed, Ready
from worldmove.state.arena import AnyArena, Arena, new_arena
from worldmove.worker import component
from worldmove.worker.shadow import Shadow
from worldmove.worker.source_copy import SourceOfMove
from worldmove.worker.threads import OneThread

T = TypeVar("T")

ARENA_BYTES = 1 << 20
PERIOD_S = 0.1


class Decoding(MatrixEngine):
    """The smallest one with a decoder. Counts what is stepped alone."""

    def __init__(self) -> None:
        preset = tiny()
        config = replace(preset.config, frames_per_s=preset.config.video_frames / PERIOD_S)
        super().__init__(replace(preset, config=config))
        self.num_followed = 0

    def follow(self, part: dict[str, Any], handed: bytes) -> None:
        super().follow(part, handed)
        self.num_followed += 1


class Lying(Decoding):
    """What it computes alone is not what a step computes."""

    def follow(self, part: dict[str, Any], handed: bytes) -> None:
        super().follow(part, handed)
        part["decoder"][0].add_(1)


class Failing(Decoding):
    def follow(self, part: dict[str, Any], handed: bytes) -> None:
        raise SystemExit("the decoder is out of order")


def decoder_bytes(engine: Decoding) -> int:
    return sum(feature.nbytes for feature in engine.open(0).features)


def streamed(
    trial: Callable[[Pair, Decoding], Coroutine[Any, Any, None]], engine: Callable[[], Decoding] = Decoding
) -> None:
    """Run a trial on a session that has played three blocks at ``a``, and is streamed to ``b``."""
    there = engine()

    async def run() -> None:
        pair = Pair(engines=(Decoding(), there), arena_bytes=ARENA_BYTES)
        pair.strategy = "streaming"
        pair.facts = Facts(owner="a", incarnation=1, epoch=1, owner_gone=False, next_block=3)
        try:
            await pair.open_on_a(3)
            await pair.open_attempt()
            pair.begin()
            await pair.hears(Ready)
            await trial(pair, there)
        finally:
            await pair.close()
        assert pair.benches["a"].failures == pair.benches["b"].failures == []

    asyncio.run(run())


async def moved_after(pair: Pair, *blocks: int) -> Ended:
    """Play some blocks, move, and return the destination's last word."""
    for block in blocks:
        pair.benches["a"].inputs(block)
        while block not in pair.benches["a"].blocks():  # noqa: ASYNC110
            await asyncio.sleep(0.005)
        pair.acknowledge("a", block)
        await asyncio.sleep(PERIOD_S)
    if blocks:
        pair.facts = Facts(owner="a", incarnation=1, epoch=1, owner_gone=False, next_block=blocks[-1] + 1)
    pair.start()
    for _ in range(1000):
        found = [end for end in pair.heard if isinstance(end, Ended) and end.side == "destination"]
        if found:
            return found[-1]
        await asyncio.sleep(0.005)
    raise AssertionError("it did not end")


def test_the_decoders_cache_is_computed_at_the_destination_and_not_pulled() -> None:
    async def trial(pair: Pair, there: Decoding) -> None:
        end = await moved_after(pair, 3, 4)
        assert (end.outcome, end.detail) == ("committed", "")
        assert there.num_followed == 2
        assert end.followed_bytes == decoder_bytes(there)
        assert pair.benches["a"].copies().slots_free == 1

    streamed(trial)


def test_what_a_lying_engine_computes_is_pulled() -> None:
    async def trial(pair: Pair, there: Decoding) -> None:
        end = await moved_after(pair, 3, 4)
        assert end.outcome == "committed"
        assert 0 < end.followed_bytes < decoder_bytes(there)

    streamed(trial, Lying)


def test_an_engine_that_ends_its_process_in_a_step_ends_nothing() -> None:
    async def trial(pair: Pair, there: Decoding) -> None:
        end = await moved_after(pair, 3)
        assert (end.outcome, end.followed_bytes) == ("committed", 0)

    streamed(trial, Failing)


def test_room_is_made_beside_the_loop_and_given_back_where_the_move_ends_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[AnyArena] = []

    def noted(*of: Any) -> AnyArena:
        assert current_thread() is not main_thread()  # a device may make it wait for all that is asked of it
        made.append(new_arena(*of))
        return made[-1]

    async def run(thread: OneThread) -> None:
        async def cancelled(function: Callable[[], T], /) -> T:
            before = len(made)
            found = await thread(function)
            if len(made) > before:
                raise asyncio.CancelledError
            return found

        monkeypatch.setattr(component, "new_arena", noted)
        pair = Pair(engines=(Decoding(), Decoding()), arena_bytes=ARENA_BYTES)
        copy: Any = SimpleNamespace(slot=SimpleNamespace(arena=Arena(ARENA_BYTES, "slot")))
        layout: Any = None
        tools = replace(pair.benches["b"].worker.tools, copying=cancelled)
        with pytest.raises(asyncio.CancelledError):
            await Shadow(copy, tools, layout, is_followed=True).beside(4096)
        await pair.close()
        (arena,) = made
        assert isinstance(arena, Arena)
        assert arena.fd == -1  # it is closed

    thread = OneThread("copy")
    asyncio.run(run(thread))
    thread.close()


# what is handed on is kept for nobody


def test_once_it_is_frozen_a_session_hands_nothing_on_any_more_also_in_its_check_blocks() -> None:
    async def trial(pair: Pair, there: Decoding) -> None:
        end = await moved_after(pair, 3)
        assert end.followed_bytes > 0
        source = pair.benches["a"].worker.copies.get("s-1")
        assert source is not None
        for name in ("a", "b"):
            pair.benches[name].inputs(4, 5)
        pair.facts = Facts(owner="b", incarnation=1, epoch=2, owner_gone=False, next_block=6)
        pair.acknowledge("b", 5)
        pair.acknowledge("a", 5)
        for _ in range(1000):
            if pair.benches["a"].checks():
                break
            await asyncio.sleep(0.005)
        assert pair.benches["a"].checks()[0] == 4
        assert (source.early.handing(6), source.early.final) == (None, None)

    streamed(trial)


def test_where_no_copy_can_be_laid_aside_nothing_is_handed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    async def none(self: SourceOfMove) -> Any:
        raise MoveRefused("no_slot", "every slot is taken")

    async def trial(pair: Pair, there: Decoding) -> None:
        source = pair.benches["a"].worker.copies.get("s-1")
        assert source is not None
        assert source.early.handing(3) is None
        assert source.early.final is not None
        assert (await moved_after(pair, 3, 4)).outcome == "committed"

    monkeypatch.setattr(SourceOfMove, "component", none)
    streamed(trial)


def test_what_was_handed_on_is_let_go_of_as_it_is_stepped_and_all_of_it_at_the_boundary(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    most = [0]
    kept: list[Following] = []
    took, halts = Following.take, Following.halt

    def noted(self: Following, message: Any) -> None:
        took(self, message)
        most[0] = max(most[0], len(self._waiting))

    def halted(self: Following) -> None:
        halts(self)
        kept.append(self)

    async def trial(pair: Pair, there: Decoding) -> None:
        head = HEAD | {"sender": "a", "incarnation": 1}
        ahead = Handed(to="b", block=8, data=b"of a block that never comes", **head)  # type: ignore[arg-type]
        start = pair.start

        def started() -> None:
            pair.benches["b"].worker.take(ahead)
            start()

        monkeypatch.setattr(pair, "start", started)
        end = await moved_after(pair, 3, 4, 5, 6)
        assert (end.outcome, end.followed_bytes > 0) == ("committed", True)
        assert most[0] <= 3
        assert kept[0]._waiting == {}

    monkeypatch.setattr(Following, "take", noted)
    monkeypatch.setattr(Following, "halt", halted)
    streamed(trial)
