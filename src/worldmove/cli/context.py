"""What the command line was told before its command: how much to say, and how."""

import typer

from worldmove.cli.output import Output, Verbosity


def output_of(context: typer.Context, *, as_json: bool) -> Output:
    """Return where a command writes."""
    return Output(verbosity_of(context), as_json=as_json)


def verbosity_of(context: typer.Context) -> Verbosity:
    """Return how much a command says."""
    found = context.find_object(Verbosity)
    return Verbosity() if found is None else found
