"""What admission goes by: measurements of a session, its two workers and the path between them. Pure.

Each is None where nothing was measured. A strategy that needs it is then rejected, and the others are not: a guess
would be paid for by a player.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

FREEZE_S = 0.004
"""From a block's end to its resolved state, and the messages up to the first byte; until a move has measured it."""
INSTALL_S = 0.004
"""From the last byte to the verifying pass; until a move has measured it."""
COMMIT_S = 0.006
"""From the later of the two proofs to the permission to compute; until a move has measured it."""

TO_START_WITH = "to start with: no move has measured it yet"

WORDS: Mapping[str, str] = MappingProxyType(
    {
        "source_hash_rate": "the source's hash rate",
        "path_rate": "the rate of the path between the two workers",
        "destination_hash_rate": "the destination's hash rate",
        "horizon_s": "the time until the next block is due",
        "row_rate": "the rate at which rows are digested",
        "copy_rate": "the rate at which memory is copied",
        "dirty_bytes": "the bytes that a block leaves changed",
        "new_bytes": "the bytes of a block that lay nowhere before it",
        "final": "what the engine calls final before its block ends",
        "period_s": "the time between two blocks",
        "block_s": "the time of a block at the destination",
        "utilisation": "how busy the destination is with other worlds",
    }
)
"""Each field that may be unknown, as a sentence names it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fixed:
    """What of a pause is reckoned by no rate, in seconds: each the median of what the last moves took there.

    They are stretches of one way, from the freeze to the permission, so none counts twice what runs beside it.
    """

    freeze_s: float = FREEZE_S
    """Until the source has resolved what it froze."""
    boundary_s: float = 0.0
    """From there until the destination begins with it. Below zero: it begins with what was foretold, before that."""
    reconcile_s: float | None = None
    """What a destination that holds some of it takes to know what is to be pulled; None: no move has measured it."""
    land_s: float = 0.0
    """Of the landing, beside its bytes."""
    install_s: float = INSTALL_S
    """From the last byte to the verifying pass."""
    verify_s: float = 0.0
    """Of the proving, beside the passes."""
    commit_s: float = COMMIT_S
    halt_s: float | None = None
    """From the freeze until a follower stands still. Below zero: before it; None: no replay has measured it."""
    left_bytes: int = 0
    """What was left for the boundary however long the session had stood still before it."""
    is_left_known: bool = False
    """Whether that is of moves by this very strategy over this very path: then it is what will be left."""
    rest_s: float = 0.0
    """How long before its freeze a session stood still while what differs was brought over."""
    is_rested: bool = False
    """Whether that was always long enough: all that could come over had, before the freeze."""
    num_bytes: int = 0
    """Of the states that they are of; 0: of none."""
    spread_s: float = 0.0
    """By how much one in ten of these moves took longer than their median, whatever its bytes."""
    num_moves: int = 0
    """How many moves they are of; 0: none yet, and these are the values to start with."""
    is_measured: bool = False
    """Whether values to start with are such that the two workers have measured before their first move."""
    of: str = TO_START_WITH
    """Whose they are, in a few words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Final:
    """What an engine calls final before its block ends, and so may travel while the rest is computed."""

    num_bytes: int
    """New bytes of a block that it calls final in time."""
    window_s: float
    """From the first of them to the boundary."""
    last_bytes: int
    """Of the leaf that it calls final last: it has no time before the boundary that could be counted on."""
    followed_bytes: int = 0
    """New bytes that the destination computes itself, and that travel no more (a decoder's cache)."""
    follow_s: float = 0.0
    """What that takes there for a block."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One session, two workers, one path. Rates in bytes per second."""

    num_bytes: int
    source_hash_rate: float | None
    path_rate: float | None
    """What was measured of this path between these two workers: never the memory's, nor a nominal one."""
    destination_hash_rate: float | None
    horizon_s: float | None
    """Time from a block's end to the next block's due time, less its compute time. Infinite where nobody waits."""
    row_rate: float | None = None
    """Of digesting a state row by row."""
    copy_rate: float | None = None
    """Of copying within one worker's memory."""
    move_rate: float | None = None
    """Of moving rows to where they belong; None: no move has measured it, and it is reckoned as a copy."""
    dirty_bytes: int | None = None
    """What differs, place by place, between two boundaries in a row."""
    new_bytes: int | None = None
    """What of it lay nowhere in the state before."""
    further_bytes: int | None = None
    """By how much more differs two boundaries on than one. None: not known, as if no place were written twice."""
    final: Final | None = None
    period_s: float | None = None
    block_s: float | None = None
    """What a block takes of the destination's time in the long run, its turn at the engine included.

    Never of one that was computed beside another worker's.
    """
    utilisation: float | None = None
    """The share of its time that no further session can have: what its own take, and what goes by between them."""
    patience_s: float = float("inf")
    """How long all that comes before the freeze may take."""
    still_s: float = float("inf")
    """How long the ends hold a session still before they give up, though nobody waits for its next block."""
    num_slots_free: int | None = None
    """At the destination. None: its own answer to the offer decides."""
    is_kept_there: bool = False
    """Whether one of those that are taken there has a snapshot of this very session."""
    num_source_slots_free: int | None = None
    """At the source, for a snapshot. None: its own answer decides. Retired and kept copies are no free slots."""
    environment_differs: tuple[str, ...] = ()
    """The fields in which the two ends differ, each as a sentence."""
    same_worker: bool = False
    ledger_healthy: bool = True
    fixed: Fixed = field(default_factory=Fixed)

    def rate(self, name: str) -> float:
        """Return a measurement that was found to be there (``unknown``)."""
        value: float | None = getattr(self, name)
        if value is None:
            raise ValueError(f"{name} was not measured")
        return value


def unknown(measured: Measured, needed: Sequence[str]) -> tuple[str, ...]:
    """Return those of the needed measurements that are not there, in words."""
    return tuple(WORDS[name] for name in needed if getattr(measured, name) is None)
