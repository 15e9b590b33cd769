"""Makes a failing run smaller: fewer faults, less time, no drawn order. A heuristic: a masked fault moves others."""

from collections.abc import Callable
from dataclasses import replace

from tests.simulation.case import Case, Result
from tests.simulation.run import simulate

HORIZONS_S = (1.0, 2.0, 3.0, 4.0)


def shrink(failing: Result, run: Callable[[Case], Result] = simulate) -> Result:
    """Return a run that breaks the same invariant with as little as could be found."""
    best = _fewer_faults(failing, run)
    for horizon_s in (seconds for seconds in HORIZONS_S if seconds < best.horizon_s):
        shorter = run(replace(best.case, horizon_s=horizon_s))
        if _same(shorter, failing):
            best = _fewer_faults(shorter, run)
            break
    plain = run(replace(best.case, fifo=True))
    return plain if _same(plain, failing) else best


def _fewer_faults(failing: Result, run: Callable[[Case], Result]) -> Result:
    """Mask faults by halves, then by ever smaller parts, down to one by one."""
    best, size = failing, max(1, len(failing.fired) // 2)
    while True:
        masked = _mask_some(best, size, run)
        if masked is not None:
            best, size = masked, max(1, min(size, len(masked.fired)))
        elif size == 1:
            return best
        else:
            size //= 2


def _mask_some(failing: Result, size: int, run: Callable[[Case], Result]) -> Result | None:
    """Return a run that fails alike without some ``size`` of its faults; None where every one of them is needed."""
    for start in range(0, len(failing.fired), size):
        part = frozenset(failing.fired[start : start + size])
        tried = run(replace(failing.case, mask=failing.case.mask | part))
        if _same(tried, failing) and len(tried.fired) < len(failing.fired):
            return tried
    return None


def _same(one: Result, other: Result) -> bool:
    """Whether two runs broke an invariant in the same words, names and numbers aside."""
    return bool(one.broken) and _words(one.broken) == _words(other.broken)


def _words(sentence: str) -> list[str]:
    return [word for word in sentence.splitlines()[0].split() if word.isalpha()]
