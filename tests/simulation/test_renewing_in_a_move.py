"""A protected session is moved: its snapshot is renewed where that takes long, and how old it is is told."""

import asyncio
from dataclasses import replace

import pytest

from tests.simulation import run
from tests.simulation.course import Stage
from tests.simulation.run import directed
from tests.simulation.test_protection import SESSION, ended, goes_on, holds, kept, kill, owner, protected, shown, until
from worldmove.fleet.reports import MoveReport, Outcome
from worldmove.fleet.views import SessionView
from worldmove.move.strategy import Strategy

EVERY = 4


def listed(stage: Stage) -> SessionView:
    assert stage.server.house is not None
    return stage.server.house.controller.sessions()[0]


@pytest.mark.parametrize("dies", [False, True])
@pytest.mark.parametrize("strategy", [Strategy.REPLAY, Strategy.PRE_COPY])
def test_a_session_whose_move_takes_long_is_renewed_meanwhile_and_goes_on_whether_its_worker_dies_or_the_move_ends(
    monkeypatch: pytest.MonkeyPatch, strategy: Strategy, *, dies: bool
) -> None:
    """Its keeper forgets what no newer one has replaced for some time, and it may take an hour."""
    monkeypatch.setattr(run, "FLEET", replace(run.FLEET, patience_s=40.0))
    ages: list[int] = []

    async def course(stage: Stage) -> None:
        tab = await protected(stage, every=EVERY)
        to = next(name for name in ("worker-2", "worker-3") if name != (kept(stage) or ("", 0))[0])
        stage.weather.rates["path_stalls"] = 1.0
        asked = stage.server.ask(lambda house: house.desk.move(SESSION, to, damage=False, strategy=strategy.value))
        moving = asyncio.ensure_future(asked)
        await until(stage, lambda: holds(stage, to), "its destination has a slot for it")
        await asyncio.sleep(0.3)
        stage.weather.rates["path_stalls"] = 0.0  # what is pulled from now on comes at once
        begun = shown(stage)
        while not moving.done() and shown(stage) < begun + 24:
            ages.append(listed(stage).kept_age_blocks or 0)
            await asyncio.sleep(0.1)
        assert not moving.done()
        assert (kept(stage) or ("", 0))[1] >= begun
        if dies:
            kill(stage, "worker-1")
        await goes_on(stage)
        report: MoveReport = await moving
        assert report.outcome is (Outcome.ABORTED if dies else Outcome.COMMITTED)
        assert (owner(stage) == to) is not dies
        await ended(stage, tab)

    assert directed(course).trace.counts["lost"] == 0
    assert max(ages) <= 3 * EVERY


def test_what_is_listed_of_a_sessions_newest_snapshot_is_how_many_blocks_were_shown_since() -> None:
    async def course(stage: Stage) -> None:
        tab = await protected(stage, every=64)
        block = (kept(stage) or ("", 0))[1]
        for _ in range(3):
            await goes_on(stage, 2)
            assert (listed(stage).kept_age_blocks, listed(stage).unprotected_why) == (shown(stage) - block, "")
        await ended(stage, tab)

    directed(course)
