"""What one run is given, and what came of it."""

import random
from dataclasses import dataclass

FOLLOWING = "following"
"""What a mask calls worlds with a decoder: a kept seed of before there were any does what it did without it."""
FOLLOWED = 0.08
"""The share of the seeds whose worlds have one."""
MEDDLING = "meddling"
"""What a mask calls clients that meddle, for the same reason."""
MEDDLED = 0.12
"""The share of the seeds that have such."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What one run is given. The seed alone decides, unless more is said."""

    seed: int
    mask: frozenset[str] = frozenset()
    horizon_s: float | None = None
    fifo: bool = False
    sql: bool | None = None
    protect_every: int | None = None
    decodes: bool | None = None
    meddles: bool | None = None
    pairs: bool = False
    """Whether the weather is clear, and pairs of things that seldom meet are tried instead."""
    num_slots: int | None = None
    """Of each worker; None: so many that the sessions of a run and their snapshots never fill one."""
    forgets: str = ""
    """A leaf that the engine does not give away (a planted fault)."""


@dataclass(slots=True, kw_only=True)
class Result:
    """What came of it."""

    case: Case
    broken: str
    """The invariant that did not hold; empty where all did."""
    hash: str
    lines: list[str]
    fired: list[str]
    counts: dict[str, int]
    virtual_s: float
    horizon_s: float
    turns: int


@dataclass(slots=True, kw_only=True)
class Plan:
    """What a seed draws besides its weather."""

    horizon_s: float
    num_sessions: int
    sql: bool
    protect_every: int = 0
    """After how many blocks another worker keeps a snapshot of each session; 0: never."""
    decodes: bool = False
    """Whether the worlds have a decoder, which moves may follow."""
    meddles: bool = False
    """Whether there are clients that meddle with sessions, and visitors that open some."""
    pairs: bool = False
    num_slots: int | None = None

    @classmethod
    def of(cls, case: Case) -> "Plan":
        rng = random.Random(f"plan:{case.seed}")
        horizon_s = rng.choice((1.0, 1.5, 2.0, 2.0, 3.0, 4.0, 6.0))
        num_sessions = rng.choice((1, 1, 1, 2))
        sql = rng.random() < 0.1
        protect_every = rng.choice((0, 0, 0, 0, 0, 0, 2, 3, 4, 8))
        decodes, meddles = _has(case, FOLLOWING, FOLLOWED), _has(case, MEDDLING, MEDDLED)
        return cls(
            horizon_s=horizon_s if case.horizon_s is None else case.horizon_s,
            num_sessions=num_sessions,
            sql=sql if case.sql is None else case.sql,
            protect_every=protect_every if case.protect_every is None else case.protect_every,
            decodes=decodes if case.decodes is None else case.decodes,
            meddles=meddles if case.meddles is None else case.meddles,
            pairs=case.pairs,
            num_slots=case.num_slots,
        )


def _has(case: Case, kind: str, share: float) -> bool:
    """Whether a seed has what only some have."""
    return kind not in case.mask and random.Random(f"{kind}:{case.seed}").random() < share
