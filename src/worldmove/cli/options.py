"""Options that mean the same in every command."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from worldmove.limits import MAX_ARENA_BYTES, MAX_EVERY, MAX_SLOTS, MAX_THREADS, MAX_WAIT_S, MAX_WORKERS
from worldmove.units import MIB

DEFAULT_SERVER = "http://127.0.0.1:8787"


class PathName(StrEnum):
    """The paths that a move may take."""

    SHM = "shm"
    TCP = "tcp"
    PEER = "peer"
    STAGED = "staged"


Json = Annotated[bool, typer.Option("--json", help="Write JSON on standard output, errors too.")]
Server = Annotated[
    str, typer.Option("--server", metavar="URL", envvar="WORLDMOVE_SERVER", help="The server to talk to.")
]
Session = Annotated[str, typer.Argument(metavar="SESSION", help="As `worldmove sessions` names it.")]
Host = Annotated[str, typer.Option("--host", help="The address to answer at; 127.0.0.1 is this machine alone.")]
Port = Annotated[int, typer.Option("--port", min=0, max=65535, help="The port to answer at; 0: any free one.")]
Workers = Annotated[int, typer.Option("--workers", min=1, max=MAX_WORKERS, help="How many worker processes to start.")]
Gpus = Annotated[
    str, typer.Option("--gpus", metavar="N,N", help="The workers' GPUs, in turn: 0,1. Left out: the first one for all.")
]
Threads = Annotated[int, typer.Option("--threads", min=1, max=MAX_THREADS, help="Threads of one worker's arithmetic.")]
State = Annotated[
    Path | None,
    typer.Option(
        "--state",
        metavar="DIR",
        envvar="WORLDMOVE_STATE",
        help="Where the ledger is; a server that is started again on it goes on with its worlds. "
        "Default: worldmove/serve-PORT in $XDG_STATE_HOME or ~/.local/state.",
    ),
]
Slots = Annotated[int, typer.Option("--slots", min=1, max=MAX_SLOTS, help="Sessions that one worker has room for.")]
SlotMib = Annotated[
    int,
    typer.Option(
        "--slot-mib",
        metavar="N",
        min=0,
        max=MAX_ARENA_BYTES // MIB,
        help="MiB of each slot, for a state that grows; 0: what a young world needs, and a quarter.",
    ),
]
Engine = Annotated[
    str,
    typer.Option("--engine", metavar="NAME", help="reference:PRESET, or python:package.module:factory."),
]
Preset = Annotated[
    str,
    typer.Option(
        "--preset", "--engine", metavar="NAME", help="A preset of WorldMove's own, or an engine as --engine names it."
    ),
]
Strategy = Annotated[
    str | None, typer.Option("--strategy", metavar="NAME", help="Left out: the one that admission chooses.")
]
Protect = Annotated[
    int,
    typer.Option(
        "--protect",
        metavar="N",
        min=0,
        max=MAX_EVERY,
        help="Every N blocks, keep a snapshot of each world in another worker.",
    ),
]
Transport = Annotated[
    PathName, typer.Option("--transport", help="How bytes travel: shm is memory shared on one host, tcp a connection.")
]
Keep = Annotated[float, typer.Option("--keep-s", min=1, help="Seconds that a session nobody watches is kept.")]
Patience = Annotated[
    float,
    typer.Option(
        "--patience-s",
        min=1,
        max=MAX_WAIT_S,
        help="Seconds that a move may prepare before its pause: a snapshot's way.",
    ),
]

Link = Annotated[
    str | None, typer.Option("--link", metavar="SPEED", help="Slow the path down to this, for a trial: 1gbit, 25mbit.")
]

DEFAULT_ENGINE = "reference:island"


def engine_named(preset: str) -> str:
    """Return the engine that a preset's name stands for; a name with a colon is an engine's already."""
    return preset if ":" in preset else f"reference:{preset}"
