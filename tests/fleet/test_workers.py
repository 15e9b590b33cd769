"""The table of workers."""

import pytest

from tests.fleet.fakes import copy_of, server_of
from tests.move import virtual
from worldmove.errors import UserError
from worldmove.fleet.views import WorkerState
from worldmove.fleet.worker_table import NUM_BLOCKS, STUCK_S
from worldmove.worker.messages import Copies


def test_a_worker_is_gone_when_its_process_is_or_a_newer_one_exists_and_not_before() -> None:
    async def run() -> list[bool]:
        server = await server_of("a")
        found = [server.workers.is_gone("a", 1)]
        server.dies("a")
        found.append(server.workers.is_gone("a", 1))
        server.workers.begin("a")
        return [*found, server.workers.is_gone("a", 1), server.workers.is_gone("a", 2)]

    assert virtual.run(run()) == [False, True, True, False]


def test_a_death_is_that_of_its_own_incarnation() -> None:
    async def run() -> WorkerState:
        server = await server_of("a")
        server.workers.begin("a")
        server.workers.gone("a", 1)
        return server.workers.all()[0].state

    assert virtual.run(run()) is WorkerState.STARTING


def test_an_earlier_incarnations_report_counts_for_nothing() -> None:
    async def run() -> int:
        server = await server_of("a")
        server.workers.report(
            Copies(worker="a", incarnation=0, copies=(copy_of("s", "live"),), slots_free=0, slots_quarantined=2)
        )
        return server.workers.get("a").slots_free

    assert virtual.run(run()) == 3


def test_a_report_of_the_dead_that_comes_late_brings_no_copy_back() -> None:
    async def run() -> tuple[tuple[object, ...], int]:
        server = await server_of("a")
        server.dies("a")
        server.workers.report(
            Copies(worker="a", incarnation=1, copies=(copy_of("s", "retired"),), slots_free=2, slots_quarantined=0)
        )
        return server.workers.holders("s", ("retired",)), server.workers.all()[0].slots_free

    assert virtual.run(run()) == ((), 0)


def test_sessions_go_where_there_is_room_and_throw_away_copies_where_fewest_play() -> None:
    async def run() -> tuple[str, str]:
        server = await server_of("a", "b")
        server.holds("a", copy_of("s", "live"))
        server.holds("b", copy_of("t", "retired"), copy_of("u", "throwaway"))
        return server.workers.with_most_room().name, server.workers.with_fewest_players().name

    assert virtual.run(run()) == ("a", "b")


def test_a_worker_that_is_not_there_is_refused_by_name() -> None:
    async def run() -> None:
        server = await server_of("a", "b")
        server.dies("b")
        with pytest.raises(UserError, match="there are a, b"):
            server.workers.get("c")
        with pytest.raises(UserError, match="b is gone; try again"):
            server.workers.get("b")

    virtual.run(run())


def test_where_nobody_answers_no_slot_is_said_to_be_taken() -> None:
    """Who opens a session is not told to close one, and none is closed for its room."""

    async def run() -> list[str]:
        server, codes = await server_of("a", "b"), list[str]()
        for free in (2, 0):
            for record in server.workers.all():
                record.slots_free, record.suspected = free, free > 0
            with pytest.raises(UserError) as refused:
                server.workers.with_most_room()
            codes.append(refused.value.code)
        return codes

    assert virtual.run(run()) == ["worker_gone", "no_slot"]


def test_a_worker_whose_engine_does_not_return_takes_nothing_new_where_others_do() -> None:
    async def run() -> list[str]:
        server, chosen = await server_of("a", "b"), list[str]()
        server.holds("a", copy_of("s", "live"))
        server.holds("b", copy_of("t", "live"), copy_of("u", "live"))
        for stalled in ((), ("s",), ("s", "u")):
            server.workers.is_stalled = stalled.__contains__
            chosen.append(server.workers.with_most_room().name)
        return chosen

    assert virtual.run(run()) == ["a", "b", "a"]


@pytest.mark.parametrize(
    ("taken_s", "block_s", "is_stalled", "is_stuck"),
    [
        (0.0, None, False, False),
        (STUCK_S, None, False, False),
        (STUCK_S + 1, None, False, True),
        (STUCK_S + 1, 0.2, False, True),
        (STUCK_S + 1, 2.0, False, False),  # a slow engine
        (NUM_BLOCKS * 2.0 + 1, 2.0, False, True),
        (0.0, 2.0, True, True),
    ],
)
def test_that_an_engine_does_not_return_shows_by_what_it_is_at_or_by_a_session_there_and_is_shown(
    taken_s: float, block_s: float | None, *, is_stalled: bool, is_stuck: bool
) -> None:
    async def run() -> list[bool]:
        server = await server_of("a", "b")
        server.holds("a", copy_of("s", "live"))
        record = server.workers.get("a")
        record.taken_s, record.block_s = taken_s, block_s
        server.workers.is_stalled = lambda session: is_stalled
        return [view.is_stuck for view in server.workers.views()]

    assert virtual.run(run()) == [is_stuck, False]


@pytest.mark.parametrize(
    ("taken_s", "at_block", "is_stalled", "is_past_hope"),
    [
        (STUCK_S, True, True, True),
        (STUCK_S, False, True, False),  # it is at an opening
        (STUCK_S, True, False, False),
        (0.01, True, True, False),  # it has come back from one
        (0.0, False, True, False),
    ],
)
def test_a_boundary_is_hoped_for_unless_the_engine_is_in_one_block_for_long(
    taken_s: float, *, at_block: bool, is_stalled: bool, is_past_hope: bool
) -> None:
    async def run() -> bool:
        server = await server_of("a")
        record = server.workers.get("a")
        record.taken_s, record.at_block, server.workers.is_stalled = taken_s, at_block, lambda session: is_stalled
        return server.workers.is_past_hope(record, "s")

    assert virtual.run(run()) is is_past_hope
