"""``demo`` and ``serve``: run a server here, until Ctrl-C or SIGTERM."""

import os
from typing import Annotated

import typer

from worldmove.cli.context import output_of, verbosity_of
from worldmove.cli.exits import ExitCode, epilog
from worldmove.cli.options import (
    DEFAULT_ENGINE,
    Engine,
    Gpus,
    Host,
    Json,
    Keep,
    PathName,
    Patience,
    Port,
    Protect,
    SlotMib,
    Slots,
    State,
    Threads,
    Transport,
    Workers,
)
from worldmove.cli.start import Start, start
from worldmove.fleet.gpus import gpus_named
from worldmove.move.patience import PATIENCE_S
from worldmove.serve.state_folder import default_folder

HELP = epilog(ExitCode.DONE, ExitCode.FAILED, ExitCode.USAGE)
Browser = Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page in a browser when it answers.")]


def add(app: typer.Typer) -> None:
    """Add these commands."""
    app.command(epilog=HELP)(demo)
    app.command(epilog=HELP)(serve)


def demo(
    context: typer.Context,
    *,
    host: Host = "127.0.0.1",
    port: Port = 8787,
    workers: Workers = 2,
    gpus: Gpus = "",
    browser: Browser = True,
    engine: Engine = DEFAULT_ENGINE,
    threads: Threads = 1,
    slots: Slots = 3,
    slot_mib: SlotMib = 0,
    keep_s: Keep = 600.0,
    patience_s: Patience = PATIENCE_S,
    transport: Transport = PathName.SHM,
    protect: Protect = 0,
    as_json: Json = False,
) -> None:
    """Open a live world in your browser.

    \b
    worldmove demo
    worldmove demo --port 9000 --no-browser
    """
    told = Start(
        host=host,
        port=port,
        workers=workers,
        gpus=gpus_named(gpus),
        engine=engine,
        threads=threads,
        slots=slots,
        slot_mib=slot_mib,
        keep_s=keep_s,
        patience_s=patience_s,
        transport=transport.value,
        protect_every=protect,
    )
    _start(context, told, as_json=as_json, browser=browser)


def serve(
    context: typer.Context,
    *,
    host: Host = "127.0.0.1",
    port: Port = 8787,
    workers: Workers = 2,
    gpus: Gpus = "",
    browser: Browser = False,
    engine: Engine = DEFAULT_ENGINE,
    threads: Threads = 1,
    slots: Slots = 3,
    slot_mib: SlotMib = 0,
    keep_s: Keep = 600.0,
    patience_s: Patience = PATIENCE_S,
    state: State = None,
    transport: Transport = PathName.SHM,
    protect: Protect = 0,
    as_json: Json = False,
) -> None:
    """Run a server, without a browser. Killed and started again, it goes on with its worlds.

    \b
    worldmove serve
    worldmove serve --port 9000 --workers 3
    worldmove serve --protect 8
    """
    told = Start(
        host=host,
        port=port,
        workers=workers,
        gpus=gpus_named(gpus),
        engine=engine,
        threads=threads,
        slots=slots,
        slot_mib=slot_mib,
        keep_s=keep_s,
        patience_s=patience_s,
        state=state or default_folder(port, os.environ),
        transport=transport.value,
        protect_every=protect,
    )
    _start(context, told, as_json=as_json, browser=browser)


def _start(context: typer.Context, told: Start, *, as_json: bool, browser: bool) -> None:
    start(told, output_of(context, as_json=as_json), verbosity_of(context), browser=browser)
