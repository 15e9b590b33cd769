"""What is said of a run that broke an invariant: all that somebody needs to see it happen again."""

import platform
import re

from tests.simulation.case import Case, Result

NUM_LINES = 40


def command_of(case: Case) -> str:
    """Return the command that runs a case again."""
    parts = [f"python -m tests.simulation --seed {case.seed}"]
    if case.mask:
        parts.append(f"--mask {','.join(sorted(case.mask))}")
    if case.horizon_s is not None:
        parts.append(f"--horizon {case.horizon_s:g}")
    if case.fifo:
        parts.append("--fifo")
    return " ".join(parts)


def report(failing: Result, shrunk: Result) -> str:
    """Return the text."""
    order = "in any order" if shrunk.case.fifo else "in the order that the seed draws"
    about = tuple(sorted(frozenset(re.findall(r"\bs-\d+", shrunk.broken))))
    lines = [line for line in shrunk.lines if not about or any(name in line for name in about) or "node=" in line]
    return "\n".join(
        [
            f"seed {failing.case.seed}: {failing.broken}",
            f"  Python {platform.python_version()}, trace {failing.hash}, {len(failing.fired)} faults",
            f"  run again: PYTHONPATH=src {command_of(failing.case)}",
            f"  made smaller: {len(shrunk.fired)} faults, {shrunk.horizon_s:g} s, {order}: {', '.join(shrunk.fired)}",
            f"  run that again: PYTHONPATH=src {command_of(shrunk.case)}",
            *(f"  | {line.splitlines()[0]}" for line in lines[-NUM_LINES:]),
        ]
    )
