"""How fast a device digests its memory: what admission reckons with where sessions lie there."""

from collections.abc import Callable

from worldmove.state import wmf1
from worldmove.state.device_arena import DeviceArena
from worldmove.state.groups import GROUP_BYTES
from worldmove.state.memory import MemoryKit
from worldmove.units import MIB

SAMPLE_BYTES = 64 * MIB


def device_rates(kit: MemoryKit, clock: Callable[[], float]) -> dict[str, float]:
    """Digest a sample twice; the second time counts, when everything is compiled. Raises ArenaFull."""
    arena = DeviceArena(SAMPLE_BYTES, "worldmove-sample", kit)
    plan = kit.plan([[arena.part(at, GROUP_BYTES)] for at in range(0, SAMPLE_BYTES, GROUP_BYTES)])
    try:
        kit.fingerprints(plan, wmf1.STATE_KEY)
        begin = clock()
        kit.fingerprints(plan, wmf1.STATE_KEY)
        return {"hash_bytes_per_s": SAMPLE_BYTES / max(clock() - begin, 1e-9)}
    finally:
        arena.close()
