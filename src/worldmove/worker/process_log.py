"""The edge that writes a worker's log: one JSON line for each event, to standard error."""

import sys
import time
from collections.abc import MutableMapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, TextIO, cast

import structlog


class Unbreakable:
    """A stream for the log that outlives its reader: a worker goes on when its server, and its terminal, are gone."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        with suppress(OSError):
            return self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        with suppress(OSError):
            self._stream.flush()


def configure_log(level: str) -> None:
    """Write JSON lines to standard error."""
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            stamp,
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(cast("TextIO", Unbreakable(sys.stderr))),
    )


def stamp(logger: Any, method: str, line: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Give a line its ``timestamp``: now, or, where it is said later than it was, ``at`` by the event loop's clock."""
    at = line.pop("at", None)
    late_s = 0.0 if at is None else time.monotonic() - at
    line["timestamp"] = datetime.fromtimestamp(time.time() - late_s, UTC).isoformat().replace("+00:00", "Z")
    return line
