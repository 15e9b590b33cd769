"""What tells a process from a later one that was given the same number."""

from pathlib import Path

START_TIME = 19
"""Its place after the command's name in /proc/PID/stat: field 22, clock ticks since the machine's start."""


def birth_of(pid: int) -> str | None:
    """Return a process's birth, different for every process that this machine ever ran; None where there is none."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return None
    return f"{boot}:{stat.rpartition(')')[2].split()[START_TIME]}"
