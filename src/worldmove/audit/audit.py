"""One audit from beginning to end: export, restore in a fresh process, go on in both, and judge."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

import msgspec

from worldmove.audit.findings import RESTORED, SOURCE, Order, RestoredFindings, SourceFindings
from worldmove.audit.names import split
from worldmove.audit.report import Report
from worldmove.audit.verdicts import judge
from worldmove.audit.workplace import Workplace

T = TypeVar("T")

BEFORE = 26
"""Blocks before the export: as many as roll the longest window of the island world."""
BLOCKS = 20
LIMIT_S = 1800
"""Of each playing: what takes longer is taken for an engine that hangs."""


def audit(
    engine: str,
    workplace: Workplace,
    *,
    before: int = BEFORE,
    blocks: int = BLOCKS,
    limit_s: float = LIMIT_S,
    allowed: Sequence[str] = (),
    drops_leaves: bool = True,
    debug: bool = False,
    stage: Callable[[str], None] = lambda _: None,
) -> Report:
    """Audit ``package.module:attribute``. ``stage`` is told what happens. Raises UserError, StateRefused's too."""
    split(engine)
    with TemporaryDirectory(prefix="worldmove-audit-") as folder:
        order = Order(
            role=SOURCE,
            engine=engine,
            folder=folder,
            before=before,
            blocks=blocks,
            limit_s=limit_s,
            at_once=min(4, len(os.sched_getaffinity(0))),
            drops_leaves=drops_leaves,
            debug=debug,
        )
        stage("Playing.")
        source = _played(workplace, order, SourceFindings)
        stage("Restoring in a fresh process.")
        restored = _played(workplace, msgspec.structs.replace(order, role=RESTORED), RestoredFindings)
        report = judge(engine, source, restored, allowed=allowed)
        if report.is_exact or report.missing:
            return report
        stage("Playing once more from the beginning.")
        again = _played(workplace, order, SourceFindings)
        return msgspec.structs.replace(report, repeats=again.moments == source.moments)


def _played(workplace: Workplace, order: Order, kind: type[T]) -> T:
    workplace.play(order)
    return msgspec.msgpack.decode((Path(order.folder) / f"{order.role}.findings").read_bytes(), type=kind)
