"""``workers``, ``sessions``, ``moves``: what there is."""

import typer

from worldmove.cli.client import Client
from worldmove.cli.context import output_of
from worldmove.cli.exits import ExitCode, epilog
from worldmove.cli.options import DEFAULT_SERVER, Json, Server

HELP = epilog(ExitCode.DONE, ExitCode.USAGE, ExitCode.UNREACHABLE)


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
    output = output_of(context, as_json=as_json)
    answer = Client(server).get("workers")
    output.document("workers", answer)
    rows = answer["workers"]
    header = ("WORKER", "STATE", "PID", "SESSIONS", "SLOTS", "FREE", "QUARANTINED")
    keys = ("worker", "state", "pid", "num_sessions", "slots", "slots_free", "slots_quarantined")
    output.table(header, [[row[key] for key in keys] for row in rows], nothing="No workers.")


def sessions(context: typer.Context, *, server: Server = DEFAULT_SERVER, as_json: Json = False) -> None:
    """List the sessions.

    \b
    worldmove sessions
    worldmove sessions --json
    """
    output = output_of(context, as_json=as_json)
    answer = Client(server).get("sessions")
    output.document("sessions", answer)
    header = (
        "SESSION",
        "STATE",
        "WORKER",
        "EPOCH",
        "BLOCK",
        "WATCHERS",
        "SEED",
        "SIZE(bytes)",
        "KEEPER",
        "STALLED(ms)",
        "RESTS",
    )
    keys = ("session", "state", "worker", "epoch", "next_block", "num_watchers", "seed", "num_bytes", "keeper")
    rows = [[row[key] for key in (*keys, "stalled_ms", "resting")] for row in answer["sessions"]]
    output.table(header, rows, nothing="No sessions. Try: worldmove open")


def moves(context: typer.Context, *, server: Server = DEFAULT_SERVER, as_json: Json = False) -> None:
    """List the last moves, oldest first.

    \b
    worldmove moves
    worldmove moves --json
    """
    output = output_of(context, as_json=as_json)
    answer = Client(server).get("moves")
    output.document("moves", answer)
    header = ("ATTEMPT", "SESSION", "FROM", "TO", "OUTCOME", "REASON", "PAUSE(ms)", "GAP(ms)", "TRIES", "STARTED")
    keys = ("attempt", "session", "from", "to", "outcome", "reason", "pause_ms", "gap_ms", "tries", "started_at")
    rows = [[row[key] for key in keys] for row in answer["moves"]]
    output.table(header, rows, nothing="No moves yet. Try: worldmove move SESSION --to WORKER")


def failovers(context: typer.Context, *, server: Server = DEFAULT_SERVER, as_json: Json = False) -> None:
    """List the last worlds that outlived their worker, oldest first.

    \b
    worldmove failovers
    worldmove failovers --json
    """
    output = output_of(context, as_json=as_json)
    answer = Client(server).get("failovers")
    output.document("failovers", answer)
    header = ("SESSION", "GONE", "WORKER", "OUTCOME", "TOOK(ms)", "REPLAYED", "COMPARED", "BLOCK", "STARTED")
    keys = ("session", "gone", "worker", "outcome", "took_ms", "num_replayed", "num_compared", "next_block")
    rows = [[row[key] for key in (*keys, "started_at")] for row in answer["failovers"]]
    output.table(header, rows, nothing="No failovers.")
