"""``verify``: a record computed anew, by an engine that never moved."""

from pathlib import Path
from typing import Annotated

import typer

from worldmove.cli.context import output_of, verbosity_of
from worldmove.cli.exits import ExitCode, epilog
from worldmove.cli.options import Json
from worldmove.cli.progress import counting

HELP = epilog(
    ExitCode.DONE, ExitCode.FAILED, ExitCode.USAGE, ExitCode.REFUSED, ExitCode.DIFFERENT, refused="another environment"
)
File = Annotated[Path, typer.Argument(metavar="FILE", help="A record, as `worldmove record` writes it.")]
Saved = Annotated[
    Path | None, typer.Option("--from", metavar="FILE", help="The saved world that the recorded one went on from.")
]
EngineOrNone = Annotated[
    str | None, typer.Option("--engine", metavar="NAME", help="Only for a record of an engine of your own: its name.")
]


def add(app: typer.Typer) -> None:
    """Add this command."""
    app.command(epilog=HELP)(verify)


def verify(
    context: typer.Context,
    file: File,
    *,
    saved: Saved = None,
    engine: EngineOrNone = None,
    as_json: Json = False,
) -> int:
    """Compute a record anew on this machine, and compare.

    Every frame and every state must be the same.

    \b
    worldmove verify walk.record
    worldmove verify walk.record --from world.saved --json
    """
    # torch takes seconds to import: only the commands that compute pay for it.
    from worldmove.cli.verdict import fields, sentence  # noqa: PLC0415
    from worldmove.cli.verifying import Asked, verify_record  # noqa: PLC0415

    output = output_of(context, as_json=as_json)
    with counting(output, verbosity_of(context), f"verifying {file.name}") as bar:
        verdict = verify_record(Asked(path=file, saved=saved, engine=engine), bar)
    output.document("verify", fields(verdict))
    output.text(sentence(verdict))
    for note in verdict.notes:
        output.note(note)
    return ExitCode.DONE if verdict.difference is None else ExitCode.DIFFERENT
