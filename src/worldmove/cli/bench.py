"""``bench``: what a move costs on this machine, beside other ways to bring the bytes elsewhere, and in a live loop."""

from typing import Annotated

import typer

from worldmove.cli.context import output_of, verbosity_of
from worldmove.cli.exits import ExitCode, epilog
from worldmove.cli.options import DEFAULT_ENGINE, Gpus, Json, Preset, Strategy, Threads, engine_named
from worldmove.cli.start import Start, config_of, loading
from worldmove.fleet.gpus import gpus_named

HELP = epilog(ExitCode.DONE, ExitCode.FAILED, ExitCode.USAGE, ExitCode.REFUSED, refused="a check failed")
SPARE_SLOTS = 3
"""Beside half of the residents: a moved world's, its shadow's and its retired copy's."""
Profile = Annotated[
    bool, typer.Option("--profile", help="Look into the workers' threads, too: JSON tells where. It slows them down.")
]
Check = Annotated[bool, typer.Option("--check", help="End with 3 where a figure misses its goal.")]


def add(app: typer.Typer) -> None:
    """Add these commands."""
    benches = typer.Typer(rich_markup_mode=None, help="Measure on this machine.")
    benches.command("move", epilog=HELP)(bench_move)
    benches.command("live", epilog=HELP)(bench_live)
    app.add_typer(benches, name="bench")


def bench_move(
    context: typer.Context,
    *,
    moves: Annotated[int, typer.Option("--moves", "-n", min=1, help="How many moves, under play.")] = 20,
    repeats: Annotated[int, typer.Option("--repeats", min=1, help="How many moves without a server.")] = 20,
    file_repeats: Annotated[
        int,
        typer.Option("--file-repeats", min=1, help="How often the bytes go through files; that takes seconds each."),
    ] = 20,
    scattered: Annotated[
        bool, typer.Option(help="Move a session, too, none of whose tensors lies in its slot.")
    ] = True,
    scattered_moves: Annotated[
        int | None, typer.Option("--scattered-moves", min=0, help="The same of that session; left out: as many.")
    ] = None,
    strategy: Strategy = None,
    profile: Profile = False,
    check: Check = False,
    preset: Preset = DEFAULT_ENGINE,
    gpus: Gpus = "",
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
    from worldmove.cli.benches.profiles import looking  # noqa: PLC0415

    output, verbosity = output_of(context, as_json=as_json), verbosity_of(context)
    engine = engine_named(preset)
    told = Start(
        host="127.0.0.1",
        port=0,
        workers=2,
        engine=engine,
        threads=threads,
        slots=3,
        keep_s=600.0,
        gpus=gpus_named(gpus),
    )
    with loading(output, verbosity) as line, looking(config_of(told, verbosity), wanted=profile) as (config, looked):
        asked = Asked(
            moves=moves,
            repeats=repeats,
            file_repeats=file_repeats,
            scattered=scattered,
            scattered_moves=scattered_moves,
            strategy=strategy,
        )
        found = compare(config, asked, line.stage)
        seen = looked()
    output.document("bench.move", {**found.fields(), **seen})
    output.table(("", "MEDIAN", "P90", "MAX"), found.rows(), nothing="Nothing was measured.")
    output.note(found.sentence())
    return ExitCode.REFUSED if check and found.misses() else ExitCode.DONE


def bench_live(
    context: typer.Context,
    *,
    moves: Annotated[int, typer.Option("--moves", "-n", min=1, help="How many moves, to and fro.")] = 40,
    every: Annotated[int, typer.Option("--every", min=1, help="Blocks between two moves.")] = 2,
    sessions: Annotated[
        int, typer.Option("--sessions", min=1, help="Worlds that are moved, at once; they begin on different workers.")
    ] = 1,
    residents: Annotated[int, typer.Option("--residents", min=0, help="Worlds that play beside, on both workers.")] = 2,
    segment: Annotated[int, typer.Option("--segment", min=1, help="Moves before blocks are played without any.")] = 20,
    after: Annotated[int, typer.Option("--after", min=0, help="Blocks played on after the last move.")] = 50,
    control: Annotated[
        float, typer.Option("--control", min=0.0, help="Blocks without moves for each one of a segment with moves.")
    ] = 1.0,
    within_s: Annotated[
        float, typer.Option("--within-s", min=1.0, help="Begin no further segment of moves later than this.")
    ] = 1e6,
    replay_s: Annotated[
        float, typer.Option("--replay-s", min=1.0, help="Compute what was recorded anew for no longer than this.")
    ] = 1e6,
    checks: Annotated[
        int, typer.Option("--check-blocks", min=0, max=64, help="Blocks that the copy left behind steps after a move.")
    ] = 2,
    account_every: Annotated[
        int, typer.Option("--account-every", min=0, help="Blocks between two states that the replay is compared with.")
    ] = 16,
    strategy: Strategy = None,
    profile: Profile = False,
    check: Check = False,
    preset: Preset = DEFAULT_ENGINE,
    gpus: Gpus = "",
    threads: Threads = 1,
    as_json: Json = False,
) -> int:
    """Move a world to and fro while others play beside it.

    Segments without moves are the control.
    In the end the world's record is computed anew on an engine that never moved.

    \b
    worldmove bench live
    worldmove bench live --preset matrix-game-2 --moves 200 --json
    """
    # torch takes seconds to import: only the commands that compute pay for it.
    from worldmove.cli.benches.live import LiveAsked, run_live  # noqa: PLC0415
    from worldmove.cli.benches.live_found import LiveFound  # noqa: PLC0415
    from worldmove.cli.benches.machine import head  # noqa: PLC0415
    from worldmove.cli.benches.profiles import looking  # noqa: PLC0415

    output, verbosity = output_of(context, as_json=as_json), verbosity_of(context)
    asked = LiveAsked(
        moves=moves,
        every=every,
        segment=segment,
        residents=residents,
        after=after,
        control=control,
        sessions=sessions,
        within_s=within_s,
        replay_s=replay_s,
        strategy=strategy,
    )
    told = Start(
        host="127.0.0.1",
        port=0,
        workers=2,
        engine=engine_named(preset),
        threads=threads,
        slots=residents // 2 + SPARE_SLOTS + sessions - 1,
        keep_s=600.0,
        gpus=gpus_named(gpus),
        check_blocks=checks,
        account_every=account_every,
    )
    begin = head()
    with loading(output, verbosity) as line, looking(config_of(told, verbosity), wanted=profile) as (config, looked):
        run = run_live(config, asked, line.stage)
        seen = looked()
    found = LiveFound(run=run, check_blocks=checks, gpus=told.gpus, head=begin)
    output.document("bench.live", {**found.fields(), **seen, "engine": told.engine})
    output.table(("", "MEDIAN", "P99", "MAX"), found.rows(), nothing="Nothing was measured.")
    output.note(found.sentence())
    return ExitCode.REFUSED if check and found.misses() else ExitCode.DONE
