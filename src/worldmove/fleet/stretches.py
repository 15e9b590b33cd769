"""The parts of a pause that follow no rate, learned from the accounts of the last pauses. Pure.

What is left of each stretch (``move/account.py``) when what grows is taken away as it is reckoned: so what a reckoning
forgets is learned, and not forgotten again. Freeze and commit are the same for every strategy.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median, median_low

from worldmove.fleet.past import NUM_LAST, Route, between, carried, counts
from worldmove.fleet.reports import MoveReport
from worldmove.move.account import Account, account_of
from worldmove.move.measured import Fixed
from worldmove.move.strategy import Strategy

ENOUGH = 3
"""Of fewer moves a median says less than one of those between any two workers."""
SPREAD_FROM, HIGH = 4, 0.9
"""From how many moves on their spread is told, and which quantile of them."""
NEARLY = 0.7
"""A path that carries this share of another is as fast for what it leaves to the boundary."""
WHOLE = (Strategy.BOUNDARY_COPY, Strategy.REPLAY)
"""They leave nothing for the boundary but the state, or nothing at all."""

Accounted = tuple[MoveReport, Account]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """The rates that the next move is reckoned with."""

    source_hash: float
    destination_hash: float
    path: float | None


def fixed(
    route: Route,
    strategy: Strategy,
    reports: Sequence[MoveReport],
    now: float,
    *,
    pace: Pace,
    start: Fixed | None = None,
) -> Fixed:
    """Return the parts that follow no rate, of moves by this strategy between these two; where they are few, any two.

    Where there was none they are those of moves by a strategy whose pause goes the same way; where there was none of
    those either ``start``, with the freeze and the commit of moves by other strategies.
    """
    told = [report for report in reports if counts(report, now)]
    own = _accounts([report for report in told if report.strategy == strategy.value])
    here = [found for found in own if between(route, found[0])]
    parts = here if len(here) >= ENOUGH else own
    if parts:
        return _learned(route, strategy, parts[-NUM_LAST:], pace)
    alike = {each.value for each in strategy.alike}
    parts = _accounts([report for report in told if report.strategy in alike])
    if parts:
        found = _learned(route, strategy, parts[-NUM_LAST:], pace)
        return replace(found, left_bytes=0, of=f"{found.of} by {parts[-1][0].strategy}, whose pause goes the same way")
    start, others = start or Fixed(), _accounts(told)
    if strategy is Strategy.REPLAY:  # nothing of it is on its way in the pause but the proof
        start = replace(start, verify_s=start.boundary_s)
    others = [found for found in others if between(route, found[0])] or others
    if not others:
        return start
    accounts = [account for _, account in others[-NUM_LAST:]]
    frozen = [account.frozen for account in accounts]
    return replace(
        start,
        # What was measured to start with is one more: a worker's very first freeze takes longer than any other.
        freeze_s=median([start.freeze_s, *frozen] if start.is_measured else frozen),
        commit_s=median(account.allowed - account.proven for account in accounts),
        of=f"freeze and commit of {_moves_text(len(accounts))} by other strategies; else {start.of}",
    )


def _accounts(reports: Sequence[MoveReport]) -> list[Accounted]:
    return [(report, account) for report in reports if (account := account_of(report)) is not None]


def _learned(route: Route, strategy: Strategy, parts: Sequence[Accounted], pace: Pace) -> Fixed:
    cut = [_cut(report, account, pace) for report, account in parts]
    # Of a landing over another path it is not known what of it were its bytes.
    landed = [part.land_s for (told, _), part in zip(parts, cut, strict=True) if told.transport == route.transport]
    reconciled = [part.reconcile_s for part in cut if part.reconcile_s is not None]
    halted = [part.halt_s for part in cut if part.halt_s is not None]
    own = [found for found in parts if (found[0].transport, found[0].strategy) == (route.transport, strategy.value)]
    is_left_known = bool(own) and strategy not in WHOLE
    return Fixed(
        freeze_s=median(part.freeze_s for part in cut),
        boundary_s=median(part.boundary_s for part in cut),
        reconcile_s=median(reconciled) if reconciled else None,
        land_s=median(landed) if landed else 0.0,
        install_s=median(part.install_s for part in cut),
        verify_s=median(part.verify_s for part in cut),
        commit_s=median(part.commit_s for part in cut),
        halt_s=median(halted) if halted else None,
        left_bytes=0 if strategy in WHOLE else _left(own or parts, pace),
        is_left_known=is_left_known,
        rest_s=_rest(cut),
        is_rested=all(part.is_rested for part in cut),
        num_bytes=median_low([report.num_bytes for report, _ in parts]),
        spread_s=_spread([_all_of(part) for part in cut]),
        num_moves=len(cut),
        of=f"median of {_moves_text(len(cut))}",
    )


def _cut(report: MoveReport, account: Account, pace: Pace) -> Fixed:
    """Take away of one pause what grows, as it is reckoned."""
    here_s, there_s = report.num_bytes / pace.source_hash, report.num_bytes / pace.destination_hash
    frozen, landed, installed = account.frozen, account.landed, account.installed
    commit_s = account.allowed - account.proven
    if account.is_replay:
        grown = max(frozen + 2 * here_s, installed + there_s)
        verify_s = max(0.0, account.proven - grown)
        return Fixed(freeze_s=frozen, install_s=0.0, verify_s=verify_s, commit_s=commit_s, halt_s=installed)
    wire_s = report.pulled_bytes / pace.path if pace.path else 0.0
    grown = max(installed + there_s, max(landed, frozen + here_s) + here_s)
    found_s = max(0.0, account.found - account.heard - account.moves_s)
    return Fixed(
        freeze_s=frozen,
        boundary_s=account.heard - account.rowed,
        reconcile_s=found_s if account.has_rows else None,
        land_s=max(0.0, landed - account.found - wire_s),
        install_s=max(0.0, installed - landed),
        verify_s=max(0.0, account.proven - grown),
        commit_s=commit_s,
        rest_s=account.rest_s,
        is_rested=account.is_rested,
    )


def _rest(cut: Sequence[Fixed]) -> float:
    """Return how long a session stands still before its freeze: of rests that were cut short, where there are any.

    One that was long enough for what differed says only how long that took to come.
    """
    return median([part.rest_s for part in cut if not part.is_rested] or [part.rest_s for part in cut])


def _all_of(part: Fixed) -> float:
    return part.freeze_s + part.boundary_s + (part.reconcile_s or 0.0) + part.install_s + part.verify_s + part.commit_s


def _spread(sums: Sequence[float]) -> float:
    """Return by how much one in ten is longer than the median; nothing is said of a few."""
    if len(sums) < SPREAD_FROM:
        return 0.0
    return max(0.0, sorted(sums)[min(len(sums) - 1, int(HIGH * len(sums)))] - median(sums))


def _left(parts: Sequence[Accounted], pace: Pace) -> int:
    """Return what was left for the boundary of those moves whose path was no slower than this one, if there are any."""
    rates = [(report.pulled_bytes, found[1] if (found := carried(report)) else None) for report, _ in parts]
    as_fast = [left for left, rate in rates if pace.path is None or rate is None or rate >= NEARLY * pace.path]
    return median_low(as_fast or [left for left, _ in rates])


def _moves_text(count: int) -> str:
    return f"{count} move{'' if count == 1 else 's'}"
