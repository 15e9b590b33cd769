"""The edge at which a bench looks into a worker: where its threads stand, and what each piece of blocking work took.

Only where a bench asks for it (``WorkerConfig.profile``): looking costs time. Instants are those of the event loop.
"""

import json
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

EVERY_S = 0.0005
PACKAGE = "worldmove"
IDLE = ("select", "_worker", "wait", "_bootstrap_inner")
"""Functions in which a thread waits for something to do."""

Line = tuple[CodeType, int]
Stand = tuple[str, Line, Line]
"""A thread's name, the line of this package that it stands in, and the very line."""


class Profile:
    """What one worker's process did: jobs, marks, and the lines of Python in which its threads stood."""

    def __init__(self, path: str) -> None:
        """``path``: the file to write. Empty: nobody wants to know, and nothing is looked at."""
        self._path = path
        self._jobs: list[dict[str, Any]] = []
        self._marks: list[dict[str, Any]] = []
        self._samples: list[tuple[float, list[Stand]]] = []
        self._ends = threading.Event()
        self._sampler = threading.Thread(target=self._sample, name="profile", daemon=True)

    def start(self) -> None:
        """Begin to look at the threads."""
        if self._path:
            self._sampler.start()

    def job(self, thread: str, function: Callable[[], object], spent: dict[str, float]) -> None:
        """Note a piece of work: when it was asked for, began, ended, and was over for who had asked; its CPU time."""
        while isinstance(function, partial):
            function = function.func
        self._jobs.append({"thread": thread, "what": getattr(function, "__qualname__", repr(function)), **spent})

    def hearing(self, log: Callable[..., None]) -> Callable[..., None]:
        """Return this log, of which the lines are noted that say in which phase a move is."""

        def said(event: str, **fields: Any) -> None:
            log(event, **fields)
            if event == "move_phase":
                self._marks.append({name: fields[name] for name in ("at", "side", "phase")})

        return said if self.is_wanted else log

    @property
    def is_wanted(self) -> bool:
        """Whether anybody wants to know."""
        return bool(self._path)

    def write(self) -> None:
        """Look no more, and write everything as one JSON object."""
        if not self._path:
            return
        self._ends.set()
        self._sampler.join()
        samples = [[at, [[name, _said(own), _said(top)] for name, own, top in stands]] for at, stands in self._samples]
        told = {"jobs": self._jobs, "marks": self._marks, "samples": samples}
        Path(self._path).write_text(json.dumps(told, allow_nan=False), encoding="utf-8")

    def _sample(self) -> None:
        me = threading.get_ident()
        while not self._ends.wait(EVERY_S):
            names = {thread.ident: thread.name for thread in threading.enumerate()}
            stands = [
                (names.get(ident, "?"), _own(frame), (frame.f_code, frame.f_lineno))
                for ident, frame in sys._current_frames().items()
                if ident != me and frame.f_code.co_name not in IDLE
            ]
            if stands or (self._samples and self._samples[-1][1]):  # a stand lasts until the next sample
                self._samples.append((time.monotonic(), stands))


def _own(frame: FrameType) -> Line:
    """Return the innermost line of this package; the innermost of all where there is none."""
    own: FrameType | None = frame
    while own is not None and f"/{PACKAGE}/" not in own.f_code.co_filename:
        own = own.f_back
    return (own.f_code, own.f_lineno) if own is not None else (frame.f_code, frame.f_lineno)


def _said(line: Line) -> str:
    code, number = line
    _, inside, name = code.co_filename.rpartition(f"/{PACKAGE}/")
    return f"{name if inside else Path(code.co_filename).name}:{number} {code.co_name}"
