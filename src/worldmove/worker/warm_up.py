"""What a worker does before its hello: warm the engine up, step the canary, measure its own rates.

The canary is one block of a scratch session from a fixed seed. Two workers whose canaries differ would not
play an equal state on equally, whatever their other fields say.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from worldmove.engine.base import Engine
from worldmove.engine.facts import facts_of
from worldmove.errors import ArenaFull, EngineFailed, NoMemory, StateRefused
from worldmove.state.arena import AnyArena, new_arena
from worldmove.state.capture import Capture
from worldmove.state.digest import Pass
from worldmove.state.environment import NO_FIELDS, collect
from worldmove.state.kits import kit_of
from worldmove.state.layout import Layout
from worldmove.state.shortage import shortage_told
from worldmove.units import MIB, PAGE_BYTES, round_up
from worldmove.worker.block_made import frames_of
from worldmove.worker.device_rates import device_rates
from worldmove.worker.foreign import engine_trusted
from worldmove.worker.freezing import freeze_in, layout_in
from worldmove.worker.habits import habits
from worldmove.worker.installing import Built, install_landing, install_tree, open_in, rehearse_in
from worldmove.worker.states import DIGESTER, captured_of, copy_aside_in, digest_of

CANARY_SEED = 20_070_607
SAMPLE_BYTES = 32 * MIB
NONCE_BYTES, DIGEST_BYTES = 32, 32
ROOM = 1.25
"""An arena's size against what a young session needs: leaves may grow or appear."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmUp:
    """What the first seconds of a worker found out."""

    environment: dict[str, str]
    rates: dict[str, float]
    arena_bytes: int
    """What one slot needs."""


def warm_up(engine: Engine[Any], clock: Callable[[], float]) -> WarmUp:
    """Make ready. Runs in the thread that will compute, so that its settings are the ones that are compared.

    Raises EngineFailed, NoMemory.
    """
    with engine_trusted("warm up"), shortage_told():
        return _warmed_up(engine, clock)


def _warmed_up(engine: Engine[Any], clock: Callable[[], float]) -> WarmUp:
    engine.warm_up()
    session = engine.open(CANARY_SEED)
    arena_bytes = _needed(engine, session)
    arena = new_arena(arena_bytes, "worldmove-canary", kit_of(engine.spec.device))
    session, _ = open_in(engine, session, arena)
    begin = clock()
    block = engine.step(session, ())
    block_s = clock() - begin
    spec = engine.spec
    fields = {
        **facts_of(spec),
        "canary.frames": hashlib.sha256(frames_of(block, spec).tobytes()).hexdigest(),
        "canary.state": digest_of(engine, session),
    }
    kit = kit_of(spec.device)
    beside = _beside(engine, session, arena_bytes, clock)
    del session
    arena.close()
    environment = collect(fields, kit.fields if kit else NO_FIELDS)
    return WarmUp(
        environment={name: str(value) for name, value in environment.fields.items()},
        rates={
            "block_s": block_s,
            "period_s": spec.period_s,
            **(_hash_rate(clock) if kit is None else device_rates(kit, clock)),
            **beside,
        },
        arena_bytes=arena_bytes,
    )


def _needed(engine: Engine[Any], session: Any) -> int:
    engine.quiesce(session)
    manifest = captured_of(engine, session).manifest
    return round_up(int(Layout.of(manifest).arena_bytes * ROOM), PAGE_BYTES)


def _beside(engine: Engine[Any], session: Any, arena_bytes: int, clock: Callable[[], float]) -> dict[str, float]:
    """Copy the canary's state aside twice, as a snapshot is, and look at how a block rewrites it.

    The second copy counts, when its pages are there. Where there is no room beside it, nothing is known of all this.
    """
    try:
        aside = new_arena(arena_bytes, "worldmove-aside", kit_of(engine.spec.device))
    except (ArenaFull, NoMemory):
        return {}
    try:
        copy_aside_in(engine, session, aside)
        begin = clock()
        manifest, _ = copy_aside_in(engine, session, aside)
        copying = _rate("copy_bytes_per_s", manifest.num_bytes, max(clock() - begin, 1e-9))
        found = copying | habits(engine, session, aside, clock)
        return found | _move(engine, session, aside, clock)
    finally:
        aside.close()


def _move(engine: Engine[Any], session: Any, aside: AnyArena, clock: Callable[[], float]) -> dict[str, float]:
    """Freeze the canary after a block, install its copy and digest that, as the two ends of a move do.

    Twice, and the second time counts, when everything is compiled and made. Empty where it cannot be.
    """
    found: dict[str, float] = {}
    try:
        for _ in range(2):
            found = _moved(engine, session, aside, clock)
    except (ArenaFull, EngineFailed, NoMemory, StateRefused):
        return {}
    return found


def _moved(engine: Engine[Any], session: Any, aside: AnyArena, clock: Callable[[], float]) -> dict[str, float]:
    layout, known = layout_in(engine, session, aside)
    rehearsal = rehearse_in(engine, layout, aside)
    engine.step(session, ())
    begin = clock()
    still = freeze_in(engine, session, aside, known, is_pulled=False, begin=_pass)
    frozen_at = clock()
    if still.first is not None:
        still.first.joined()
    manifest, placement = copy_aside_in(engine, session, aside)
    copied_at = clock()
    arrived = install_landing(engine, manifest, placement, aside, rehearsal, _pass)
    if isinstance(arrived, Built):
        _, captured = install_tree(engine, arrived)
        begun = _pass(captured)
    else:
        _, captured, begun = arrived
    installed_at = clock()
    begun.joined()
    again_at = clock()
    _pass(captured).joined()
    took_s = max(clock() - again_at, 1e-9)
    found = {"freeze_s": frozen_at - begin, "install_s": installed_at - copied_at}
    return found | _rate("hash_bytes_per_s", captured.num_bytes, took_s)


def _rate(name: str, num_bytes: int, took_s: float) -> dict[str, float]:
    """Return what was measured; nothing of a state without bytes."""
    return {name: num_bytes / took_s} if num_bytes else {}


def _pass(captured: Capture) -> Pass:
    """Begin a pass, as a move does."""
    return Pass(captured, DIGESTER, bytes(NONCE_BYTES), bytes(DIGEST_BYTES))


def _hash_rate(clock: Callable[[], float]) -> dict[str, float]:
    """Hash a sample twice; the second time counts, when its pages are there."""
    sample = np.ones(SAMPLE_BYTES, dtype=np.uint8)
    DIGESTER.digest(sample.data, 0)
    begin = clock()
    DIGESTER.digest(sample.data, 0)
    return {"hash_bytes_per_s": SAMPLE_BYTES / max(clock() - begin, 1e-9)}
