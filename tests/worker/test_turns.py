"""Whose turn it is at the engine."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

from tests.move import virtual
from worldmove.worker.turns import OVERDUE_S, Turn, Turns

T = TypeVar("T")


async def inline(function: Callable[[], T]) -> T:  # a Blocking that does not block
    return function()


async def take(turns: Turns, turn: Turn, name: str, order: list[str], started: asyncio.Event | None = None) -> None:
    async with turns.take(turn) as engine:
        if started is not None:
            started.set()
            await asyncio.sleep(0.01)
        await engine(lambda: order.append(name))


def test_the_most_urgent_goes_first_and_equals_in_order_of_asking() -> None:
    async def play() -> list[str]:
        turns, started = Turns(inline), asyncio.Event()
        order: list[str] = []
        first = asyncio.create_task(take(turns, Turn.SPARE, "in hand", order, started))
        await started.wait()
        asked = [(Turn.SPARE, "check"), (Turn.OWNER, "a"), (Turn.OWNER, "b"), (Turn.BOUNDARY, "freeze")]
        others = [asyncio.create_task(take(turns, turn, name, order)) for turn, name in asked]
        await asyncio.gather(first, *others)
        return order

    assert virtual.run(play()) == ["in hand", "freeze", "a", "b", "check"]


def test_a_turn_of_somebody_who_was_cancelled_goes_to_the_next() -> None:
    async def play() -> list[str]:
        turns, started = Turns(inline), asyncio.Event()
        order: list[str] = []
        first = asyncio.create_task(take(turns, Turn.OWNER, "in hand", order, started))
        await started.wait()
        gone = asyncio.create_task(take(turns, Turn.BOUNDARY, "cancelled", order))
        last = asyncio.create_task(take(turns, Turn.OWNER, "last", order))
        await asyncio.sleep(0)
        gone.cancel()
        await asyncio.gather(first, last)
        return order

    assert virtual.run(play()) == ["in hand", "last"]


def test_a_turn_given_at_the_moment_of_a_cancel_is_not_lost() -> None:
    async def play() -> list[str]:
        turns = Turns(inline)
        order: list[str] = []
        async with turns.take(Turn.OWNER):
            gone = asyncio.create_task(take(turns, Turn.OWNER, "cancelled", order))
            await asyncio.sleep(0)
        gone.cancel()  # its turn has been given, and it has not run yet
        await asyncio.gather(gone, return_exceptions=True)
        await asyncio.wait_for(take(turns, Turn.SPARE, "next", order), 1)
        return order

    assert virtual.run(play()) == ["next"]


def test_spare_turns_have_a_thread_of_their_own() -> None:
    async def spare(function: Callable[[], T]) -> T:
        return function()

    async def play() -> list[bool]:
        turns, order = Turns(inline, spare_thread=spare), []
        for turn in Turn:
            async with turns.take(turn) as thread:
                order.append(thread is spare)
        return order

    assert virtual.run(play()) == [turn is Turn.SPARE for turn in Turn]


def test_while_somebody_holds_only_a_pause_has_a_turn_and_then_the_others_go_in_their_order() -> None:
    async def play() -> list[str]:
        turns, went = Turns(virtual.inline), []

        async def go(turn: Turn, name: str) -> None:
            async with turns.take(turn):
                went.append(name)
                await asyncio.sleep(0.01)

        first, second = turns.hold(), turns.hold(lambda: went.append("let go"))
        asked = [(Turn.SPARE, "check"), (Turn.OWNER, "a"), (Turn.BOUNDARY, "freeze")]
        tasks = [asyncio.create_task(go(turn, name)) for turn, name in asked]
        await asyncio.sleep(0.1)
        first.end()
        first.end()
        went.append("one holds")
        tasks.append(asyncio.create_task(go(Turn.BOUNDARY, "install")))
        await asyncio.sleep(0.1)
        second.lapse_in(0.5)
        second.lapse_in(0.2)
        await asyncio.sleep(0.1)
        went.append("not yet")
        await asyncio.gather(*tasks)
        return went

    assert virtual.run(play()) == ["freeze", "one holds", "install", "not yet", "let go", "a", "check"]


def test_who_was_cancelled_while_somebody_held_keeps_nobody_from_a_turn() -> None:
    async def play() -> bool:
        turns = Turns(virtual.inline)
        hold = turns.hold()

        async def go(turn: Turn) -> None:
            async with turns.take(turn):
                pass

        cancelled, waits = asyncio.create_task(go(Turn.OWNER)), asyncio.create_task(go(Turn.SPARE))
        await asyncio.sleep(0)
        cancelled.cancel()
        await asyncio.sleep(0)
        await go(Turn.BOUNDARY)
        hold.end()
        await waits
        return True

    assert virtual.run(play())


def test_an_engine_is_free_since_a_call_or_a_hold_has_ended() -> None:
    async def play() -> list[float]:
        turns, found = Turns(inline), list[float]()
        async with turns.take(Turn.OWNER):
            await asyncio.sleep(0.5)
        found.append(turns.free_since)
        hold = turns.hold()
        await asyncio.sleep(0.25)
        hold.end()
        return [*found, turns.free_since]

    assert virtual.run(play()) == [0.5, 0.75]


def test_at_an_engine_that_is_never_free_an_opening_waits_for_a_while_and_not_for_ever() -> None:
    async def play() -> tuple[float, int]:
        turns, over = Turns(inline), asyncio.Event()
        blocks = 0

        async def steps() -> None:
            nonlocal blocks
            while not over.is_set():
                async with turns.take(Turn.OWNER):
                    await asyncio.sleep(0.158)
                    blocks += 1

        async with asyncio.TaskGroup() as everybody:
            for _ in range(3):
                everybody.create_task(steps())
            await asyncio.sleep(0.01)
            async with turns.take(Turn.OPEN):
                waited, seen = asyncio.get_running_loop().time(), blocks
            over.set()
        return waited, seen

    waited, blocks = virtual.run(play())
    assert OVERDUE_S < waited < OVERDUE_S + 0.2
    assert blocks == 10


def test_what_is_overdue_is_asked_for_once_though_it_was_given_before() -> None:
    async def play() -> list[str]:
        turns, order = Turns(inline), list[str]()
        async with turns.take(Turn.OWNER):
            opening = asyncio.create_task(take(turns, Turn.OPEN, "open", order))
            await asyncio.sleep(2 * OVERDUE_S)
        await opening
        await asyncio.gather(*(take(turns, turn, turn.name, order) for turn in (Turn.SPARE, Turn.OWNER)))
        return order

    assert virtual.run(play()) == ["open", "SPARE", "OWNER"]


def test_an_engine_says_for_how_long_it_has_been_at_one_thing() -> None:
    async def run() -> None:
        turns = Turns(inline)
        assert turns.taken_s == 0
        async with turns.take(Turn.OWNER):
            next_one = asyncio.create_task(take(turns, Turn.OPEN, "next", []))
            await asyncio.sleep(2.0)
            assert turns.taken_s == 2.0
        await next_one
        assert turns.taken_s == 0

    virtual.run(run())


def test_whether_the_engine_is_at_a_block_is_known_by_whose_turn_it_is() -> None:
    async def play() -> list[bool]:
        turns, found = Turns(inline), list[bool]()
        for turn in (Turn.OWNER, Turn.OPEN, Turn.SPARE, Turn.BOUNDARY):
            async with turns.take(turn):
                found.append(turns.is_at_block)
            found.append(turns.is_at_block)
        return found

    assert virtual.run(play()) == [True, False, False, False, True, False, False, False]
