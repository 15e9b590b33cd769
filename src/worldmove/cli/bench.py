"""``bench``: what a move costs on this machine, beside other ways to bring as many bytes elsewhere in the same run."""

from typing import Annotated

import typer

from worldmove.cli.context import output_of, verbosity_of
from worldmove.cli.exits import ExitCode, epilog
from worldmove.cli.options import DEFAULT_ENGINE, Json, Preset, Threads, engine_named
from worldmove.cli.start import Start, config_of, loading

HELP = epilog(ExitCode.DONE, ExitCode.FAILED, ExitCode.USAGE, ExitCode.REFUSED, refused="a check failed")
Check = Annotated[bool, typer.Option("--check", help="End with 3 where a figure misses its goal.")]


def add(app: typer.Typer) -> None:
    """Add these commands."""
    benches = typer.Typer(rich_markup_mode=None, help="Measure on this machine.")
    benches.command("move", epilog=HELP)(bench_move)
    app.add_typer(benches, name="bench")


def bench_move(
    context: typer.Context,
    *,
    moves: Annotated[int, typer.Option("--moves", "-n", min=1, help="How many moves, under play.")] = 20,
    repeats: Annotated[
        int, typer.Option("--repeats", min=1, help="How often every other way to bring the bytes is taken.")
    ] = 20,
    scattered: Annotated[
        bool, typer.Option(help="Move a session, too, none of whose tensors lies in its slot.")
    ] = True,
    check: Check = False,
    preset: Preset = DEFAULT_ENGINE,
    threads: Threads = 1,
    as_json: Json = False,
) -> int:
    """Move a world to and fro while it is played.

    \b
    worldmove bench move
    worldmove bench move --preset matrix-game-2 --json
    """
    # torch takes seconds to import: only the commands that compute pay for it.
    from worldmove.cli.benches.comparison import Asked, compare  # noqa: PLC0415

    output, verbosity = output_of(context, as_json=as_json), verbosity_of(context)
    engine = engine_named(preset)
    told = Start(host="127.0.0.1", port=0, workers=2, engine=engine, threads=threads, slots=3, keep_s=600.0)
    with loading(output, verbosity) as line:
        asked = Asked(moves=moves, repeats=repeats, scattered=scattered)
        found = compare(config_of(told, verbosity), asked, line.stage)
    output.document("bench.move", found.fields())
    output.table(("", "MEDIAN", "P90", "MAX"), found.rows(), nothing="Nothing was measured.")
    output.note(found.sentence())
    return ExitCode.REFUSED if check and found.misses() else ExitCode.DONE
