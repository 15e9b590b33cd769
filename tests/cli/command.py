"""A command line that is run in this process: its exit status, and both of its streams."""

import io
import json
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from typing import Any

import structlog

from worldmove.cli.main import hoist, run


@dataclass
class Ran:
    status: int
    out: str
    err: str

    @property
    def document(self) -> dict[str, Any]:
        """The one document on standard output: JSON as it is defined, by a name of ours."""
        (line,) = self.out.splitlines()
        found = dict(json.loads(line, parse_constant=no_number))
        assert found["schema"].startswith("worldmove.")
        assert found["version"] == 1
        return found


def no_number(text: str) -> None:
    """For what Python reads and JSON does not have."""
    raise AssertionError(f"{text} is no JSON")


def worldmove(*arguments: str) -> Ran:
    """Run a command line in this process."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        status = run(hoist(arguments) or ["--help"])
    structlog.reset_defaults()
    return Ran(status, out.getvalue(), err.getvalue())
