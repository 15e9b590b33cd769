"""The simulator's own loop: virtual time, nodes that are paused or without power, and doors that are shut."""

import asyncio
import datetime
import random
import socket
import threading
import time
import uuid
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

import pytest

from tests.simulation.batch import run_part
from tests.simulation.loop import EscapeError, SimLoop, StalledError
from tests.simulation.sealed import sealed
from tests.simulation.trace import Trace

NOW = datetime.datetime


def _in(loop: SimLoop, work: Coroutine[Any, Any, Any]) -> Any:
    try:
        return loop.run_until_complete(work)
    finally:
        loop.bury()


def test_an_hour_takes_no_time() -> None:
    loop = SimLoop(1)
    begun = time.monotonic()
    _in(loop, asyncio.sleep(3600))
    assert time.monotonic() - begun < 1
    assert loop.time() == pytest.approx(3600)


def test_a_node_without_power_runs_nothing_not_even_finally() -> None:
    loop, done = SimLoop(1), []  # type: tuple[SimLoop, list[str]]

    async def work() -> None:
        try:
            await asyncio.sleep(1)
            done.append("slept")
        finally:
            done.append("finally")

    async def main() -> None:
        loop.run_in(loop.context("a"), work())
        await asyncio.sleep(0.5)
        loop.power_off("a")
        await asyncio.sleep(2)
        assert done == []

    _in(loop, main())


def test_a_paused_node_does_everything_when_it_is_resumed() -> None:
    loop, done = SimLoop(1), []  # type: tuple[SimLoop, list[float]]

    async def work() -> None:
        for _ in range(3):
            await asyncio.sleep(0.1)
            done.append(round(loop.time(), 3))

    async def main() -> None:
        loop.run_in(loop.context("a"), work())
        await asyncio.sleep(0.15)
        loop.pause("a")
        await asyncio.sleep(1)
        assert done == [0.1]
        loop.resume("a")
        await asyncio.sleep(1)
        assert done == [0.1, 1.15, 1.25]

    _in(loop, main())


def test_nothing_to_wait_for_is_a_stall() -> None:
    loop = SimLoop(1)
    with pytest.raises(StalledError):
        _in(loop, asyncio.Event().wait())


def test_a_cancel_that_is_lost_is_repeated_when_a_run_is_buried() -> None:
    loop, lost = SimLoop(1), []  # type: tuple[SimLoop, list[str]]

    async def loses_the_first() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            lost.append("one")
        await asyncio.Event().wait()

    async def main() -> None:
        loop.run_in(loop.context("a"), loses_the_first())
        await asyncio.sleep(0.1)

    _in(loop, main())
    assert lost == ["one"]
    assert loop.is_closed()


def test_a_task_that_never_ends_is_a_stall_and_the_loop_is_closed_all_the_same() -> None:
    loop, ends = SimLoop(1), []  # type: tuple[SimLoop, list[bool]]

    async def loses_all() -> None:
        while not ends:
            with suppress(asyncio.CancelledError):
                await asyncio.Event().wait()

    async def main() -> None:
        loop.run_in(loop.context("a"), loses_all(), "endless")
        await asyncio.sleep(0.1)

    loop.run_until_complete(main())
    (task,) = asyncio.all_tasks(loop)
    with pytest.raises(StalledError):
        loop.bury()
    assert loop.is_closed()
    ends.append(True)
    with suppress(StopIteration):
        task.get_coro().throw(asyncio.CancelledError())


def test_a_run_of_which_something_does_not_end_is_a_broken_seed_and_stops_no_batch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bury = SimLoop.bury

    def stalls(self: SimLoop) -> None:
        bury(self)
        raise StalledError("nothing goes on")

    monkeypatch.setattr(SimLoop, "bury", stalls)
    batch = run_part(0, 2)
    assert [(found["seed"], found["broken"]) for found in batch.broken] == [
        (seed, "what is left after the end of the run does not end: nothing goes on") for seed in (0, 1)
    ]
    assert [text.splitlines()[0] for text in batch.reports] == [
        f"seed {seed}: what is left after the end of the run does not end: nothing goes on" for seed in (0, 1)
    ]


def test_the_order_of_tasks_is_drawn_and_of_callbacks_kept() -> None:
    orders = set()
    for seed in range(20):
        order: list[int] = []

        async def note(number: int, into: list[int]) -> None:
            into.append(number)

        async def main(into: list[int] = order) -> None:
            await asyncio.gather(*(note(number, into) for number in range(4)))

        _in(SimLoop(seed), main())
        orders.add(tuple(order))
    assert len(orders) > 5


@pytest.mark.parametrize(
    ("owner", "name"),
    [
        (time, "time"),
        (time, "monotonic"),
        (random, "random"),
        (uuid, "uuid4"),
        (socket, "socket"),
        (datetime.datetime, "now"),
        (threading.Thread(target=print), "start"),
    ],
    ids=["time", "monotonic", "random", "uuid4", "socket", "datetime", "thread"],
)
def test_a_reach_for_the_world_outside_raises(owner: Any, name: str) -> None:
    with sealed():
        there = datetime.datetime if owner is NOW else owner
        with pytest.raises(EscapeError):
            getattr(there, name)()


def test_a_broken_seal_leaves_all_as_it_was() -> None:
    before = (time.time, random.random, datetime.datetime)
    with pytest.raises(KeyError), sealed():
        raise KeyError
    assert (time.time, random.random, datetime.datetime) == before


def test_an_executor_is_a_door_that_is_shut() -> None:
    async def main() -> None:
        await asyncio.to_thread(print)

    with pytest.raises(EscapeError):
        _in(SimLoop(1), main())


def _races(seed: int, *, fifo: bool) -> bool:
    """Check, await, act: say whether the last place is given twice. In turn, the second comes when all is done."""
    places, given = [1], []  # type: tuple[list[int], list[str]]

    async def ask(name: str, turns_before: int) -> None:
        for _ in range(turns_before):
            await asyncio.sleep(0)
        if places[0]:
            await asyncio.sleep(0)
            places[0] -= 1
            given.append(name)

    async def main() -> None:
        await asyncio.gather(ask("first", 0), ask("second", 2))

    _in(SimLoop(seed, fifo=fifo), main())
    return len(given) > 1


def test_a_race_of_order_alone_shows_where_order_is_drawn_and_nowhere_else() -> None:
    assert not any(_races(seed, fifo=True) for seed in range(50))
    assert any(_races(seed, fifo=False) for seed in range(50))


def test_what_the_dead_do_when_they_are_buried_is_no_part_of_the_run() -> None:
    loop, trace = SimLoop(0), Trace(lambda: 0.0)
    asleep = loop.run_in(loop.context("node"), asyncio.sleep(9.0))
    loop.call_later(1.0, trace.fail, "stepped after its death", context=loop.context("node"))
    loop.power_off("node")
    loop.run_until_complete(asyncio.sleep(2.0))
    with trace.closed():
        loop.bury()
    assert asleep.done()
    assert (trace.broken, trace.lines) == ("", [])
