"""``python -m tests JOBS [PYTEST_ARGS...]``: every test, on all cores.

What plays worlds in real time (the marker ``alone``) waits more than it computes: it runs one test at a time, beside
the others, which run JOBS at a time. It is told of when both have ended.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence

NOTHING_SELECTED = 5
INTERRUPTED = 130
PYTEST = (sys.executable, "-m", "pytest")
YIELDING = ("nice", "-n", "5")
"""What computes lets what plays in real time go first: a world has its period, whatever else the machine does."""


def main(jobs: str, arguments: Sequence[str]) -> int:
    """Run both parts and return 0 if neither failed. One part's failure does not hide the other's."""
    others = ("-n", jobs, "-m", "not alone", *arguments)
    # A cache each: who ends last would otherwise forget what failed in the other.
    # Servers that start twice take a minute where five others want each core: only what hangs takes five.
    alone = ("-m", "alone", "-o", "cache_dir=.pytest_cache/alone", "--timeout=300", *arguments)
    # A hundred processes are begun: where none may keep what it compiled, each compiles the package anew.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    with (
        tempfile.TemporaryFile() as told,
        subprocess.Popen([*YIELDING, *PYTEST, *others], env=environment) as computing,
        subprocess.Popen([*PYTEST, *alone], env=environment, stdout=told, stderr=subprocess.STDOUT) as playing,
    ):
        try:
            statuses = (computing.wait(), playing.wait())
        except KeyboardInterrupt:  # both have heard it too
            statuses = (INTERRUPTED, INTERRUPTED)
            playing.wait()
        told.seek(0)
        sys.stdout.buffer.write(told.read())
    return next((status for status in statuses if status not in (0, NOTHING_SELECTED)), 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
