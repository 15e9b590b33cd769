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
        (line,) = self.out.splitlines()
        return dict(json.loads(line))


def worldmove(*arguments: str) -> Ran:
    """Run a command line in this process."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        status = run(hoist(arguments) or ["--help"])
    structlog.reset_defaults()
    return Ran(status, out.getvalue(), err.getvalue())
