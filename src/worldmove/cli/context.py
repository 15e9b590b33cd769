"""What the command line was told before its command: how much to say, and how."""

import typer

from worldmove.cli.course import Course
from worldmove.cli.output import Output, Verbosity
from worldmove.worker.standard_streams import set_apart


def output_of(context: typer.Context, *, as_json: bool) -> Output:
    """Return where a command writes: alone from now on, whatever prints in its process."""
    course = context.ensure_object(Course)
    set_apart(course.out)
    return Output(course.verbosity, as_json=as_json, done=course.done, out=course.out)


def verbosity_of(context: typer.Context) -> Verbosity:
    """Return how much a command says."""
    return context.ensure_object(Course).verbosity
