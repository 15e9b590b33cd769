"""The hashes of some seeds' traces, on file: every Python that runs them has to come to the same ones.

python -m tests.simulation.hashes       write the file anew: after a change of the program, never for another Python
"""

from pathlib import Path

from tests.simulation.case import Case
from tests.simulation.run import simulate

SEEDS = range(9000, 9040)
HORIZON_S = 1.0
FILE = Path(__file__).with_name("hashes.txt")
HEAD = "# Of each seed's trace. `python -m tests.simulation.hashes` writes this file.\n"


def hashes() -> str:
    """Run the seeds; return what the file has to say."""
    lines = [f"{seed} {simulate(Case(seed=seed, horizon_s=HORIZON_S)).hash}\n" for seed in SEEDS]
    return HEAD + "".join(lines)


def differing(found: str) -> list[str]:
    """Return the lines that are not those of the file."""
    filed = FILE.read_text(encoding="ascii").splitlines()
    return [line for line in found.splitlines() if line not in filed]


if __name__ == "__main__":
    FILE.write_text(hashes(), encoding="ascii")
