"""The two roles of an audit: playing from the beginning, and playing from what is restored in a fresh process.

Every session is restored in a fork of its own, so that none meets what another left in the process.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from worldmove.audit.findings import (
    BOUNDARIES,
    Continuation,
    Drop,
    Fault,
    LeafFact,
    Order,
    RestoredFindings,
    SourceFindings,
    Tried,
    Unit,
)
from worldmove.audit.forks import in_forks, left_s
from worldmove.audit.graph import Graph
from worldmove.audit.moments import leaf_digests, leaf_facts
from worldmove.audit.names import split
from worldmove.audit.parcel import Parcel, units, without
from worldmove.audit.play import Player, Script, installed, opened, ready, script_for, state_of, stepped
from worldmove.audit.trail import Moment, compare, part_of
from worldmove.audit.trials import Trial, trials
from worldmove.audit.walk import reachable
from worldmove.engine.base import Engine
from worldmove.errors import UserError
from worldmove.state.capture import capture
from worldmove.state.tree import flatten

T = TypeVar("T")

AFTER_S = 0.1
"""A fork outlives the one that waits for it by so much: it is the latter that is told to have hung."""
PATIENCE = 20
"""A session without one of its leaves gets this many times as long as a whole one."""


def play_from_the_beginning(order: Order, before: list[str]) -> SourceFindings:
    """Open, and play through both boundaries to the later end."""
    engine, module = ready(order.engine), split(order.engine)[0]
    session = opened(engine)
    script = script_for(engine, before=order.before, blocks=order.blocks)
    player = Player(engine=engine, session=session, script=script)
    moments = [player.now()]
    facts: dict[str, LeafFact] = {}
    graph_opened = reachable(engine, session, module, before)
    starts: dict[str, Graph] = {}
    ends: dict[str, Graph] = {}
    for done, moment in enumerate(player.blocks(0, max(end for _, end in script.spans.values())), 1):
        moments.append(moment)
        for name, (start, end) in script.spans.items():
            if done == start:
                state = state_of(engine, session)
                Parcel(folder=Path(order.folder), name=name).write(state)
                facts |= leaf_facts(state)
                starts[name] = reachable(engine, session, module, before)
            elif done == end:
                ends[name] = reachable(engine, session, module, before)
    return SourceFindings(
        moments=moments, spans=dict(script.spans), facts=facts, opened=graph_opened, starts=starts, ends=ends
    )


def play_from_the_boundaries(order: Order, before: list[str]) -> RestoredFindings:
    """Restore and play on. Raises UserError where a whole session cannot even be restored."""
    engine = ready(order.engine)
    script = script_for(engine, before=order.before, blocks=order.blocks)
    fresh = Fresh(engine=engine, script=script, order=order, before=before)
    tried = fresh.tried(trials(engine.spec.keys))
    began = time.monotonic()
    continuations = fresh.at_both(fresh.go_on, Continuation)
    if not order.drops_leaves:
        units: dict[str, list[Unit]] = {name: [] for name in BOUNDARIES}
        return RestoredFindings(tried=tried, continuations=continuations, units=units, drops=[])
    limit_s = min(left_s(), 30 + PATIENCE * (time.monotonic() - began))
    known = fresh.at_both(fresh.units, list[Unit])
    drops: list[Drop] = []
    for name in reversed(BOUNDARIES):  # where nothing waits most is missed at once, and its continuation is shorter
        paths = _to_try(known[name], drops)
        jobs = [partial(fresh.drop, name, path, continuations[name].moments) for path in paths]
        found = in_forks(jobs, Drop, at_once=order.at_once, limit_s=limit_s)
        drops += [_dropped(name, path, result) for path, result in zip(paths, found, strict=True)]
    return RestoredFindings(tried=tried, continuations=continuations, units=known, drops=drops)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fresh:
    """What a fork of the fresh process can be told to do. Each method is one fork's whole work."""

    engine: Engine[Any]
    script: Script
    order: Order
    before: list[str]

    def at_both(self, job: Callable[[str], T], kind: type[T]) -> dict[str, T]:
        """Do a job at each boundary, in forks. Raises UserError where one fails."""
        jobs = [partial(job, name) for name in BOUNDARIES]
        found = in_forks(jobs, kind, at_once=self.order.at_once, limit_s=left_s() + AFTER_S)
        return {name: _whole(result) for name, result in zip(BOUNDARIES, found, strict=True)}

    def tried(self, given: Sequence[Trial]) -> list[Tried]:
        """Give each trial's lists to a new world, in forks; what the engine does not take is a finding."""
        jobs = [partial(self.take, trial) for trial in given]
        found = in_forks(jobs, Tried, at_once=self.order.at_once, limit_s=left_s() + AFTER_S)
        return [
            Tried(name=trial.name, fault=result.message) if isinstance(result, Fault) else result
            for trial, result in zip(given, found, strict=True)
        ]

    def take(self, trial: Trial) -> Tried:
        """Step a new world by these lists, and look at its state after each. Raises UserError, StateRefused."""
        session = opened(self.engine)
        for number, changes in enumerate(trial.lists):
            stepped(self.engine, session, changes, number)
            state_of(self.engine, session)
        return Tried(name=trial.name)

    def go_on(self, name: str) -> Continuation:
        """Restore a whole session and play on."""
        session = installed(self.engine, self._tree(name))
        player = Player(engine=self.engine, session=session, script=self.script)
        moments = [player.now()]
        start = self._reachable(session)
        moments += player.blocks(*self.script.spans[name])
        return Continuation(moments=moments, start=start, end=self._reachable(session))

    def units(self, name: str) -> list[Unit]:
        """Say what can be dropped, and what of it a new session has as well."""
        tree, types = self._tree(name), self.engine.state_types
        live = capture(tree, types)
        fresh_tree = self.engine.state(opened(self.engine))
        fresh = leaf_digests(capture(fresh_tree, types))
        old = Moment(frames="", notes="", state="", leaves=leaf_digests(live))
        new = Moment(frames="", notes="", state="", leaves=fresh)
        paths = units(flatten(tree, types).structure, flatten(fresh_tree, types).structure)
        return [Unit(path=path, is_fresh=part_of(old, path) == part_of(new, path)) for path in paths]

    def drop(self, name: str, path: str, expected: Sequence[Moment]) -> Drop:
        """Restore a session without one part of its state, and play on until something else is different."""
        new = self.engine.state(opened(self.engine))
        session = installed(self.engine, without(self._tree(name), new, path, self.engine.state_types))
        player = Player(engine=self.engine, session=session, script=self.script)
        moment = expected[0]
        for block, moment in enumerate(player.blocks(*self.script.spans[name]), 1):
            difference = compare(expected[block], moment, block=block, beside=path)
            if difference is not None:
                return Drop(boundary=name, path=path, difference=difference)
        return Drop(boundary=name, path=path, itself=part_of(moment, path) != part_of(expected[-1], path))

    def _tree(self, name: str) -> Any:
        return Parcel(folder=Path(self.order.folder), name=name).tree(self.engine)

    def _reachable(self, session: Any) -> Graph:
        return reachable(self.engine, session, split(self.order.engine)[0], self.before)


def _whole(found: T | Fault) -> T:
    if isinstance(found, Fault):
        raise UserError(f"A restored session could not go on: {found.message}", code="engine_failed")
    return found


def _dropped(name: str, path: str, found: Drop | Fault) -> Drop:
    return Drop(boundary=name, path=path, fault=found.message) if isinstance(found, Fault) else found


def _to_try(known: Sequence[Unit], drops: Sequence[Drop]) -> list[str]:
    """What differs from a new session's at this boundary, unless it was missed at the other already."""
    missed = [drop.path for drop in drops if drop.is_missed]
    return [unit.path for unit in known if not unit.is_fresh and unit.path not in missed]
