"""What the command line was told before its command: how much to say, and how."""

import typer

from worldmove.cli.course import Course
from worldmove.cli.output import Output, Verbosity


def output_of(context: typer.Context, *, as_json: bool) -> Output:
    """Return where a command writes."""
    course = context.ensure_object(Course)
    return Output(course.verbosity, as_json=as_json, done=course.done)


def verbosity_of(context: typer.Context) -> Verbosity:
    """Return how much a command says."""
    return context.ensure_object(Course).verbosity
