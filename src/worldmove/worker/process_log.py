"""The edge that configures a process's log: what every part of it and every library says, to standard error.

It waits for nobody who reads it, and fails for nobody who does not (``log_queue``).
"""

import atexit
import logging
import sys
import time
from collections.abc import Callable, MutableMapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any

import structlog
from structlog.typing import Processor

from worldmove.worker.log_queue import LogQueue
from worldmove.worker.standard_streams import STDERR, kept_in

END_S = 1.0
"""How long the end of a process waits for its log to be written."""


class Lines:
    """A logger for structlog: each line is put at once and whole, without a lock that a line within could wait for."""

    def __init__(self, put: Callable[[bytes], None]) -> None:
        self._put = put

    def msg(self, line: str) -> None:
        """Put one line."""
        self._put(f"{line}\n".encode(errors="backslashreplace"))

    debug = info = warning = error = critical = msg


class Libraries(logging.Handler):
    """What libraries log, as lines of this log."""

    def emit(self, record: logging.LogRecord) -> None:
        """Say it; a record that cannot be said is told by its library's own rule."""
        try:
            fields = {"logger": record.name}
            if record.exc_info:
                # Laid out here: with its locals, as a console would, it takes long and says too much.
                fields["exception"] = logging.Formatter().formatException(record.exc_info)
            log = structlog.get_logger()
            (log.error if record.levelno >= logging.ERROR else log.warning)(record.getMessage(), **fields)
        except Exception:  # noqa: BLE001  (a log raises nothing into who logs)
            self.handleError(record)


def configure_log(level: str, processors: Sequence[Processor]) -> LogQueue | None:
    """Write what this process says by a thread of its own; None where its standard error is not taken over."""
    kept = kept_in(sys.stderr)
    if kept is None:
        return None
    queue = kept.aside = LogQueue(STDERR, lost=partial(lost, processors))
    atexit.register(queue.close, END_S)  # behind the traceback, if any, with which the process ends
    structlog.configure(
        processors=processors,
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=lambda *_: Lines(queue.put),
    )
    of_libraries = max(logging.WARNING, logging.getLevelNamesMapping()[level.upper()])
    logging.basicConfig(handlers=[Libraries()], level=of_libraries, force=True)
    return queue


def json_lines() -> list[Processor]:
    """Return how a worker says it: one JSON line for each event."""
    return [
        structlog.processors.add_log_level,
        stamp,
        structlog.processors.format_exc_info,
        structlog.processors.JSONRenderer(),
    ]


def lost(processors: Sequence[Processor], num_lines: int) -> bytes:
    """Return the line that says how many were dropped, as every other line is said."""
    line: Any = {"event": "log_dropped", "lines": num_lines, "why": "nobody read it, or it could not be written"}
    for process in processors:
        line = process(None, "warning", line)
    return f"{line}\n".encode(errors="backslashreplace")


def stamp(logger: Any, method: str, line: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Give a line its ``timestamp``: now, or, where it is said later than it was, ``at`` by the event loop's clock."""
    at = line.pop("at", None)
    late_s = 0.0 if at is None else time.monotonic() - at
    line["timestamp"] = datetime.fromtimestamp(time.time() - late_s, UTC).isoformat().replace("+00:00", "Z")
    return line
