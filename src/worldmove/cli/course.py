"""How one command went: how much it says, and what it has done by now, whether or not that can be written."""

import sys
from dataclasses import dataclass, field
from typing import TextIO

from worldmove.cli.output import Verbosity


@dataclass(slots=True, kw_only=True)
class Course:
    """One command's."""

    verbosity: Verbosity = field(default_factory=Verbosity)
    out: TextIO = field(default_factory=lambda: sys.stdout)
    """Where its data goes. While it runs, standard output is no longer that: others write to it, too."""
    done: list[str] = field(default_factory=list)
    """A sentence for each thing that has happened and that only standard output would tell."""

    def unwritten(self, failure: OSError) -> str:
        """Return what to say on standard error where standard output failed: nothing of a reader who had enough."""
        why = f"Standard output could not be written ({failure.strerror or failure})."
        if isinstance(failure, BrokenPipeError):
            why = "Nobody reads standard output any more." if self.done else ""
        return " ".join([*self.done, why]).strip()
