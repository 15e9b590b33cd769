"""Starting a server from the command line: what it is told, its loading line, its page."""

import asyncio
import os
import sys
import time
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rich.status import Status

from worldmove.cli.log import set_log_aside
from worldmove.cli.output import Output, Verbosity
from worldmove.move.patience import PATIENCE_S
from worldmove.serve.server_config import Hooks, ServerConfig
from worldmove.serve.state_folder import path_notes_file
from worldmove.units import MIB
from worldmove.worker.config import WorkerConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """What a server is told on the command line."""

    host: str
    port: int
    workers: int
    engine: str
    threads: int
    slots: int
    keep_s: float
    state: Path | None = None
    """The folder of its ledger; None: a temporary one."""
    transport: str = "shm"
    check_blocks: int = 2
    """What a retired copy steps after a move."""
    account_every: int = 16
    """After how many blocks a session's owner accounts for its state."""
    profile: str = ""
    """The folder for what is seen of the workers' threads."""
    gpus: tuple[str, ...] = ()
    """The workers' GPUs, in turn."""
    patience_s: float = PATIENCE_S
    """How long what comes before a move's pause may take."""
    slot_mib: int = 0
    """Of each slot at least; 0: what a young world needs, and a quarter."""
    protect_every: int = 0
    """After how many blocks another worker keeps a snapshot of each world; 0: never."""


def start(told: Start, output: Output, verbosity: Verbosity, *, browser: bool) -> None:
    """Run a server until it is told to end."""
    # torch takes seconds to import: only the commands that compute pay for it.
    from worldmove.serve.leftovers import remove_leftovers  # noqa: PLC0415
    from worldmove.serve.server import run  # noqa: PLC0415

    if told.state is None:
        remove_leftovers(time.time())

    num_dropped = set_log_aside(verbosity)
    with loading(output, verbosity) as line:

        def ready(url: str) -> None:
            line.stop()
            state = None if told.state is None else str(told.state)
            output.document("serve", {"url": url, "pid": os.getpid(), "workers": told.workers, "state": state})
            output.text(url)
            if output.forgiven() is not None:
                output.insist(f"It answers at {url}; standard output could not be written.")
            if told.host not in ("127.0.0.1", "localhost", "::1"):
                output.note(f"Everybody who reaches {told.host} can use it: there is no password.")
            if told.state is not None:
                output.note(f"Its state is in {told.state}: if it is killed, start it again and the worlds go on.")
            output.note("Ctrl-C ends it, and every world with it.")
            if browser:
                show(url, output)

        hooks = Hooks(stage=line.stage, ready=ready, num_lines_dropped=num_dropped)
        asyncio.run(run(config_of(told, verbosity), hooks))


def config_of(told: Start, verbosity: Verbosity) -> ServerConfig:
    """Return the server's configuration."""
    level = "info" if verbosity.verbose else "warning"
    worker = WorkerConfig(
        engine=told.engine,
        num_threads=told.threads,
        num_slots=told.slots,
        arena_bytes=told.slot_mib * MIB,
        check_blocks=told.check_blocks,
        path_notes=str(path_notes_file(os.environ)),
        profile=told.profile,
        log_level=level,
    )
    return ServerConfig(
        host=told.host,
        port=told.port,
        state=told.state,
        num_workers=told.workers,
        gpus=told.gpus,
        worker=worker,
        keep_s=told.keep_s,
        transport=told.transport,
        account_every=told.account_every,
        protect_every=told.protect_every,
        patience_s=told.patience_s,
    )


class LoadingLine:
    """One line that names the stage: rewritten on a terminal, one line a stage elsewhere."""

    def __init__(self, output: Output, status: Status | None) -> None:
        self._output = output
        self._status = status

    def stage(self, text: str) -> None:
        """Name the stage."""
        if self._status is None:
            self._output.note(text)
        else:
            self._status.update(text)
            self._status.start()

    def stop(self) -> None:
        """Take the line away."""
        if self._status is not None:
            self._status.stop()


@contextmanager
def loading(output: Output, verbosity: Verbosity) -> Iterator[LoadingLine]:
    """Give a loading line, and take it away at the end."""
    rewritten = output.notes.is_terminal and not (verbosity.quiet or verbosity.verbose)
    line = LoadingLine(output, Status("", console=output.notes) if rewritten else None)
    try:
        yield line
    finally:
        line.stop()


def show(url: str, output: Output) -> None:
    """Open the page in a browser, if this machine has a screen."""
    has_screen = sys.platform in ("darwin", "win32") or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    if not has_screen or not webbrowser.open(url):
        output.note(f"Open {url} in a browser.")
