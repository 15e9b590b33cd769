"""The log of a command: a client's is written where it is said, a server's by a thread, so that nobody waits for it."""

import sys
from collections.abc import Callable

import structlog
from structlog.typing import Processor

from worldmove.cli.output import Verbosity
from worldmove.worker import process_log


def configure_log(verbosity: Verbosity) -> None:
    """Write what this process does to standard error: warnings, or every change of phase."""
    structlog.configure(
        processors=lines(colors=verbosity.color and sys.stderr.isatty()),
        wrapper_class=structlog.make_filtering_bound_logger(_level(verbosity)),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )


def set_log_aside(verbosity: Verbosity) -> Callable[[], int]:
    """Have a server's log, and all else on standard error, wait for nobody. Returns what counts the lines dropped."""
    queue = process_log.configure_log(_level(verbosity), lines(colors=verbosity.color and sys.stderr.isatty()))
    return lambda: 0 if queue is None else queue.num_dropped


def _level(verbosity: Verbosity) -> str:
    return "info" if verbosity.verbose else ("error" if verbosity.quiet else "warning")


def lines(*, colors: bool) -> list[Processor]:
    """Return how a server says it.

    A traceback is laid out as Python does. With its frames' values, as consoles show them, it held a loop up
    for 220 ms and was of 146 KB (2026-11-30, a table of 1,000 lists in 13 frames), and said what is nobody's concern.
    """
    return [
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.dev.ConsoleRenderer(colors=colors, exception_formatter=structlog.dev.plain_traceback),
    ]
