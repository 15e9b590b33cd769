"""How an engine rewrites its state from one block to the next, as the canary shows it: what rounds and streaming gain.

dirty     what differs, place by place, between two boundaries in a row
further   by how much more differs two boundaries on: nothing, where each block writes the same places
new       what of it lay nowhere before: the rest was moved
final     what of the new bytes the engine calls final before its block ends
followed  what of them it computes again from what the block has handed on, and how long that takes
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from worldmove.engine.base import Engine, Follows, Streams
from worldmove.errors import StateRefused
from worldmove.move.reconcile import reconcile
from worldmove.move.streaming import can_be_said
from worldmove.state.arena import AnyArena
from worldmove.state.arena_rows import held_in, look_at, move_in
from worldmove.state.capture import capture
from worldmove.state.digest import state_digest
from worldmove.state.held import Holding
from worldmove.state.kits import kit_of
from worldmove.state.landing import landed
from worldmove.state.manifest import Manifest
from worldmove.state.materialise import build
from worldmove.state.part import part_of
from worldmove.state.placement import Placement
from worldmove.state.rows import Rows, final_rows, min_row_bytes, rows_of
from worldmove.worker.foreign import engine_asked
from worldmove.worker.states import DIGESTER, copy_aside_in, followed_paths

Said = Sequence[tuple[str, float]]
"""Each path that was called final, and when."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """A state's rows, copied aside."""

    manifest: Manifest
    placement: Placement
    rows: Rows
    held: Holding
    took_s: float
    """Of digesting them again, as a source does in its pause."""


def habits(engine: Engine[Any], session: Any, aside: AnyArena, clock: Callable[[], float]) -> dict[str, float]:
    """Step a session by three blocks and compare the second's ends, and the third's. Empty where rows cannot be seen.

    The first block is not compared: a session fills what its later blocks only roll. Runs in the engine's thread.
    """
    engine.step(session, ())
    try:
        before = look(engine, session, aside, clock)
        said, handed, ended_at = _told(engine, session, clock)
        follow_s = _followed_in(engine, session, before, aside, handed, clock)
        after = look(engine, session, aside, clock)
        _brought_back(before, after, aside)
        engine.step(session, ())
        later = look(engine, session, aside, clock)
    except StateRefused:
        return {}
    found = compared(before, after, said, ended_at, followed_paths(engine), follow_s)
    return found | _further(before, after, later) if found else {}


def _told(engine: Engine[Any], session: Any, clock: Callable[[], float]) -> tuple[Said, Sequence[bytes], float]:
    """Step a block; return what was called final, and when, what was handed on, and when the block ended."""
    said: list[tuple[str, float]] = []
    handed: list[bytes] = []

    def final(path: str) -> None:
        said.append((path, clock()))

    if isinstance(engine, Follows) and engine.followed:
        engine.step_handing(session, (), final, handed.append)
    elif isinstance(engine, Streams):
        engine.step_streaming(session, (), final)
    else:
        engine.step(session, ())
    return [(path, at) for path, at in said if can_be_said(path)], handed, clock()


def _followed_in(
    engine: Engine[Any],
    session: Any,
    before: Look,
    aside: AnyArena,
    handed: Sequence[bytes],
    clock: Callable[[], float],
) -> float | None:
    """Step a component alone from where it was before the block. Return how long it took; None if it came out wrong.

    The copy that lies aside is its memory: it is not used any more.
    """
    if not isinstance(engine, Follows) or len(handed) != 1:
        return None
    kit = kit_of(engine.spec.device)
    with engine_asked("step a part of a session by itself"):
        tree = build(landed(before.manifest, before.placement, aside), engine.state_types)
        part = part_of(tree, engine.followed)
        begin = clock()
        engine.follow(part, handed[0])
        took_s = clock() - begin
        stepped = part_of(engine.state(session), engine.followed)
        digests = {state_digest(capture(each, engine.state_types, kit), DIGESTER).text for each in (part, stepped)}
    return took_s if len(digests) == 1 else None


def look(engine: Engine[Any], session: Any, aside: AnyArena, clock: Callable[[], float]) -> Look:
    """Copy a session's state aside and digest its rows. Raises StateRefused."""
    manifest, placement = copy_aside_in(engine, session, aside)
    rows = rows_of(manifest, placement, min_row_bytes(manifest.num_bytes))
    held, seen = held_in(aside, rows), look_at(aside, rows)
    begin = clock()
    seen.changes()
    took_s = max(clock() - begin, 1e-9)
    return Look(manifest=manifest, placement=placement, rows=rows, held=held, took_s=took_s)


def _brought_back(before: Look, after: Look, aside: AnyArena) -> None:
    """Find and move what the block has moved, as rounds do: what a device has to load for that it loads now.

    The first time waits for all work of a device, and later some of that may wait for a move. The copy that lies aside
    is not used any more.
    """
    if np.array_equal(before.rows.offsets, after.rows.offsets):
        found = reconcile(after.held, after.rows, before.held.digests, aside.size)
        after.held.unlike(before.held.digests)
        move_in(aside, found.moves)


def compared(
    before: Look,
    after: Look,
    said: Said,
    ended_at: float,
    followed: Sequence[str] = (),
    follow_s: float | None = None,
) -> dict[str, float]:
    """Return what a block has changed. Empty where the state lies elsewhere after it, row for row."""
    if not np.array_equal(before.rows.offsets, after.rows.offsets):
        return {}
    lengths, differs = after.rows.lengths, before.held.digests != after.held.digests
    new = differs & before.held.lacks(after.held.digests)
    found = {
        "row_bytes_per_s": after.rows.num_bytes / after.took_s,
        "dirty_bytes": float(lengths[differs].sum()),
        "new_bytes": float(lengths[new].sum()),
    }
    new_lengths = np.where(new, lengths, 0)
    if follow_s is not None:
        found |= {"followed_bytes": _under(after, new_lengths, followed), "follow_s": follow_s}
    return found | (_final(after, new_lengths, said, ended_at) if said else {})


def _further(before: Look, after: Look, later: Look) -> dict[str, float]:
    """Return by how much more two blocks have changed than one. Empty where the state lies elsewhere by then."""
    if not np.array_equal(before.rows.offsets, later.rows.offsets):
        return {}
    one, two = (int(each.rows.lengths[before.held.digests != each.held.digests].sum()) for each in (after, later))
    return {"further_bytes": float(max(0, two - one))}


def _under(after: Look, new_lengths: Any, paths: Sequence[str]) -> float:
    """Return the new bytes in the leaves under some paths."""
    found = (final_rows(after.rows, after.manifest, after.placement, path) for path in paths)
    return float(sum(int(new_lengths[which].sum()) for leaves in found for which in leaves))


def _final(after: Look, new_lengths: Any, said: Said, ended_at: float) -> dict[str, float]:
    """Return the new bytes that were called final, those of the last leaf of them, and the time that they had."""
    leaves = [which for path, _ in said for which in final_rows(after.rows, after.manifest, after.placement, path)]
    sizes = [float(new_lengths[which].sum()) for which in leaves]
    return {
        "final_bytes": sum(sizes),
        "final_last_bytes": sizes[-1] if sizes else 0.0,
        "final_window_s": ended_at - said[0][1],
    }
