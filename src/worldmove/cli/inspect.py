"""``inspect``: what is in a file of ours, or what a live session's state consists of."""

from pathlib import Path
from typing import Annotated

import typer

from worldmove.cli.answers import Leaves, said
from worldmove.cli.client import Client
from worldmove.cli.context import output_of
from worldmove.cli.exits import ExitCode, epilog
from worldmove.cli.options import DEFAULT_SERVER, Json, Server
from worldmove.cli.shares import leaf_rows
from worldmove.units import bytes_text

HELP = epilog(ExitCode.DONE, ExitCode.USAGE, ExitCode.REFUSED, ExitCode.UNREACHABLE)
Target = Annotated[str, typer.Argument(metavar="FILE|SESSION", help="A file, or as `worldmove sessions` names it.")]


def add(app: typer.Typer) -> None:
    """Add this command."""
    app.command(epilog=HELP)(inspect)


def inspect(context: typer.Context, target: Target, *, server: Server = DEFAULT_SERVER, as_json: Json = False) -> None:
    """Explain a file of ours, or a live world's leaves by size.

    A file may be a record, a saved world, a ledger, weights or a bench's result.

    \b
    worldmove inspect walk.record
    worldmove inspect s-k3m9qa --json
    """
    output = output_of(context, as_json=as_json)
    if Path(target).exists() or "/" in target or "." in target:
        # torch takes seconds to import: only the commands that need the formats pay for it.
        from worldmove.cli.explaining import explain  # noqa: PLC0415

        found = explain(Path(target))
        output.document("inspect", {"file": target, "kind": found.kind, **found.fields})
        output.text(f"{target}: {found.sentence}")
        for header, rows in found.tables:
            output.text("")
            output.table(header, rows, nothing="Nothing.")
        return
    answer = said(Client(server).get("sessions", target, "leaves"), Leaves)
    output.document("inspect", {"kind": "session", **answer})
    total = bytes_text(answer["num_bytes"])
    output.text(f"{target}: before block {answer['block']}, {total} in {answer['num_parts']} leaves")
    output.text("")
    leaves = [(leaf["path"], leaf["kind"], leaf["shape"], leaf["num_bytes"]) for leaf in answer["leaves"]]
    output.table(*leaf_rows(leaves, total=answer["num_bytes"]), nothing="No leaves.")
    if answer["num_others"]:
        output.text(f"and {answer['num_others']:,} smaller leaves of {bytes_text(answer['others_bytes'])} together")
