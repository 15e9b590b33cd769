"""The process that plays from the beginning: it exports at both boundaries and goes on."""

from pathlib import Path
from typing import Any

from worldmove.audit.findings import BUSY, CALM, LeafFact, Order, SourceFindings
from worldmove.audit.graph import Graph
from worldmove.audit.moments import leaf_bytes, leaf_kinds
from worldmove.audit.names import split
from worldmove.audit.parcel import Parcel
from worldmove.audit.play import Player, opened, ready, script_for, state_of
from worldmove.audit.roots import own_modules, roots_of
from worldmove.audit.walk import walk
from worldmove.engine.base import Engine


def reachable(engine: Engine[Any], session: Any, order: Order, before: list[str]) -> Graph:
    """Walk all that a session and its engine reach. ``before``: the modules from before the engine's import."""
    modules = own_modules(engine, session, split(order.engine)[0], before)
    return walk(roots_of(engine, session, modules), modules)


def play_from_the_beginning(order: Order, before: list[str]) -> SourceFindings:
    """Open, play to the last boundary and as many blocks beyond it as were ordered."""
    engine = ready(order.engine)
    session = opened(engine)
    script = script_for(engine, before=order.before, blocks=order.blocks)
    player = Player(engine=engine, session=session, script=script)
    moments = [player.now()]
    facts: dict[str, LeafFact] = {}
    graph_opened = reachable(engine, session, order, before)
    boundaries = {BUSY: script.busy, CALM: script.calm}
    starts: dict[str, Graph] = {}
    ends: dict[str, Graph] = {}
    for done, moment in enumerate(player.blocks(0, script.calm + order.blocks), 1):
        moments.append(moment)
        for name, boundary in boundaries.items():
            if done == boundary:
                facts |= _export(engine, session, Parcel(folder=Path(order.folder), name=name))
                starts[name] = reachable(engine, session, order, before)
            elif done == boundary + order.blocks:
                ends[name] = reachable(engine, session, order, before)
    return SourceFindings(
        moments=moments, boundaries=boundaries, facts=facts, opened=graph_opened, starts=starts, ends=ends
    )


def _export(engine: Engine[Any], session: Any, parcel: Parcel) -> dict[str, LeafFact]:
    state = state_of(engine, session)
    parcel.write(state)
    kinds, sizes = leaf_kinds(state), leaf_bytes(state)
    return {path: LeafFact(kind=kind, num_bytes=sizes[path]) for path, kind in kinds.items()}
