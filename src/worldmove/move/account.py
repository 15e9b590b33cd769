"""Where a pause went: cut from the report of a move into stretches that follow each other and overlap nowhere. Pure.

Both ends' phases overlap. What counts is when the way from the freeze to the permission came past each of its stations:

    frozen      the source has resolved what it froze
    rowed       ... and digested its rows
    heard       the destination begins with what the boundary says
    found       it knows what is to be pulled, and begins to
    landed      all of that is there
    installed   the pass over what is installed begins; of a replay: the follower stands still
    proven      both ends' proofs are compared, and the ledger is asked
    allowed     the destination may compute

A station that was passed before the one in front of it costs nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum

from worldmove.move.report import MoveReport, PhaseTime


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """When one move passed each station, seconds from its freeze; as its phases say, so one may lie before another."""

    frozen: float
    rowed: float
    heard: float
    found: float
    landed: float
    installed: float
    proven: float
    allowed: float
    moves_s: float = 0.0
    """How long rows were moved between ``heard`` and ``found``."""
    rest_s: float = 0.0
    """How long before the freeze it had begun to bring over what differs, the session standing still there.

    Boundaries before that, at which it stood and its next list came first, are none of it.
    """
    is_rested: bool = False
    """Whether that was over before the freeze."""
    is_replay: bool = False
    has_rows: bool = False
    """Whether the destination held some of it, and found what it had to pull."""


def account_of(report: MoveReport) -> Account | None:
    """Cut one pause; None where its phases do not tell."""
    freeze, verify = _first(report.phases, "freeze"), _first(report.phases, "verify")
    land, halt = _all(report.phases, "land"), _first(report.phases, "halt")
    if report.pause_s is None or freeze is None or verify is None or not (land or halt):
        return None
    zero, allowed = freeze.start_s, report.pause_s
    frozen, asked = freeze.end_s - zero, _first(report.phases, "commit")
    proven = allowed if asked is None else asked.start_s - zero
    if asked is None:
        proven = max(phase.end_s for name in ("verify", "wait_proof") for phase in _all(report.phases, name)) - zero
    if not land:
        at = verify.start_s - zero
        return Account(
            frozen=frozen, rowed=frozen, heard=frozen, found=frozen, landed=frozen, installed=at, proven=proven,
            allowed=allowed, is_replay=True,
        )  # fmt: skip
    in_pause = [phase for phase in report.phases if phase.side == "destination" and phase.end_s > zero]
    begun = [phase.start_s - zero for phase in in_pause if phase.name in ("reconcile", "build", "land")]
    moves, rest = _all(report.phases, "moves"), _all(report.phases, "rest")
    return Account(
        frozen=frozen,
        rowed=max([frozen, *(phase.end_s - zero for phase in _all(report.phases, "rows"))]),
        heard=min(begun, default=frozen),
        found=min(phase.start_s for phase in land) - zero,
        landed=max(phase.end_s for phase in land) - zero,
        installed=verify.start_s - zero,
        proven=proven,
        allowed=allowed,
        moves_s=fsum(phase.end_s - phase.start_s for phase in moves),
        rest_s=max(0.0, zero - max(phase.start_s for phase in rest)) if rest else 0.0,
        is_rested=bool(rest) and all(phase.end_s <= zero for phase in rest),
        has_rows=bool(_all(report.phases, "reconcile")),
    )


def _all(phases: Sequence[PhaseTime], name: str) -> list[PhaseTime]:
    return [phase for phase in phases if phase.name == name]


def _first(phases: Sequence[PhaseTime], name: str) -> PhaseTime | None:
    return next(iter(_all(phases, name)), None)
