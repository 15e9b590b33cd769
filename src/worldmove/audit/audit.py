"""One audit from beginning to end: export, restore in a fresh process, go on in both, and judge."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from worldmove.audit.findings import Order, RestoredFindings, SourceFindings
from worldmove.audit.report import Report
from worldmove.audit.verdicts import judge
from worldmove.audit.workplace import Workplace

BEFORE = 26
"""Blocks before the export: as many as roll the longest window of the island world."""
BLOCKS = 20


def audit(
    engine: str,
    workplace: Workplace,
    *,
    before: int = BEFORE,
    blocks: int = BLOCKS,
    allowed: Sequence[str] = (),
    debug: bool = False,
    stage: Callable[[str], None] = lambda _: None,
) -> Report:
    """Audit ``package.module:attribute``. ``stage`` is told what happens. Raises UserError, StateRefused's too."""
    with TemporaryDirectory(prefix="worldmove-audit-") as folder:
        order = Order(
            role="source",
            engine=engine,
            folder=folder,
            before=before,
            blocks=blocks,
            at_once=min(4, len(os.sched_getaffinity(0))),
            debug=debug,
        )
        stage("playing")
        workplace.play(order)
        stage("restoring in a fresh process, whole and without each leaf")
        workplace.play(msgspec.structs.replace(order, role="restored"))
        source = msgspec.msgpack.decode((Path(folder) / "source.findings").read_bytes(), type=SourceFindings)
        restored = msgspec.msgpack.decode((Path(folder) / "restored.findings").read_bytes(), type=RestoredFindings)
    return judge(engine, blocks, source, restored, allowed=allowed)
