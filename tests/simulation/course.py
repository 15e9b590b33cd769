"""The course of a run: sessions are opened, the weather strikes, and all comes to rest and is ended."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.simulation.asker import Asker
from tests.simulation.case import Plan
from tests.simulation.deeds import Deeds
from tests.simulation.hosts import SimHosts
from tests.simulation.house import House
from tests.simulation.loop import SimLoop
from tests.simulation.meddlers import Meddlers
from tests.simulation.mover import Mover
from tests.simulation.pairs import Pairs
from tests.simulation.played import Played
from tests.simulation.server import Server, ServerGoneError
from tests.simulation.storm import Storm
from tests.simulation.strangers import Strangers
from tests.simulation.tab import PLAYER, RIVAL, WATCHER, Role, Tab
from tests.simulation.trace import Trace
from tests.simulation.visitors import Visitors
from tests.simulation.watch import Watch
from tests.simulation.weather import Dice, Weather
from worldmove.errors import UserError, WorldMoveError
from worldmove.fleet.failover_report import FailoverOutcome, FailoverReport
from worldmove.move.ledger_row import Row

SETTLE_S = 60.0
"""Virtual time in which everything has come to rest once nothing strikes any more."""


@dataclass(slots=True, kw_only=True)
class Stage:
    """Everything of one run."""

    plan: Plan
    loop: SimLoop
    trace: Trace
    weather: Weather
    watch: Watch
    hosts: SimHosts
    storm: Storm
    server: Server
    tabs: list[Tab] = field(default_factory=list)
    """The players'."""
    second_tabs: list[Tab] = field(default_factory=list)


async def play(stage: Stage) -> None:
    """Run the whole course. Breaks the run where something does not come about in time."""
    await stage.server.start()
    movers: list[Mover | Strangers | Meddlers | Visitors | Pairs] = []
    pairs = _pairs(stage) if stage.plan.pairs else None
    for _ in range(stage.plan.num_sessions):
        session = await _open(stage)
        stage.tabs.append(_tab(stage, session, PLAYER))
        if not stage.plan.pairs or stage.weather.dice("moved").below(3):
            movers.append(_mover(stage, session))
        if dice := stage.weather.strikes("second_tab"):
            stage.second_tabs.append(_second_tab(stage, session, dice))
        if stage.weather.rates["stranger"]:
            movers.append(_strangers(stage, session))
        if stage.plan.meddles:
            movers.append(Meddlers(_asker(stage, session), protect_every=stage.plan.protect_every))
    if stage.plan.meddles:
        movers.append(_visitors(stage))
    if pairs is not None:
        movers.append(pairs)
    async with asyncio.TaskGroup() as group:
        for mover in movers:
            group.create_task(mover.run())
        await stage.storm.blow(stage.plan.horizon_s)
    if pairs is not None:
        await pairs.ended()
    house = await stage.server.serving()
    await _within(stage, "every move has ended", lambda: not any(v.attempt for v in house.controller.sessions()))
    await _settle(stage, house)
    _check_moves(stage, house)
    await _end(stage, house)


async def _open(stage: Stage) -> str:
    """Open a session; where the ledger does not answer, another. One of a server that died is found at the next."""
    while True:
        try:
            return await stage.server.ask(lambda house: _opened(house, stage.plan.protect_every))
        except WorldMoveError as error:
            stage.trace.add("not_opened", code=error.code)
            await asyncio.sleep(0.1)
        except ServerGoneError:
            stage.trace.count("openings of a server that died")
            house = await stage.server.serving()
            known = [tab.session for tab in stage.tabs]
            for view in house.controller.sessions():
                if view.name not in known:
                    return view.name


async def _opened(house: House, protect_every: int) -> str:
    return (await house.desk.open(seed=house.ids.next_seed(), on=None, protect=protect_every)).name


def _tab(stage: Stage, session: str, role: Role) -> Tab:
    return Tab(
        session,
        role=role,
        server=stage.server,
        loop=stage.loop,
        weather=stage.weather,
        watch=stage.watch,
        trace=stage.trace,
    )


def _second_tab(stage: Stage, session: str, dice: Dice) -> Tab:
    """One that watches, or one that wants the controls as well."""
    role = WATCHER if dice.below(3) else RIVAL
    stage.watch.played[session].has_rivals = role.controls
    stage.trace.count(f"second tabs: {role.name}")
    return _tab(stage, session, role)


def _strangers(stage: Stage, session: str) -> Strangers:
    return Strangers(
        session, server=stage.server, loop=stage.loop, weather=stage.weather, watch=stage.watch, trace=stage.trace
    )


def _mover(stage: Stage, session: str) -> Mover:
    return Mover(
        session,
        decodes=stage.plan.decodes,
        server=stage.server,
        loop=stage.loop,
        weather=stage.weather,
        watch=stage.watch,
        trace=stage.trace,
    )


def _asker(stage: Stage, session: str) -> Asker:
    return Asker(
        session=session,
        server=stage.server,
        loop=stage.loop,
        weather=stage.weather,
        watch=stage.watch,
        trace=stage.trace,
    )


def _pairs(stage: Stage) -> Pairs:
    stage.watch.is_strict = True
    deeds = Deeds(
        server=stage.server,
        hosts=stage.hosts,
        loop=stage.loop,
        weather=stage.weather,
        watch=stage.watch,
        asker_of=lambda session: _asker(stage, session),
        tabs=stage.tabs,
    )
    return Pairs(
        deeds=deeds,
        server=stage.server,
        loop=stage.loop,
        weather=stage.weather,
        watch=stage.watch,
        trace=stage.trace,
        protect_every=stage.plan.protect_every,
    )


