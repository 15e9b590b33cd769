"""Where a source meets its follower: the pause begins when the follower stands there too, and nobody is late for it.

Two workers in virtual time, as in ``test_calm``.
"""

import asyncio
from itertools import combinations_with_replacement
from typing import Any

import pytest

from tests.move import virtual
from tests.worker.test_calm import NUM_BLOCKS, PERIOD_S, Residents, Worlds
from tests.worker.test_move_between_workers import Pair
from worldmove.move.ledger_row import Facts
from worldmove.move.messages import Ended, Ready
from worldmove.worker.messages import Open

SHORT_S = 0.02 * PERIOD_S
"""A pause in which nobody waits for a block: ten pieces of work."""


async def replayed_beside(worlds: Worlds, residents: Residents) -> dict[str, tuple[float, float]]:
    """Move ``s-1`` from a to b by a replay while residents play; return its phases, on the loop's axis."""
    pair = worlds.pair = Pair(
        engine_threads=worlds.engine_thread, heard_of=worlds.came, loses=worlds.loses, num_slots=5
    )
    pair.strategy = "replay"
    pair.facts = Facts(owner="a", incarnation=1, epoch=1, owner_gone=False, next_block=0)
    await pair.open_on_a(0)
    playing = []
    for session, (at, phase) in residents.items():
        pair.benches[at].worker.take(Open(session=session, epoch=1, seed=7))
        playing.append(asyncio.create_task(worlds.play(session, phase)))
    playing.append(asyncio.create_task(worlds.play("s-1", 0.0)))
    await asyncio.sleep(1.3 * PERIOD_S)
    await pair.open_attempt()
    pair.begin()
    await pair.hears(Ready)
    pair.start()
    await asyncio.gather(*playing)
    await pair.close()
    ends = {end.side: end for end in pair.heard if isinstance(end, Ended)}
    assert {end.outcome for end in ends.values()} == {"committed"}
    return {
        f"{side} {name}": (end.clock + start, end.clock + stop)
        for side, end in ends.items()
        for name, start, stop in end.phases
    }


def pause_of(phases: dict[str, tuple[float, float]]) -> tuple[float, float]:
    return phases["source freeze"][0], phases["destination promote"][1]


@pytest.mark.parametrize(
    "residents",
    [{}, {"r-1": ("b", 0.1)}, {"r-1": ("b", 0.5)}, {"r-1": ("b", 0.3), "r-2": ("b", 0.8)}, {"r-1": ("a", 0.5)}],
    ids=["nobody", "near", "half a period away", "two", "at the source"],
)
@pytest.mark.parametrize("slower", [1.0, 1.4])
def test_a_source_freezes_once_its_follower_stands_digested_and_none_computes_in_the_pause(
    residents: Residents, slower: float
) -> None:
    """The follower's worker is as fast, or so much slower that it stands there later."""
    worlds = Worlds(block_s=0.2 * PERIOD_S, slower={"b": slower})
    phases = virtual.run(replayed_beside(worlds, residents))
    begin, end = pause_of(phases)
    assert phases["destination verify"][1] <= begin
    assert end - begin < SHORT_S
    assert (worlds.beside(begin, end), worlds.late) == ([], [])


def test_a_follower_of_which_no_word_comes_is_waited_for_until_the_next_list() -> None:
    def lost(message: Any) -> bool:
        return isinstance(message, Ready) and message.to == "a"

    worlds = Worlds(loses=lost)
    begin, end = pause_of(virtual.run(replayed_beside(worlds, {})))
    assert worlds.late == []
    assert end - begin < SHORT_S
    lists = [worlds.closed["s-1", block] for block in range(NUM_BLOCKS)]
    assert min(abs(at - begin) for at in lists) < SHORT_S


@pytest.mark.parametrize("phase", [0.2 + 0.03 * number for number in range(10)])
def test_a_list_that_comes_to_the_destination_in_the_pause_is_stepped_after_it(phase: float) -> None:
    """The pause begins 0.26 periods after the session's list, and takes a twentieth here."""
    worlds = Worlds(block_s=0.2 * PERIOD_S, work_s=0.0125 * PERIOD_S)
    begin, end = pause_of(virtual.run(replayed_beside(worlds, {"r-1": ("b", phase)})))
    assert (worlds.beside(begin, end), worlds.late) == ([], [])


@pytest.mark.parametrize("block_s", [0.27 * PERIOD_S, 0.31 * PERIOD_S])
def test_while_a_replay_catches_up_and_is_met_no_resident_is_late(block_s: float) -> None:
    """Two residents, wherever in a period: a block of the follower's fits beside theirs, and no second one does."""
    for one, other in combinations_with_replacement((0.0, 0.25, 0.5, 0.75), 2):
        worlds = Worlds(block_s=block_s)
        begin, end = pause_of(virtual.run(replayed_beside(worlds, {"r-1": ("b", one), "r-2": ("b", other)})))
        assert (worlds.late, worlds.beside(begin, end)) == ([], []), (one, other)
        assert end - begin < SHORT_S, (one, other)
