"""When a session is frozen beside others that play: nobody computes in its pause, at either end, and nobody is late.

Two workers in virtual time, whose blocks take a third of a period, as those of a large engine on one GPU do.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

import pytest

from tests.move import virtual
from tests.worker.bench_worker import Bench
from tests.worker.test_move_between_workers import Pair
from worldmove.move.ledger_row import Facts
from worldmove.move.messages import Ended, Landed, Ready
from worldmove.transport.base import Blocking
from worldmove.worker.messages import Acknowledge, BlockDone, Open
from worldmove.worker.stepping import step

T = TypeVar("T")
PERIOD_S = 0.05
BLOCK_S = 0.32 * PERIOD_S
"""Of a world whose blocks take a third of a period; three of them at one worker leave no time for anything."""
PICTURES_S = 0.07 * PERIOD_S
WORK_S = 0.002 * PERIOD_S
NUM_BLOCKS = 15


Residents = dict[str, tuple[str, float]]
"""Where each plays, and when in a period its lists come."""


@dataclass(slots=True)
class Worlds:
    """Lists as a gateway closes them, and blocks as they come to it, with whatever the engines' threads do."""

    pair: Pair | None = None
    owners: dict[str, str] = field(default_factory=dict)
    closed: dict[tuple[str, int], float] = field(default_factory=dict)
    never_leave: tuple[str, ...] = ()
    """Whose pictures nobody takes."""
    shown: list[tuple[str, int]] = field(default_factory=list)
    late: list[tuple[str, int, float]] = field(default_factory=list)
    block_s: float = BLOCK_S
    slower: dict[str, float] = field(default_factory=dict)
    """Where a block takes so many times as long."""
    work_s: float = WORK_S
    """What each piece of a pause's work takes."""
    loses: Callable[[Any], bool] = lambda message: False
    """Which words between the workers are lost."""
    steps: list[tuple[str, float, float]] = field(default_factory=list)
    """Of each: its worker, when it began and ended."""

    def engine_thread(self, name: str) -> Blocking:
        async def run(function: Callable[[], T]) -> T:
            begin = asyncio.get_running_loop().time()
            is_step = isinstance(function, partial) and function.func is step
            await asyncio.sleep(self.block_s * self.slower.get(name, 1.0) if is_step else self.work_s)
            if is_step:
                self.steps.append((name, begin, asyncio.get_running_loop().time()))
            return function()

        return run

    def beside(self, begin: float, end: float) -> list[tuple[str, float, float]]:
        """Return the steps of which a part was in this time."""
        return [step for step in self.steps if step[1] < end - 1e-9 and step[2] > begin + 1e-9]

    async def play(self, session: str, phase: float) -> None:
        """Close a list each period."""
        await asyncio.sleep(phase * PERIOD_S)
        for block in range(NUM_BLOCKS):
            self.closed[session, block] = asyncio.get_running_loop().time()
            for each in self.benches:
                each.inputs(block, session=session)
            await asyncio.sleep(PERIOD_S)

    @property
    def benches(self) -> list[Bench]:
        assert self.pair is not None
        return list(self.pair.benches.values())

    def came(self, message: BlockDone) -> None:
        """A block has come: note how late, and acknowledge it once its pictures have left."""
        now = asyncio.get_running_loop().time()
        self.shown.append((message.session, message.block))
        late_s = now - self.closed[message.session, message.block] - PERIOD_S
        if late_s > 0:
            self.late.append((message.session, message.block, late_s))
        if message.session in self.never_leave:
            return
        done = Acknowledge(session=message.session, epoch=message.epoch, block=message.block, server_life=1)
        for each in self.benches:
            asyncio.get_running_loop().call_later(PICTURES_S, each.worker.take, done)


