"""``bench move``: what a move costs on this machine, beside other ways to bring the bytes elsewhere."""

from typing import Annotated

import typer

from worldmove.cli.bench_common import Check, Profile, told, two_workers
from worldmove.cli.context import output_of, verbosity_of
from worldmove.cli.options import DEFAULT_ENGINE, Gpus, Json, Preset, Strategy, Threads
from worldmove.cli.start import config_of, loading

HELP = """Move a world to and fro while it is played.

\b
worldmove bench move
worldmove bench move --preset matrix-game-2 --json
"""
Moves = Annotated[int, typer.Option("--moves", "-n", min=1, help="How many moves, under play.")]
Repeats = Annotated[int, typer.Option("--repeats", min=1, help="How many moves without a server.")]
FileRepeats = Annotated[
    int, typer.Option("--file-repeats", min=1, help="How often the bytes go through files; that takes seconds each.")
]
Scattered = Annotated[bool, typer.Option(help="Move a session, too, none of whose tensors lies in its slot.")]
ScatteredMoves = Annotated[
    int | None, typer.Option("--scattered-moves", min=0, help="The same of that session; left out: as many.")
]


def bench_move(
    context: typer.Context,
    *,
    moves: Moves = 20,
    repeats: Repeats = 20,
    file_repeats: FileRepeats = 20,
    scattered: Scattered = True,
    scattered_moves: ScatteredMoves = None,
    strategy: Strategy = None,
    profile: Profile = False,
    check: Check = False,
    preset: Preset = DEFAULT_ENGINE,
    gpus: Gpus = "",
    threads: Threads = 1,
    as_json: Json = False,
) -> int:
    """Move a world to and fro; see ``HELP``."""
    # torch takes seconds to import: only the commands that compute pay for it.
    from worldmove.cli.benches.comparison import Asked, compare  # noqa: PLC0415
    from worldmove.cli.benches.profiles import looking  # noqa: PLC0415

    asked = Asked(
        moves=moves,
        repeats=repeats,
        file_repeats=file_repeats,
        scattered=scattered,
        scattered_moves=scattered_moves,
        strategy=strategy,
    )
    output, verbosity = output_of(context, as_json=as_json), verbosity_of(context)
    server = config_of(two_workers(preset, threads=threads, gpus=gpus), verbosity)
    with loading(output, verbosity) as line, looking(server, wanted=profile) as (config, looked):
        found = compare(config, asked, line.stage)
        seen = looked()
    return told(output, "bench.move", found, {**found.fields(), **seen}, "P90", check=check)
