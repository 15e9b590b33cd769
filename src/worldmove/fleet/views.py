"""What the controller shows of its workers and sessions: plain values, for the page, HTTP and the command line."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from worldmove.worker.messages import Copy


class WorkerState(Enum):
    """Where a worker's process stands.

    AWAITED: an earlier server started it, it lives, and it has not yet said what it holds. SUSPECTED: it does not
    answer, which proves nothing. LEAVING: it was told to end, and its sessions are moved away.
    """

    STARTING = "starting"
    AWAITED = "awaited"
    READY = "ready"
    SUSPECTED = "suspected"
    LEAVING = "leaving"
    GONE = "gone"


class SessionState(Enum):
    """Where a session stands.

    IN_DOUBT: it waits, for an attempt that is open with nobody conducting it, for a copy to take over from an
    owner that is dead or does not answer, or for that owner: to answer again, or, after a restart of the server, to
    report. LEDGER_BEHIND: a worker has it in an epoch that the ledger knows nothing of (``fleet.behind``), and nobody
    acts on it. LOST: no copy is left.
    """

    OPENING = "opening"
    LIVE = "live"
    MOVING = "moving"
    IN_DOUBT = "in_doubt"
    LEDGER_BEHIND = "ledger_behind"
    LOST = "lost"


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerView:
    """One worker, as it last reported itself."""

    name: str
    pid: int | None
    """Its living process's id; None where there is none, or none is known yet."""
    incarnation: int
    state: WorkerState
    num_slots: int
    slots_free: int
    slots_quarantined: int
    arena_bytes: int
    copies: tuple[Copy, ...] = ()
    """Every copy that it holds, with its phase: owner, shadow, retired, throw-away."""
    environment: Mapping[str, str] = field(default_factory=dict)
    rates: Mapping[str, float] = field(default_factory=dict)
    """Measured before its hello: hash_bytes_per_s, block_s, and NAME_bytes_per_s of each path."""
    is_stuck: bool = False
    """Whether its engine does not return, as far as that shows (``fleet.worker_table``)."""
    num_lines_dropped: int = 0
    """Of its log, since it began."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionView:
    """One session, as the ledger's row and its owner's reports say."""

    name: str
    state: SessionState
    owner: str
    incarnation: int
    epoch: int
    attempt: str | None
    """The move under way, if any."""
    holders: tuple[str, ...]
    """Workers that hold a copy which still needs this session's inputs; the owner is the first."""
    seed: int
    num_bytes: int
    """Of its state, as it was opened or, newer, at its last move."""
    num_leaves: int
    """The same; or, newer, as its owner has last accounted for it."""
    protect_every: int = 0
    """After how many blocks a snapshot of it is kept elsewhere; 0: never."""
    keeper: str | None = None
    """Who keeps its newest snapshot; None where nobody does."""
    kept_block: int | None = None
    """The boundary of that."""
    kept_age_blocks: int | None = None
    """How many blocks were shown since; None where nobody keeps one. After a restart, as the workers say."""
    unprotected_why: str = ""
    """Why the death of one worker may lose it, though it is to be protected; empty where none does."""
    not_renewed_why: str = ""
    """Why a newer snapshot, which is due, is not kept."""
    throwaway: bool
    """Begun from a picture, for 'Recover without state': never in the ledger, never moved."""