def _visitors(stage: Stage) -> Visitors:
    return Visitors(
        others=tuple(tab.session for tab in stage.tabs),
        server=stage.server,
        loop=stage.loop,
        weather=stage.weather,
        watch=stage.watch,
        trace=stage.trace,
    )


async def _settle(stage: Stage, house: House) -> None:
    """Nothing strikes any more: every session plays again, or is lost; every slot is its owner's, or free."""
    watch = stage.watch
    for tab in stage.tabs:
        played = watch.played[tab.session]
        if played.is_closed:
            continue
        begun = played.next_block
        for any_tab in (tab, *(other for other in stage.second_tabs if other.session == tab.session)):
            any_tab.press("up", down=True)
        await _within(
            stage,
            f"{tab.session} plays again or is lost",
            lambda played=played, begun=begun: _lost(played) or played.next_block >= begun + 2,  # type: ignore[misc]
        )
        stage.trace.count("sessions lost" if _lost(played) else "sessions kept")
    await _within(stage, "every tab is back", lambda: all(tab.greeted or tab.ended for tab in stage.second_tabs))
    await _within(stage, "no attempt is open", lambda: not any(_open_attempt(p) for p in watch.played.values()))
    await _within(stage, "nobody but owners holds a copy", lambda: _only_owners(stage, house))
    told = house.controller.failovers
    await _within(stage, "no failover is left that is over", lambda: not any(_left_over(stage, r) for r in told()))


def _check_moves(stage: Stage, house: House) -> None:
    """Every move has an outcome, also one whose server has died in the middle of it."""
    for report in house.controller.moves():
        if report.attempt not in stage.watch.played[report.session].told:
            stage.trace.count("moves told by another server")
            stage.watch.reported(report)


async def _end(stage: Stage, house: House) -> None:
    for tab in stage.second_tabs:
        await tab.end()
    stage.watch.is_ending = True
    for tab in stage.tabs:
        stage.watch.check_actions(stage.watch.played[tab.session])
        await tab.end()
        if not stage.watch.played[tab.session].is_closed:
            await close(stage, tab.session)
    await _within(
        stage, "every slot is free", lambda: all(v.slots_free == v.num_slots for v in house.controller.workers())
    )
    under_way = [report for report in house.controller.failovers() if report.outcome is FailoverOutcome.REPLAYS]
    if under_way:
        stage.trace.fail(f"of sessions that are closed a failover is told as under way: {under_way}")
    await stage.server.ask(_stop)


async def close(stage: Stage, session: str) -> None:
    """Close a session, once it does not move: a worker that is to end may have it moved away at any time."""
    while True:
        try:
            await stage.server.ask(lambda house: house.desk.close(session))
        except UserError as error:
            if error.code != "moving":
                raise
            await asyncio.sleep(0.1)
        else:
            return


async def _stop(house: House) -> None:
    await house.gateway.end()
    await house.controller.stop()
    house.looking.cancel()


def _lost(played: Played) -> bool:
    return played.row is not None and played.row.lost


def _open_attempt(played: Played) -> bool:
    return played.row is not None and played.row.attempt is not None


def _left_over(stage: Stage, report: FailoverReport) -> bool:
    """Whether a failover is told as under way, though its epoch is over."""
    played = stage.watch.played[report.session]
    is_over = played.is_over or played.row is None or played.row.epoch != report.epoch
    return report.outcome is FailoverOutcome.REPLAYS and is_over


def _only_owners(stage: Stage, house: House) -> bool:
    """Every slot is an owner's, or holds the one snapshot that another worker keeps of a protected session.

    Of one whose owner is full none can be copied aside: what there was of it may have gone, or stay as it was.
    """
    rows = [played.row for played in stage.watch.played.values() if played.row and not played.is_over]
    views = house.controller.workers()
    held = sorted((copy.session, copy.phase, view.name) for view in views for copy in view.copies)
    full = [view.name for view in views if not view.slots_free]
    owners = [(row.session, "live", row.owner) for row in rows]
    others = {
        row.session: [phase for session, phase, worker in held if _is_other(row, session, worker)] for row in rows
    }
    if len(held) != sum(view.num_slots - view.slots_free for view in views) or not set(owners) <= set(held):
        return False
    if len(held) != len(owners) + sum(map(len, others.values())):
        return False
    return all(_is_as_protected(stage, others[row.session], is_full=row.owner in full) for row in rows)


def _is_other(row: Row, session: str, worker: str) -> bool:
    return session == row.session and worker != row.owner


def _is_as_protected(stage: Stage, phases: list[str], *, is_full: bool) -> bool:
    """Whether what others hold of a session is what they are to hold."""
    if not stage.plan.protect_every:
        return not phases
    return phases.count("kept") <= 1 and set(phases) <= {"kept", "retired"} if is_full else phases == ["kept"]


async def _within(stage: Stage, what: str, holds: Callable[[], bool]) -> None:
    """Wait until something holds. Breaks the run where it does not in time."""
    begun = stage.loop.time()
    while not holds():
        if stage.loop.time() - begun > SETTLE_S:
            stage.trace.fail(f"in {SETTLE_S:.0f} s it did not come about that {what}")
        await asyncio.sleep(0.1)
