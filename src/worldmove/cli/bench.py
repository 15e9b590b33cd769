"""``bench``: the commands that measure on this machine."""

import typer

from worldmove.cli import bench_live, bench_move
from worldmove.cli.exits import ExitCode, epilog

EPILOG = epilog(ExitCode.DONE, ExitCode.FAILED, ExitCode.USAGE, ExitCode.REFUSED, refused="a check failed")


def add(app: typer.Typer) -> None:
    """Add these commands."""
    benches = typer.Typer(rich_markup_mode=None, help="Measure on this machine.")
    benches.command("move", help=bench_move.HELP, epilog=EPILOG)(bench_move.bench_move)
    benches.command("live", help=bench_live.HELP, epilog=EPILOG)(bench_live.bench_live)
    app.add_typer(benches, name="bench")
