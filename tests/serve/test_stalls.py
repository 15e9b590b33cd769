"""A session whose engine does not come back from a step is told of, and no other one."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest
from structlog.testing import capture_logs

from tests.serve.test_gateway import House, Watcher, in_house
from worldmove.fleet.views import SessionState
from worldmove.fleet.worker_table import NUM_BLOCKS
from worldmove.serve.stalls import LEAST_S, Stalls

LONG_S = 40.0


def told(work: Callable[[House, str, Watcher], Awaitable[None]], *, compute_s: float = 0.001) -> list[tuple[str, Any]]:
    """Play a world, then have no block come back any more. Return what is logged of stalls."""

    async def played(house: House) -> None:
        session = (await house.desk.open(seed=7, on=None)).name
        watcher = Watcher(house, session)
        watcher.press(("up", True))
        await watcher.until_block(2)
        house.fleet.compute_s = LONG_S
        await work(house, session, watcher)

    with capture_logs() as logs:
        in_house(played, compute_s=compute_s)
    return [(str(line["event"]), line) for line in logs if str(line["event"]).startswith("session_stalled")]


def test_a_session_whose_block_does_not_come_is_told_of_after_a_while_and_once() -> None:
    async def work(house: House, session: str, watcher: Watcher) -> None:
        await asyncio.sleep(LEAST_S - 0.2)
        assert (house.gateway.stalls.num_stalled, house.gateway.stalls.stalled_s(session)) == (0, None)
        await asyncio.sleep(2.0)
        assert house.gateway.stalls.num_stalled == 1
        assert house.gateway.stalls.stalled_s(session) == pytest.approx(LEAST_S + 1.8, abs=0.1)

    ((event, line),) = told(work)
    assert event == "session_stalled"
    assert (line["session"], line["worker"], line["epoch"], line["log_level"]) == ("s-1", "a", 1, "warning")
    assert LEAST_S <= line["waited_s"] <= LEAST_S + 0.1


def test_what_is_long_for_an_engine_is_reckoned_by_its_own_blocks() -> None:
    async def work(house: House, session: str, watcher: Watcher) -> None:
        await asyncio.sleep(NUM_BLOCKS * 0.5 - 0.6)
        assert house.gateway.stalls.num_stalled == 0
        await asyncio.sleep(2.5)
        assert house.gateway.stalls.num_stalled == 1

    told(work, compute_s=0.5)


def test_that_it_goes_on_is_told_too() -> None:
    async def work(house: House, session: str, watcher: Watcher) -> None:
        await asyncio.sleep(LEAST_S + 1.0)
        assert house.gateway.stalls.num_stalled == 1
        await asyncio.sleep(LONG_S - LEAST_S + 1.0)
        assert (house.gateway.stalls.num_stalled, house.gateway.stalls.stalled_s(session)) == (0, None)

    lines = told(work)
    assert [event for event, _ in lines][:2] == ["session_stalled", "session_stalled_no_more"]
    assert lines[1][1]["waited_s"] == pytest.approx(LONG_S, abs=1.0)


@pytest.mark.parametrize("state", [SessionState.IN_DOUBT, SessionState.LOST, SessionState.OPENING])
def test_where_nobody_is_known_to_play_it_no_engine_is_blamed(state: SessionState) -> None:
    async def work(house: House, session: str, watcher: Watcher) -> None:
        fake = house.fleet.sessions_by_name[session]
        fake.view = replace(fake.view, state=state)
        await asyncio.sleep(LEAST_S + 1.0)
        assert house.gateway.stalls.num_stalled == 0

    assert told(work) == []


def test_a_world_that_rests_owes_no_block() -> None:
    async def work(house: House) -> None:
        session = (await house.desk.open(seed=7, on=None)).name
        watcher = Watcher(house, session)
        await watcher.until(lambda: [m for m in watcher.texts("rest") if m["resting"]])
        await asyncio.sleep(2 * LEAST_S)
        assert house.gateway.stalls.num_stalled == 0

    in_house(work)


def test_a_block_that_has_come_and_waits_for_the_ledger_is_not_its_engines_fault() -> None:
    async def work(house: House) -> None:
        house.fleet.failing_answers = 1 << 30
        session = (await house.desk.open(seed=7, on=None)).name
        watcher = Watcher(house, session)
        watcher.press(("up", True))
        await asyncio.sleep(2 * LEAST_S)
        assert (house.gateway.live(session).next_block, house.gateway.stalls.num_stalled) == (0, 0)

    in_house(work)


def test_a_new_owner_has_its_own_time() -> None:
    async def work(house: House, session: str, watcher: Watcher) -> None:
        await asyncio.sleep(LEAST_S - 1.0)
        fake = house.fleet.sessions_by_name[session]
        fake.view = replace(fake.view, owner="b", epoch=2)
        await asyncio.sleep(LEAST_S - 1.0)
        assert house.gateway.stalls.num_stalled == 0
        await asyncio.sleep(1.5)
        assert house.gateway.stalls.num_stalled == 1

    ((_, line),) = told(work)
    assert (line["worker"], line["epoch"]) == ("b", 2)


def test_time_in_which_the_server_itself_did_not_run_is_nobodys() -> None:
    async def work(house: House, session: str, watcher: Watcher) -> None:
        stalls = Stalls(house.gateway)
        stalls.look(0.5)
        await asyncio.sleep(4 * LEAST_S)
        stalls.look(0.5)
        stalls.look(0.5)
        assert stalls.num_stalled == 0
        for _ in range(int(LEAST_S / 0.5)):
            await asyncio.sleep(0.5)
            stalls.look(0.5)
        assert stalls.num_stalled == 1

    told(work)
