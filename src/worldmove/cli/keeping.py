"""``record`` and ``save``: what a session has done, and what it is, in a file."""

from pathlib import Path
from typing import Annotated

import typer

from worldmove.cli.client import Client
from worldmove.cli.context import output_of
from worldmove.cli.exits import ExitCode, epilog
from worldmove.cli.files import open_file, whole_file
from worldmove.cli.options import DEFAULT_SERVER, Json, Server, Session
from worldmove.units import bytes_text

HELP = epilog(ExitCode.DONE, ExitCode.FAILED, ExitCode.USAGE, ExitCode.REFUSED, ExitCode.UNREACHABLE)
To = Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="Where to; what is there is replaced.")]
Blocks = Annotated[int | None, typer.Option("--blocks", min=1, help="End after so many, counted from the first.")]
Now = Annotated[bool, typer.Option("--now", help="End at once, with what has been so far.")]


def add(app: typer.Typer) -> None:
    """Add these commands."""
    app.command(epilog=HELP)(record)
    app.command(epilog=HELP)(save)


def record(
    context: typer.Context,
    session: Session,
    *,
    to: To,
    blocks: Blocks = None,
    now: Now = False,
    server: Server = DEFAULT_SERVER,
    as_json: Json = False,
) -> None:
    """Write what a world has done, from its first block on.

    Goes on until Ctrl-C or the world's end, unless told otherwise.

    \b
    worldmove record s-k3m9qa -o walk.record
    worldmove record s-k3m9qa -o walk.record --blocks 240 --json
    worldmove record s-k3m9qa -o walk.record --now
    """
    # torch takes seconds to import: only the commands that need the formats pay for it.
    from worldmove.cli.recording import record_to  # noqa: PLC0415

    output = output_of(context, as_json=as_json)
    query = {"blocks": blocks, "follow": str(not now).lower()}
    with Client(server).download("sessions", session, "record", query=query, endless=True) as pieces:
        if not now:
            output.note(f"Recording {session}; Ctrl-C ends it.")
        found = record_to(to, pieces)
    counts = {"num_blocks": found.num_blocks, "num_moves": found.num_moves, "num_states": found.num_states}
    fields = {"session": session, "file": str(to), **counts, "num_bytes": found.num_bytes, "ended": found.why}
    line = f"{to}: {found.num_blocks} blocks, {found.num_moves} moves, {bytes_text(found.num_bytes)}"
    output.did(f"{line}.")
    output.document("record", fields)
    output.text(line)


def save(
    context: typer.Context, session: Session, *, to: To, server: Server = DEFAULT_SERVER, as_json: Json = False
) -> None:
    """Write what a world is at a block boundary, exactly.

    `worldmove open --from FILE` goes on from it.

    \b
    worldmove save s-k3m9qa -o world.saved
    worldmove save s-k3m9qa -o world.saved --json
    """
    # torch takes seconds to import: only the commands that need the formats pay for it.
    from worldmove.state.digest import Xxh3Digester  # noqa: PLC0415
    from worldmove.state.saved import read_header  # noqa: PLC0415
    from worldmove.state.saved_state import require_intact  # noqa: PLC0415

    output = output_of(context, as_json=as_json)
    with Client(server).download("sessions", session, "saved", query={}) as pieces, whole_file(to) as file:
        for piece in pieces:
            file.write(piece)
        file.flush()
        with open_file(Path(file.name)) as (written, size):  # before it gets its name: a damaged one never does
            header = read_header(written, size)
            require_intact(written, header, Xxh3Digester())
    line = f"{to}: {session} before block {header.block}, {bytes_text(size)}, {header.state_digest}"
    output.did(f"{line}.")
    output.document(
        "saved",
        {
            "session": session,
            "file": str(to),
            "block": header.block,
            "num_bytes": size,
            "state_digest": header.state_digest,
        },
    )
    output.text(line)
