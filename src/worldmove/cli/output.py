"""Data on standard output, everything else on standard error; as text for people, or as JSON for programs."""

import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TextIO

from rich.console import Console, RenderableType

from worldmove.cli.json_text import json_text
from worldmove.errors import WorldMoveError
from worldmove.worker.standard_streams import kept_in

VERSION = 1
"""Of every document: fields are added to it, never renamed."""
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""What a terminal would obey and not show, or nothing can write; a file or a server may say it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verbosity:
    """How much is said beside the data."""

    quiet: bool = False
    verbose: bool = False
    color: bool = True
    debug: bool = False


class Output:
    """Where one command writes."""

    def __init__(
        self,
        verbosity: Verbosity,
        *,
        as_json: bool,
        done: list[str] | None = None,
        out: TextIO | None = None,
        err: TextIO | None = None,
    ) -> None:
        """``done``: where it is noted what has been done, for the case that it cannot be written."""
        self.as_json = as_json
        self._done = [] if done is None else done
        self._out = out or sys.stdout
        self._quiet = verbosity.quiet
        self._sheets = Console(file=self._out, no_color=not verbosity.color, highlight=False)
        self.notes = Console(file=err or sys.stderr, no_color=not verbosity.color, highlight=False, soft_wrap=True)
        """Standard error. Rich honours NO_COLOR and TERM=dumb by itself."""

    def document(self, schema: str, fields: Mapping[str, Any]) -> None:
        """Write one JSON document, if that is asked for. No field takes the place of its name and version."""
        if self.as_json:
            own = {"schema": f"worldmove.{schema}", "version": VERSION}
            self.line(json_text(own | dict(fields) | own))

    def text(self, line: str) -> None:
        """Write one line of data, unless JSON is asked for."""
        if not self.as_json:
            self.line(line)

    def table(self, header: Sequence[str], rows: Sequence[Sequence[object]], *, nothing: str) -> None:
        """Write a table without borders, numbers to the right, unless JSON is asked for."""
        if self.as_json:
            return
        cells = [list(header), *([_cell(value) for value in row] for row in rows)]
        widths = [max(len(row[column]) for row in cells) for column in range(len(header))]
        right = [bool(rows) and all(_is_number(row[column]) for row in rows) for column in range(len(header))]
        for row in cells:
            parts = [c.rjust(w) if r else c.ljust(w) for c, w, r in zip(row, widths, right, strict=True)]
            self.line("  ".join(parts).rstrip())
        if not rows:
            self.note(nothing)

    def rich(self, sheet: RenderableType) -> None:
        """Write a laid out sheet of data, unless JSON is asked for: in colour on a terminal, plain text elsewhere."""
        if not self.as_json:
            self._sheets.print(sheet)

    def note(self, text: str) -> None:
        """Say something beside the data, unless asked to be quiet."""
        if not self._quiet:
            self.notes.print(printable(text), markup=False)

    def did(self, sentence: str) -> None:
        """Note what has been done, before anything of it is written."""
        self._done.append(sentence)

    def insist(self, text: str) -> None:
        """Say something on standard error, quiet or not."""
        self.notes.print(printable(text), markup=False)

    def line(self, text: str) -> None:
        """Write one line of data."""
        self._out.write(printable(text) + "\n")
        self._out.flush()

    def forgiven(self) -> OSError | None:
        """Return why standard output could not be written, for once: a server goes on without it, and ends with 0."""
        kept = kept_in(self._out)
        if kept is None:
            return None
        failure, kept.failure = kept.failure, None
        return failure

    def error(self, error: WorldMoveError) -> None:
        """Say what went wrong, in one sentence; as JSON on standard output where that is asked for."""
        if self.as_json:
            self.did(str(error))
            self.document("error", {"error": error_fields(error)})
        else:
            self.insist(str(error))


def printable(text: str) -> str:
    """Return a text with every control character but line feed and tab spelled out."""
    return _CONTROLS.sub(lambda found: f"\\x{ord(found[0]):02x}", text)


def error_fields(error: WorldMoveError) -> dict[str, Any]:
    """Return an error as every interface shows it."""
    return {
        "code": error.code,
        "message": str(error),
        "fault": error.fault.value,
        "session_runs": error.session_runs,
        "retry_after_s": getattr(error, "retry_after_s", None),
    }


def _cell(value: object) -> str:
    if value is None:
        return "-"
    return f"{value:,.1f}" if isinstance(value, float) else " ".join(printable(str(value)).splitlines())


def _is_number(value: object) -> bool:
    return value is None or isinstance(value, int | float)
