"""The command line's beginning and end: commands, options that all share, errors, exit status."""

import errno
import os
import sys
import traceback
from collections.abc import Sequence
from typing import Annotated, Any

import structlog
import typer

from worldmove import __version__
from worldmove.cli import acting, audit, bench, doctor, inspect, keeping, listing, plan, serving, verify
from worldmove.cli.exits import ExitCode, exit_of
from worldmove.cli.output import Output, Verbosity
from worldmove.errors import UserError, WorldMoveError

SHARED = ("-q", "--quiet", "-v", "--verbose", "--debug", "--no-color")
"""Options that may stand anywhere before a ``--``."""

UsageFault: Any = typer.BadParameter.__base__
"""What typer raises for a command line that it does not understand; it has no public name."""

app = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Move live worlds between workers, bit for bit. A quick look: worldmove demo",
)


def tell_version(value: bool) -> None:
    """Print the version and end, if asked to."""
    if value:
        Output(Verbosity(), as_json=False).line(__version__)
        raise typer.Exit


@app.callback()
def shared(
    context: typer.Context,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing beside the data.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Say what happens.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show where an error came from.")] = False,
    no_color: Annotated[bool, typer.Option("--no-color", help="Also: NO_COLOR=1.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=tell_version, is_eager=True, help="Print the version and end.")
    ] = False,
) -> None:
    """Take what is said before the command."""
    color = not (no_color or os.environ.get("NO_COLOR"))
    context.obj = Verbosity(quiet=quiet, verbose=verbose, color=color, debug=debug)
    configure_log(context.obj)


for part in (serving, listing, plan, acting, keeping, verify, inspect, doctor, audit, bench):
    part.add(app)


def main(argv: Sequence[str] | None = None) -> None:
    """Run a command line and exit with its status."""
    arguments = hoist(sys.argv[1:] if argv is None else argv) or ["--help"]
    sys.exit(run(arguments))


def run(arguments: Sequence[str]) -> int:
    """Run a command line and return its exit status. An error is one sentence; ``--debug`` shows its origin."""
    try:
        returned = app(args=list(arguments), prog_name="worldmove", standalone_mode=False)
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # so that the last flush does not complain
        return ExitCode.FAILED
    except Exception as raised:  # noqa: BLE001  (the process ends with it)
        return tell_error(raised, arguments)
    return returned if isinstance(returned, int) else ExitCode.DONE


def tell_error(raised: Exception, arguments: Sequence[str]) -> ExitCode:
    """Say what went wrong and return the exit status."""
    if "--debug" in arguments:
        traceback.print_exception(raised)
    error = as_error(raised)
    Output(Verbosity(color="--no-color" not in arguments), as_json="--json" in arguments).error(error)
    return exit_of(error)


def as_error(raised: Exception) -> WorldMoveError:
    """Return an exception as an error of ours, in one sentence."""
    if isinstance(raised, WorldMoveError):
        return raised
    if isinstance(raised, UsageFault):
        said = raised.format_message().rstrip(".")
        return UserError(f"{said}{'' if said.endswith('?') else '.'} See worldmove --help.")
    if isinstance(raised, OSError) and raised.errno == errno.ENOSPC:
        where = raised.filename or "memory for slots"
        return UserError(f"No space is left ({where}); free some, or use fewer --workers or --slots.", code="no_space")
    why = f"Unexpected failure, {type(raised).__name__}: {raised}. --debug shows where it came from."
    return UserError(why, code="internal")


def hoist(arguments: Sequence[str]) -> list[str]:
    """Move the options that all commands share to the front, wherever they were written."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    before = arguments[:end]
    shared_ones = [argument for argument in before if argument in SHARED]
    return [*shared_ones, *(argument for argument in before if argument not in SHARED), *arguments[end:]]


def configure_log(verbosity: Verbosity) -> None:
    """Write what this process does to standard error: warnings, or every change of phase."""
    level = "info" if verbosity.verbose else ("error" if verbosity.quiet else "warning")
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.dev.ConsoleRenderer(colors=verbosity.color and sys.stderr.isatty()),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
