"""A bar for work whose length is known: on a terminal only, and never with --quiet."""

from collections.abc import Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from worldmove.cli.output import Output, Verbosity


class Bar:
    """How much is done. Without a place to be shown it counts for itself."""

    def __init__(self, shown: Progress | None, text: str) -> None:
        self._shown = shown
        self._task = None if shown is None else shown.add_task(text, total=None)

    def of(self, total: int) -> None:
        """Say how much there is."""
        if self._shown is not None and self._task is not None:
            self._shown.update(self._task, total=total)

    def done(self) -> None:
        """One more is done."""
        if self._shown is not None and self._task is not None:
            self._shown.advance(self._task)


@contextmanager
def counting(output: Output, verbosity: Verbosity, text: str) -> Iterator[Bar]:
    """Give a bar, and take it away at the end."""
    if verbosity.quiet or not output.notes.is_terminal:
        yield Bar(None, text)
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=output.notes, transient=True) as shown:
        yield Bar(shown, text)
