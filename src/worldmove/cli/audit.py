"""``audit``: what an engine's state lacks, found by restoring it in a fresh process and looking at everything else."""

from collections.abc import Iterator
from typing import Annotated, Any

import typer

from worldmove.audit.audit import BEFORE, BLOCKS, LIMIT_S, audit
from worldmove.audit.report import Report, Row, Verdict
from worldmove.audit.workplace import Workplace
from worldmove.cli.context import output_of, verbosity_of
from worldmove.cli.exits import ExitCode, epilog
from worldmove.cli.options import Json

HELP = epilog(
    ExitCode.DONE,
    ExitCode.FAILED,
    ExitCode.USAGE,
    ExitCode.REFUSED,
    refused="something is missing, differs, or is not taken",
)
HEADER = ("VERDICT", "PATH", "KIND", "SIZE(bytes)", "WHY")


Engine = Annotated[str, typer.Argument(metavar="MODULE:ENGINE", help="An engine, or what makes one.")]
Blocks = Annotated[int, typer.Option("--blocks", min=1, help="Blocks to go on for, restored.")]
Before = Annotated[int, typer.Option("--before", min=1, help="Blocks before the export; so many that windows roll.")]
Limit = Annotated[
    int, typer.Option("--limit", metavar="SECONDS", min=1, max=10**6, help="How long one playing may take.")
]
Allow = Annotated[
    list[str] | None, typer.Option("--allow", metavar="PATH", help="A place that is no state. Repeatable.")
]
Leaves = Annotated[bool, typer.Option(help="Restore without each leaf in turn: one block or more for each.")]


def add(app: typer.Typer) -> None:
    """Add this command."""
    app.command("audit", epilog=HELP)(audit_engine)


def audit_engine(
    context: typer.Context,
    engine: Engine,
    *,
    blocks: Blocks = BLOCKS,
    before: Before = BEFORE,
    limit: Limit = LIMIT_S,
    allow: Allow = None,
    leaves: Leaves = True,
    as_json: Json = False,
) -> int:
    """Find what an engine's state lacks.

    \b
    worldmove audit my_package:engine
    worldmove audit my_package:Engine --blocks 100 --allow engine.blocks_done
    worldmove audit worldmove.engine.reference:island --json
    """
    output, verbosity = output_of(context, as_json=as_json), verbosity_of(context)
    with Workplace() as workplace:
        report = audit(
            engine,
            workplace,
            before=before,
            blocks=blocks,
            limit_s=limit,
            allowed=allow or (),
            drops_leaves=leaves,
            debug=verbosity.debug,
            stage=output.note,
        )
    output.document("audit", fields_of(report))
    rows = [cells_of(row) for row in (*report.refused, *report.missing, *report.rows, *_others(report))]
    output.table(HEADER, rows, nothing="Nothing was found outside the state.")
    output.note(report.sentence())
    return ExitCode.DONE if report.is_clean else ExitCode.REFUSED


def fields_of(report: Report) -> dict[str, Any]:
    """Return a report as JSON has it: every leaf by itself, and every place outside the state."""
    return {
        "engine": report.engine,
        "clean": report.is_clean,
        "exact": report.is_exact,
        "sentence": report.sentence(),
        "blocks": max(end - start for start, end in report.spans.values()),
        "boundaries": [
            {"name": name, "block": start, "blocks": end - start, "difference": _difference(report, name)}
            for name, (start, end) in report.spans.items()
        ],
        "repeats": report.repeats,
        "leaves": [
            {
                "path": leaf,
                "verdict": row.verdict.value,
                "kind": kind,
                "bytes": size,
                "dropped": row.path,
                "why": row.why,
            }
            for row in report.rows
            for leaf, kind, size in row.leaves
        ],
        "places": [
            {"path": row.path, "verdict": row.verdict.value, "kind": row.kind, "bytes": row.num_bytes, "why": row.why}
            for row in report.places
        ],
        "refused": [{"input": row.path, "why": row.why} for row in report.refused],
        "objects": report.walked,
        "complete": report.complete,
    }


def _difference(report: Report, name: str) -> dict[str, Any] | None:
    found = report.differences[name]
    if found is None:
        return None
    return {"block": found.block, "leaf": found.leaf, "frames": found.frames, "notes": found.notes}


def cells_of(row: Row) -> tuple[object, ...]:
    """Return a row of the table, in the order of HEADER."""
    return row.verdict.value, row.path, row.kind, row.num_bytes, row.why


def _others(report: Report) -> Iterator[Row]:
    """The places that are listed and not held against the engine."""
    return (row for row in report.places if row.verdict is not Verdict.MISSING)
