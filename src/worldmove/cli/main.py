"""The command line's beginning and end: commands, options that all share, errors, exit status."""

import errno
import os
import sys
import traceback
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from worldmove import __version__
from worldmove.cli import acting, audit, bench, doctor, inspect, keeping, listing, plan, serving, verify
from worldmove.cli.course import Course
from worldmove.cli.exits import ExitCode, exit_of, exit_told, exit_unwritten
from worldmove.cli.log import configure_log
from worldmove.cli.output import Output, Verbosity
from worldmove.cli.termination import END_S, ToldToEnd, end_within
from worldmove.errors import UserError, WorldMoveError
from worldmove.worker.standard_streams import kept_in, take_over

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
    verbosity = Verbosity(quiet=quiet, verbose=verbose, color=color, debug=debug)
    context.ensure_object(Course).verbosity = verbosity
    configure_log(verbosity)


for part in (serving, listing, plan, acting, keeping, verify, inspect, doctor, audit, bench):
    part.add(app)


def main(argv: Sequence[str] | None = None) -> None:
    """Run a command line and exit with its status."""
    take_over()
    arguments = hoist(sys.argv[1:] if argv is None else argv) or ["--help"]
    status = run(arguments)
    end_within(END_S, status)
    sys.exit(status)


def run(arguments: Sequence[str]) -> int:
    """Run a command line and return its exit status. An error is one sentence; ``--debug`` shows its origin."""
    course = Course(verbosity=Verbosity(color="--no-color" not in arguments))
    try:
        returned = app(args=list(arguments), prog_name="worldmove", standalone_mode=False, obj=course)
    except KeyboardInterrupt:
        status = ExitCode.INTERRUPTED
    except ToldToEnd as told:
        status = exit_told(told)
    except Exception as raised:  # noqa: BLE001  (the process ends with it)
        status = tell_error(raised, arguments, course)
    else:
        status = ExitCode(returned) if isinstance(returned, int) else ExitCode.DONE
    if status.is_interrupt:
        tell_done(course)
    return tell_unwritten(status, course)


def tell_error(raised: Exception, arguments: Sequence[str], course: Course) -> ExitCode:
    """Say what went wrong and return the exit status."""
    if "--debug" in arguments:
        traceback.print_exception(raised)
    error = as_error(raised)
    tell_done(course)
    Output(course.verbosity, as_json="--json" in arguments, done=course.done, out=course.out).error(error)
    return exit_of(error)


def tell_done(course: Course) -> None:
    """Say what was done by a command that does not come to its end."""
    for sentence in course.done:
        Output(course.verbosity, as_json=False).insist(sentence)


def tell_unwritten(status: ExitCode, course: Course) -> ExitCode:
    """Say on standard error what was done, where standard output could not take all of it; return the exit status."""
    course.out.flush()
    kept = kept_in(course.out)
    if kept is None or kept.failure is None:
        return status
    sentence = course.unwritten(kept.failure)
    if sentence:
        Output(course.verbosity, as_json=False).insist(sentence)
    return exit_unwritten(status, kept.failure)


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
