"""Whose turn it is at the engine."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

from tests.move import virtual
from worldmove.worker.turns import Turn, Turns

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