async def moved_beside(worlds: Worlds, residents: Residents) -> tuple[float, float]:
    """Move ``s-1`` from a to b while residents play; return when its pause began and ended; zeros if it has not."""
    pair = worlds.pair = Pair(
        engine_threads=worlds.engine_thread, heard_of=worlds.came, loses=worlds.loses, num_slots=5
    )
    pair.facts = Facts(owner="a", incarnation=1, epoch=1, owner_gone=False, next_block=0)
    await pair.open_on_a(0)
    for session, (at, _) in residents.items():
        pair.benches[at].worker.take(Open(session=session, epoch=1, seed=7))
    await asyncio.sleep(0.2 * PERIOD_S)
    playing = [asyncio.create_task(worlds.play(session, phase)) for session, (_, phase) in residents.items()]
    playing.append(asyncio.create_task(worlds.play("s-1", 0.0)))
    await asyncio.sleep(6.3 * PERIOD_S)
    await pair.start_move()
    await asyncio.gather(*playing)
    await pair.close()
    ends = {end.side: end for end in pair.heard if isinstance(end, Ended)}
    if not ends:
        return 0.0, 0.0
    assert {end.outcome for end in ends.values()} == {"committed"}
    begin = ends["source"].clock + next(start for name, start, _ in ends["source"].phases if name == "freeze")
    end = ends["destination"].clock + next(end for name, _, end in ends["destination"].phases if name == "promote")
    return begin, end


PHASES = [(here / 5, there / 5) for here in range(5) for there in range(5)]


@pytest.mark.parametrize(
    ("block_s", "more"),
    [(BLOCK_S, {}), (0.75 * BLOCK_S, {"r-3": 0.0}), (0.75 * BLOCK_S, {"r-3": 0.5})],
    ids=["one each", "two there", "two apart there"],
)
def test_wherever_others_are_in_their_periods_none_computes_in_a_pause_and_none_is_late(
    block_s: float, more: dict[str, float]
) -> None:
    for here, there in PHASES:
        worlds = Worlds(block_s=block_s)
        residents = {"r-1": ("a", here), "r-2": ("b", there)}
        residents |= {name: ("b", (there + apart) % 1) for name, apart in more.items()}
        begin, end = virtual.run(moved_beside(worlds, residents))
        assert (worlds.beside(begin, end), worlds.late) == ([], []), (here, there)
        assert end - begin < 0.01 * PERIOD_S, (here, there)  # and no pictures were waited for in it


@pytest.mark.parametrize("phase", [0.42 + 0.02 * number for number in range(8)])
def test_a_list_that_comes_in_a_pause_is_stepped_after_it(phase: float) -> None:
    """At the source the pause begins 0.4 periods after the session's list, and takes a tenth here."""
    worlds = Worlds(work_s=0.025 * PERIOD_S)
    begin, end = virtual.run(moved_beside(worlds, {"r-1": ("a", phase), "r-2": ("b", phase)}))
    assert (worlds.beside(begin, end), worlds.late) == ([], [])


def test_what_waits_at_a_destination_goes_on_once_the_session_is_played_instead() -> None:
    """Whenever the one end is quiet the other is not: but for a third resident, whose block is held back for that."""
    worlds = Worlds()
    residents = {"r-1": ("a", 0.0), "r-2": ("b", 2 / 3), "r-3": ("b", 2 / 3)}
    begin, end = virtual.run(moved_beside(worlds, residents))
    assert (worlds.beside(begin, end), worlds.late) == ([], [])


def test_a_destination_that_never_says_that_it_is_quiet_is_moved_to_all_the_same() -> None:
    def lost(message: Any) -> bool:
        return isinstance(message, Ready) and message.to == "a"

    worlds = Worlds(loses=lost)
    begin, end = virtual.run(moved_beside(worlds, {"r-2": ("b", 0.5)}))
    assert worlds.late == []
    assert end - begin < BLOCK_S + 0.01 * PERIOD_S


def test_beside_a_world_whose_pictures_nobody_takes_a_session_is_moved_all_the_same() -> None:
    worlds = Worlds(never_leave=("r-1", "r-2"))
    begin, end = virtual.run(moved_beside(worlds, {"r-1": ("a", 0.5), "r-2": ("b", 0.9)}))
    assert 0 < end - begin < 0.01 * PERIOD_S
    assert worlds.late == []


def test_what_a_move_has_held_back_goes_on_where_its_pause_is_long() -> None:
    """The source has frozen, and its destination says nothing more."""
    worlds = Worlds(loses=lambda message: isinstance(message, Landed))
    assert virtual.run(moved_beside(worlds, {"r-1": ("a", 0.5), "r-2": ("b", 0.5)})) == (0.0, 0.0)  # not over yet
    assert worlds.late == []
    assert [block for session, block in worlds.shown if session == "s-1"][-1] < NUM_BLOCKS - 4
    assert {session for session, block in worlds.shown if block == NUM_BLOCKS - 1} == {"r-1", "r-2"}
