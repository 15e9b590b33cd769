"""``workers``, ``sessions``, ``moves``: what there is."""

from collections.abc import Mapping

import typer

from worldmove.cli.answers import said
from worldmove.cli.client import Client
from worldmove.cli.context import output_of
from worldmove.cli.exits import ExitCode, epilog
from worldmove.cli.options import DEFAULT_SERVER, Json, Server
from worldmove.cli.output import Output

HELP = epilog(ExitCode.DONE, ExitCode.USAGE, ExitCode.UNREACHABLE)

WORKERS = {
    "WORKER": "worker",
    "STATE": "state",
    "PID": "pid",
    "SESSIONS": "num_sessions",
    "SLOTS": "slots",
    "FREE": "slots_free",
    "QUARANTINED": "slots_quarantined",
}
"""Columns of a table: what stands above each, and what of a row is in it."""
SESSIONS = {
    "SESSION": "session",
    "STATE": "state",
    "WORKER": "worker",
    "EPOCH": "epoch",
    "BLOCK": "next_block",
    "WATCHERS": "num_watchers",
    "SEED": "seed",
    "SIZE(bytes)": "num_bytes",
    "KEEPER": "keeper",
    "AGE(blocks)": "kept_age_blocks",
    "STALLED(ms)": "stalled_ms",
    "RESTS": "resting",
}
MOVES = {
    "ATTEMPT": "attempt",
    "SESSION": "session",
    "FROM": "from",
    "TO": "to",
    "OUTCOME": "outcome",
    "REASON": "reason",
    "PAUSE(ms)": "pause_ms",
    "GAP(ms)": "gap_ms",
    "TRIES": "tries",
    "STARTED": "started_at",
}
FAILOVERS = {
    "SESSION": "session",
    "GONE": "gone",
    "WORKER": "worker",
    "OUTCOME": "outcome",
    "TOOK(ms)": "took_ms",
    "REPLAYED": "num_replayed",
    "COMPARED": "num_compared",
    "BLOCK": "next_block",
    "STARTED": "started_at",
    "WHY": "why",
}


def add(app: typer.Typer) -> None:
    """Add these commands."""
    app.command(epilog=HELP)(workers)
    app.command(epilog=HELP)(sessions)
    app.command(epilog=HELP)(moves)
    app.command(epilog=HELP)(failovers)


def workers(context: typer.Context, *, server: Server = DEFAULT_SERVER, as_json: Json = False) -> None:
    """List the workers.

    \b
    worldmove workers
    worldmove workers --json
    """
    _list("workers", WORKERS, output_of(context, as_json=as_json), server, nothing="No workers.")


def sessions(context: typer.Context, *, server: Server = DEFAULT_SERVER, as_json: Json = False) -> None:
    """List the sessions.

    \b
    worldmove sessions
    worldmove sessions --json
    """
    nothing = "No sessions. Try: worldmove open"
    _list("sessions", SESSIONS, output_of(context, as_json=as_json), server, nothing=nothing)


def moves(context: typer.Context, *, server: Server = DEFAULT_SERVER, as_json: Json = False) -> None:
    """List the last moves, oldest first.

    \b
    worldmove moves
    worldmove moves --json
    """
    nothing = "No moves yet. Try: worldmove move SESSION --to WORKER"
    _list("moves", MOVES, output_of(context, as_json=as_json), server, nothing=nothing)


def failovers(context: typer.Context, *, server: Server = DEFAULT_SERVER, as_json: Json = False) -> None:
    """List the last worlds that outlived their worker, oldest first.

    \b
    worldmove failovers
    worldmove failovers --json
    """
    _list("failovers", FAILOVERS, output_of(context, as_json=as_json), server, nothing="No failovers.")


def _list(what: str, columns: Mapping[str, str], output: Output, server: str, *, nothing: str) -> None:
    """Say what the server has of something: as it answers, or as a table with these columns."""
    answer = Client(server).get(what)
    said({"rows": answer[what]}, dict[str, list[dict[str, object]]])
    output.document(what, answer)
    rows = [[row[key] for key in columns.values()] for row in answer[what]]
    output.table(tuple(columns), rows, nothing=nothing)
