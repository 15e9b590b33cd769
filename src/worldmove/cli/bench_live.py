"""``bench live``: what moves cost those who play, on this machine."""

from typing import Annotated

import typer

from worldmove.cli.bench_common import Check, Profile, told, two_workers
from worldmove.cli.benches.live_asked import LiveAsked
from worldmove.cli.context import output_of, verbosity_of
from worldmove.cli.exits import ExitCode
from worldmove.cli.options import DEFAULT_ENGINE, Gpus, Json, Preset, Strategy, Threads
from worldmove.cli.output import Output, Verbosity
from worldmove.cli.start import Start, config_of, loading

HELP = """Move a world to and fro while others play beside it.

Segments without moves are the control.
In the end the world's record is computed anew on an engine that never moved.

\b
worldmove bench live
worldmove bench live --preset matrix-game-2 --moves 200 --json
"""
SPARE_SLOTS = 3
"""Beside half of the residents: a moved world's, its shadow's and its retired copy's."""

Moves = Annotated[int, typer.Option("--moves", "-n", min=1, help="How many moves, to and fro.")]
Every = Annotated[
    int,
    typer.Option("--every", min=0, help="Blocks from a move's answer to the next one."),
]
Sessions = Annotated[
    int, typer.Option("--sessions", min=1, help="Worlds that are moved, at once; they begin on different workers.")
]
Residents = Annotated[int, typer.Option("--residents", min=0, help="Worlds that play beside, on both workers.")]
Segment = Annotated[int, typer.Option("--segment", min=1, help="Moves before blocks are played without any.")]
After = Annotated[int, typer.Option("--after", min=0, help="Blocks played on after the last move.")]
Control = Annotated[
    float, typer.Option("--control", min=0.0, help="Blocks without moves for each one of a segment with moves.")
]
Within = Annotated[
    float, typer.Option("--within-s", min=1.0, help="Begin no further segment of moves later than this.")
]
Replay = Annotated[
    float, typer.Option("--replay-s", min=1.0, help="Compute what was recorded anew for no longer than this.")
]
Checks = Annotated[
    int, typer.Option("--check-blocks", min=0, max=64, help="Blocks that the copy left behind steps after a move.")
]
Accounts = Annotated[
    int, typer.Option("--account-every", min=0, help="Blocks between two states that the replay is compared with.")
]


def bench_live(
    context: typer.Context,
    *,
    moves: Moves = 40,
    every: Every = 1,
    sessions: Sessions = 1,
    residents: Residents = 2,
    segment: Segment = 20,
    after: After = 50,
    control: Control = 1.0,
    within_s: Within = 1e6,
    replay_s: Replay = 1e6,
    checks: Checks = 2,
    account_every: Accounts = 16,
    strategy: Strategy = None,
    profile: Profile = False,
    check: Check = False,
    preset: Preset = DEFAULT_ENGINE,
    gpus: Gpus = "",
    threads: Threads = 1,
    as_json: Json = False,
) -> int:
    """Move a world to and fro while others play; see ``HELP``."""
    slots = residents // 2 + SPARE_SLOTS + sessions - 1
    server = two_workers(preset, threads=threads, gpus=gpus, slots=slots, checks=checks, accounts=account_every)
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
    return _run(server, asked, output_of(context, as_json=as_json), verbosity_of(context), profile=profile, check=check)


def _run(
    server: Start, asked: LiveAsked, output: Output, verbosity: Verbosity, *, profile: bool, check: bool
) -> ExitCode:
    # torch takes seconds to import: only the commands that compute pay for it.
    from worldmove.cli.benches.live import run_live  # noqa: PLC0415
    from worldmove.cli.benches.live_found import LiveFound  # noqa: PLC0415
    from worldmove.cli.benches.machine import head  # noqa: PLC0415
    from worldmove.cli.benches.profiles import looking  # noqa: PLC0415

    begin, config = head(), config_of(server, verbosity)
    with loading(output, verbosity) as line, looking(config, wanted=profile) as (looked_into, looked):
        run = run_live(looked_into, asked, line.stage)
        seen = looked()
    found = LiveFound(run=run, check_blocks=server.check_blocks, gpus=server.gpus, head=begin)
    fields = {**found.fields(), **seen, "engine": server.engine}
    return told(output, "bench.live", found, fields, "P99", check=check)
