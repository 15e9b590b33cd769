"""The edge that sees whether a process of this machine does anything: how much it has computed, and had read."""

from pathlib import Path

SESSION = 3
"""Its place after the command's name in /proc/PID/stat; and those of page faults that waited for a disk, and of CPU."""
SPENT = (9, 10, 11, 12, 13, 14)


def effort_of(session: int) -> int:
    """Return what all processes of a session have spent by now, in no unit: what does not change does nothing.

    A worker's process begins a session of its own, and what it starts, a compiler say, is in that too.
    """
    return sum(_spent(stat, session) for stat in Path("/proc").glob("[0-9]*/stat"))


def _spent(stat: Path, session: int) -> int:
    try:
        fields = stat.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return 0  # it has ended meanwhile
    return sum(int(fields[place]) for place in SPENT) if int(fields[SESSION]) == session else 0
