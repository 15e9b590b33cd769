"""Seeds that once failed, kept with their causes: they run with every suite."""

from dataclasses import dataclass
from pathlib import Path

from tests.simulation.case import FOLLOWING, MEDDLING, Case
from tests.simulation.hashing import HASHING

ALONE = frozenset({"second_tab", "stranger", "both_killed"})
"""Kinds of faults that came later than many a kept seed: without them it does what it did."""
LATER = {"d": FOLLOWING, "m": MEDDLING}
"""The same, of what only some seeds have at all: by the letter, after the #, that says that a seed had it."""
FILE = Path(__file__).with_name("seeds.txt")


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """One line of the file."""

    case: Case
    cause: str


def kept_seeds() -> tuple[Kept, ...]:
    """Read the file, one a line: a seed, what its case has besides (the file says how), and the cause."""
    lines = [line for line in FILE.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]
    return tuple(_kept(*line.split(maxsplit=1)) for line in lines)


def _kept(seed: str, cause: str) -> Kept:
    before, beside, had = seed.partition("#")
    case, _, protect = before.removesuffix("!").partition("/")
    number, _, horizon = case.partition("@")
    mask = ALONE if before.endswith("!") else frozenset[str]()
    mask |= frozenset() if beside else {HASHING}
    mask |= {kind for letter, kind in LATER.items() if letter not in had}
    return Kept(
        case=Case(
            seed=int(number),
            horizon_s=float(horizon) if horizon else None,
            mask=mask,
            protect_every=int(protect) if protect else None,
        ),
        cause=cause,
    )
