"""Both ends of a protected session's move fall silent at once: when does its keeper's copy go on, and who is told what?

``python -m bench.silent``. Real processes with the waits that are shipped; SIGSTOP for those that are to be silent, or
SIGKILL for the one where that is said. Each case has a server and three workers of its own, and the world is played
over the play wire. Times run from the last signal. At the end all are woken, and the world must be one that nobody
has hurt.
"""

import argparse
import asyncio
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bench.numbers import spread
from bench.record import Recorder, parser
from tests.faults.house import house_of, quiet
from tests.faults.nursery import ENGINE, Nursery, nursery_in
from tests.faults.points import Action
from tests.faults.silent import DESTINATION, SOURCE, Found, Silence, silenced
from worldmove.errors import UserError
from worldmove.fleet.config import FleetConfig
from worldmove.move.strategy import Strategy

CASES: Mapping[str, Silence] = {
    "source alone, frozen": Silence(first=SOURCE, point="sent: Boundary"),
    "source alone, in doubt": Silence(first=SOURCE, point="sent: Proof"),
    "both, asked to prepare": Silence(first=SOURCE, point="heard: Prepare", others=(DESTINATION,)),
    "both, offered": Silence(first=DESTINATION, point="heard: Offer", others=(SOURCE,)),
    "both, frozen": Silence(first=SOURCE, point="sent: Boundary", others=(DESTINATION,)),
    "both, landing": Silence(first=DESTINATION, point="at: land", others=(SOURCE,)),
    "both, proof is there": Silence(first=DESTINATION, point="heard: Proof", others=(SOURCE,)),
    "both, about to commit": Silence(first=DESTINATION, point="at: commit", others=(SOURCE,)),
    "both, commit was asked": Silence(first=DESTINATION, point="sent: CommitAttempt", others=(SOURCE,)),
    "both, granted": Silence(first=DESTINATION, point="heard: Yours", others=(SOURCE,)),
    "both, first block computed": Silence(first=DESTINATION, point="engine: in mid-step", others=(SOURCE,)),
    "both, first block sent": Silence(first=DESTINATION, point="sent: BlockDone", others=(SOURCE,)),
    "both, fetching a snapshot": Silence(
        first=DESTINATION, point="at: fetch", others=(SOURCE,), strategy=Strategy.REPLAY
    ),
    "both, catching up": Silence(first=DESTINATION, point="at: catch_up", others=(SOURCE,), strategy=Strategy.REPLAY),
    "both, before they meet": Silence(
        first=SOURCE, point="sent: Meet", others=(DESTINATION,), strategy=Strategy.REPLAY
    ),
    "both, in rounds": Silence(first=DESTINATION, point="at: rounds", others=(SOURCE,), strategy=Strategy.PRE_COPY),
    "source killed, destination frozen": Silence(
        first=SOURCE, point="sent: Boundary", others=(DESTINATION,), action=Action.KILL
    ),
    "destination killed, source silent": Silence(
        first=DESTINATION, point="heard: Boundary", others=(SOURCE,), action=Action.KILL
    ),
}


def main() -> None:
    """Measure and write."""
    options = parser("silent", __doc__)
    options.set_defaults(engine=ENGINE)
    options.add_argument("--within-s", type=float, default=60.0, help="how long a case is watched")
    options.add_argument("--at-once", type=int, default=4, help="cases that run at once")
    options.add_argument("--only", default="", help="cases whose names have this in them")
    asked = options.parse_args()
    quiet()
    recorder = Recorder("silent", asked)
    rows = asyncio.run(measured(asked))
    recorder.write(summary_of(rows), {"cases": rows})


async def measured(asked: argparse.Namespace) -> list[dict[str, Any]]:
    """Run every case."""
    gate = asyncio.Semaphore(asked.at_once)
    wanted = [(name, case) for name, case in CASES.items() if asked.only in name]
    with TemporaryDirectory(prefix="worldmove-silent-") as folder:
        async with nursery_in(Path(folder)) as nursery:

            async def one(number: int, name: str, case: Silence) -> dict[str, Any]:
                async with gate:
                    row = {"case": name} | await row_of(nursery, number, case, asked.within_s)
                    print(row, file=sys.stderr)
                    return row

            rows = (one(number, name, case) for number, (name, case) in enumerate(wanted))
            return list(await asyncio.gather(*rows))


async def row_of(nursery: Nursery, number: int, case: Silence, within_s: float) -> dict[str, Any]:
    """Run one case in a server of its own, with workers of names of their own."""
    workers = tuple(f"case-{number}-{worker}" for worker in range(1, 4))
    fleet = FleetConfig(workers=workers, protect_every=4, enforce_horizon=False)
    try:
        async with house_of(nursery, fleet=fleet, waits="shipped") as house:
            return said(await silenced(house, workers, case, within_s=within_s))
    except (AssertionError, UserError) as error:
        return {"failed": str(error), "shown_s": None, "told_s": None}


def said(found: Found) -> dict[str, Any]:
    """Return what is written of a case."""
    move = found.move
    return {
        "granted_s": _rounded(found.granted_s),
        "shown_s": _rounded(found.shown_s),
        "told_s": _rounded(found.told_s),
        "replayed": None if found.failover is None else found.failover.num_replayed,
        "states": [state.value for state in found.states],
        "outcome": move and move.outcome.value,
        "reason": move and move.reason,
        "detail": move and move.detail,
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)


def summary_of(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Say what came out."""
    both = [row for row in rows if row["case"].startswith("both")]
    return {
        "cases": len(rows),
        "failed": sum("failed" in row for row in rows),
        "both_silent": len(both),
        "went_on": sum(row["shown_s"] is not None for row in both),
        "shown_s": spread([row["shown_s"] for row in both if row["shown_s"] is not None]),
        "told_s": spread([row["told_s"] for row in both if row["told_s"] is not None]),
    }


if __name__ == "__main__":
    main()
