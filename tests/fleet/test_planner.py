"""What a move is reckoned with, gathered from what workers, gateway and earlier moves have said."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.fleet.fakes import Server, copy_of, server_of
from worldmove.errors import UserError
from worldmove.fleet.config import FleetConfig
from worldmove.fleet.forecast import Forecast
from worldmove.fleet.history import History
from worldmove.fleet.notes import MemoryNotes, Notes
from worldmove.fleet.planner import LONGER, Planner
from worldmove.fleet.routes import Routes
from worldmove.fleet.sessions import SessionRecord, SessionTable
from worldmove.fleet.wish import Wish
from worldmove.move.measured import COMMIT_S, Fixed, Measured
from worldmove.move.strategy import WIRED, Strategy
from worldmove.worker.messages import Hello, Opened

OPENED = Opened(session="s", epoch=1, num_bytes=20_000_000, num_leaves=3, state_digest="d")
MORE = {"copy_bytes_per_s": 2e9, "row_bytes_per_s": 3e9, "period_s": 0.5, "dirty_bytes": 9.0, "new_bytes": 5.0}


def planned(wish: Wish | None = None, *, prepare: Callable[[Server], None] = lambda server: None) -> Forecast:
    """Plan the move of a session from ``a`` to ``b``."""

    async def run() -> Forecast:
        server = await server_of("a", "b")
        prepare(server)
        return planner_of(server).plan("s", "b", wish or Wish())

    return asyncio.run(run())


def planner_of(server: Server) -> Planner:
    sessions = SessionTable()
    sessions.add(SessionRecord(name="s", seed=1, worker="a", incarnation=1, throwaway=False, opened=OPENED))
    return Planner(
        config=FleetConfig(workers=("a", "b")),
        workers=server.workers,
        sessions=sessions,
        desk=server.desk,
        gateway=lambda: server.gateway,
        history=History(Notes(MemoryNotes()), limit=8, log=lambda event, fields: None),
        routes=Routes(transport="shm", quarantine_s=600.0),
        wall_clock=lambda: 0.0,
    )


def knows(server: Server, worker: str, **changes: Any) -> None:
    """A worker has said other things in its hello."""
    record = server.workers.get(worker)
    assert record.hello is not None
    fields = {name: getattr(record.hello, name) for name in Hello.__struct_fields__}
    record.hello = Hello(**{**fields, **changes})


def rates(**changes: float) -> dict[str, float]:
    return {"shm_bytes_per_s": 1e9, "hash_bytes_per_s": 1e9, "block_s": 0.01, **MORE, **changes}


def known(server: Server) -> None:
    knows(server, "a", rates=rates())
    knows(server, "b", rates=rates(hash_bytes_per_s=5e8, copy_bytes_per_s=1e9))


def measured(forecast: Forecast) -> Measured:
    return forecast.measured[Strategy.BOUNDARY_COPY]


def test_each_end_says_its_own_rates_and_of_what_both_do_the_slower_counts() -> None:
    found = measured(planned(prepare=known))
    assert (found.num_bytes, found.path_rate, found.horizon_s) == (20_000_000, 1e9, 1.0)
    assert (found.source_hash_rate, found.destination_hash_rate) == (1e9, 5e8)
    assert (found.copy_rate, found.row_rate) == (1e9, 3e9)
    assert (found.dirty_bytes, found.new_bytes, found.period_s) == (9, 5, 0.5)
    assert (found.num_slots_free, found.num_source_slots_free) == (3, 3)


def test_before_any_move_the_warm_ups_say_how_long_a_freeze_and_an_install_take() -> None:
    def told(server: Server) -> None:
        knows(server, "a", rates=rates(freeze_s=0.02, install_s=0.5))
        knows(server, "b", rates=rates(freeze_s=0.5, install_s=0.03))

    fixed = measured(planned(prepare=told)).fixed
    assert (fixed.freeze_s, fixed.install_s, fixed.num_moves, fixed.is_measured) == (0.02, 0.03, 0, True)
    assert "warm-ups" in fixed.of
    plain = measured(planned(prepare=known)).fixed
    assert replace(plain, commit_s=COMMIT_S) == Fixed()
    assert plain.commit_s < COMMIT_S  # as the ledger has taken for its last operation


def test_before_any_move_words_are_on_their_way_as_long_as_the_last_beats_were() -> None:
    def beaten(server: Server) -> None:
        for worker, ways in (("a", [0.002, 0.002, 0.9]), ("b", [0.004])):
            server.workers.get(worker).ways_s.extend(ways)

    fixed = measured(planned(prepare=beaten)).fixed
    assert fixed.boundary_s == pytest.approx(0.003)
    assert 0.004 <= fixed.commit_s < 0.005  # asked for and answered, and what the ledger takes


def test_what_nobody_has_measured_is_not_known() -> None:
    found = measured(planned())
    assert (found.copy_rate, found.row_rate, found.new_bytes, found.utilisation) == (None, None, None, None)
    assert planned().choice.verdict.admitted


def test_a_destination_is_as_busy_as_its_worlds_and_its_newest_block_time_say() -> None:
    def busy(server: Server) -> None:
        known(server)
        server.holds("b", copy_of("x", "live"), copy_of("y", "live"), copy_of("z", "retired"))
        server.workers.get("b").block_s = 0.1

    found = measured(planned(prepare=busy))
    assert found.block_s == pytest.approx(LONGER * 0.1)
    assert found.utilisation == pytest.approx(2 * LONGER * 0.1 / 0.5)
    assert found.num_slots_free == 0


def test_on_one_device_the_worlds_of_both_workers_take_its_time_and_blocks_count_that_were_alone() -> None:
    def shared(server: Server) -> None:
        for name in ("a", "b"):
            knows(server, name, rates=rates(), device="GPU-1")
            server.holds(name, copy_of(f"x-{name}", "live"))
            server.workers.get(name).block_s = 0.2  # beside each other
        server.workers.paces.block("GPU-1", "a", 10.0, 0.1)
        server.workers.paces.block("GPU-1", "b", 10.2, 0.2)
        server.workers.paces.block("GPU-1", "a", 10.3, 0.2)

    found = measured(planned(prepare=shared))
    assert found.block_s == pytest.approx(LONGER * 0.1)
    assert found.utilisation == pytest.approx(2 * LONGER * 0.1 / 0.5)


def test_environments_that_differ_are_named() -> None:
    found = planned(prepare=lambda server: knows(server, "b", environment={"engine.name": "none", "torch": "2.12"}))
    assert found.choice.verdict.reason == "environment"
    assert "torch" in found.choice.verdict.detail
    assert found.choice.verdict.terms == ()


def test_a_link_of_a_set_speed_is_planned_over_and_no_faster_than_it_says() -> None:
    found = planned(Wish(link="100mbit"))
    assert found.transport == "throttled-100mbit-shm"
    assert measured(found).path_rate == 12.5e6
    assert found.choice.verdict.reason == "too_slow"
    remedy = found.remedy(Strategy.BOUNDARY_COPY)
    assert remedy is not None


def test_a_wanted_strategy_is_the_one_that_is_planned() -> None:
    for strategy in WIRED:
        assert planned(Wish(strategy=strategy)).choice.strategy is strategy


def test_every_strategy_that_is_wired_has_a_verdict() -> None:
    assert [verdict.strategy for verdict in planned().choice.verdicts] == list(WIRED)


def test_a_move_to_where_it_is_would_be_refused() -> None:
    async def run() -> Forecast:
        return planner_of(await server_of("a", "b")).plan("s", "a", Wish())

    assert asyncio.run(run()).choice.verdict.reason == "same_worker"


def test_a_move_to_nowhere_cannot_be_planned() -> None:
    async def run() -> None:
        planner_of(await server_of("a", "b")).plan("s", "c", Wish())

    with pytest.raises(UserError, match="no worker c"):
        asyncio.run(run())


def test_a_plan_says_nothing_to_anybody() -> None:
    async def run() -> Server:
        server = await server_of("a", "b")
        planner_of(server).plan("s", "b", Wish())
        return server

    server = asyncio.run(run())
    assert [wire.sent for wire in server.wires.values()] == [[], []]
