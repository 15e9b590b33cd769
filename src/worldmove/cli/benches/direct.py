"""A verified move between two processes without a server: no loop, no ledger, no pictures beside it.

What is left is what the state and the path take by themselves: freeze, pull, build, install, the source's two passes
and the destination's one, everything compared. Both ends call what a worker calls. Two processes of this host tell
instants by one clock, so the parts of both stand on one line.
"""

import multiprocessing
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

from worldmove.cli.benches.direct_destination import destination
from worldmove.cli.benches.direct_end import Asked
from worldmove.cli.benches.direct_source import source
from worldmove.cli.benches.series import median_of, summary
from worldmove.cli.benches.surroundings import environment
from worldmove.errors import UserError
from worldmove.fleet.gpus import dealt

ANSWER_S = 300.0
"""How long an end may take, its engine's warm-up included."""
JOIN_S = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Direct:
    """What came of it. ``parts``: ms from the freeze at which each ended; ``copy_ms``: one flat copy, each time."""

    num_bytes: int
    num_storages: int
    parts: dict[str, list[float]]
    copy_ms: list[float]

    @property
    def match_ms(self) -> list[float]:
        """From the freeze until the destination has compared everything."""
        return self.parts["matched"]

    @property
    def match_in_copies(self) -> float | None:
        """The same in flat copies of the same run."""
        match, copy = median_of(self.match_ms), median_of(self.copy_ms)
        return round(match / copy, 3) if match and copy else None

    def fields(self) -> dict[str, Any]:
        """Return everything, for programs."""
        return {
            "num_bytes": self.num_bytes,
            "num_storages": self.num_storages,
            "match_ms": summary(self.match_ms),
            "copy_ms": summary(self.copy_ms),
            "match_in_copies": self.match_in_copies,
            "parts_ms": {name: summary(values) for name, values in self.parts.items()},
            "samples_ms": {name: [round(value, 4) for value in values] for name, values in self.parts.items()},
        }


def measure_direct(
    engine: str,
    threads: int,
    repeats: int,
    stage: Callable[[str], None],
    *,
    gpus: Sequence[str] = (),
    path: str | None = None,
) -> Direct:
    """Bring a session of an engine across so many times, each time a block later. Raises UserError.

    ``gpus``: from the first of them to the second; without any, both ends are on the one that a process takes.
    ``path``: the one to take; left out, the fastest that a worker has.
    """
    stage(f"between two processes without a server: {engine}")
    context = multiprocessing.get_context("spawn")
    between, own = context.Pipe(), dealt((source.__name__, destination.__name__), gpus)
    ends: list[tuple[BaseProcess, Connection]] = []
    for work, link in zip((source, destination), between, strict=True):
        here, there = context.Pipe()
        process: BaseProcess = context.Process(
            target=work, args=(Asked(engine, threads, repeats, path), link, there), name=work.__name__
        )
        with environment(own[work.__name__]):
            process.start()
        there.close()
        link.close()
        ends.append((process, here))
    try:
        return _joined([_answer(process, here) for process, here in ends])
    finally:
        for process, here in ends:
            here.close()
            process.join(JOIN_S)
            if process.is_alive():
                process.kill()


def _answer(process: BaseProcess, link: Connection) -> dict[str, Any]:
    try:
        if link.poll(ANSWER_S):
            found: dict[str, Any] = link.recv()
            return found
    except EOFError as error:
        raise UserError(f"the bench's {process.name} ended without an answer", code="internal") from error
    raise UserError(f"the bench's {process.name} gave no answer within {ANSWER_S:.0f} s", code="internal")


def _joined(answers: Sequence[dict[str, Any]]) -> Direct:
    there, here = answers
    begins = there["instants"]["begin"]
    parts: dict[str, list[float]] = {}
    for name, instants in (there["instants"] | here["instants"]).items():
        if name != "begin":
            parts[name] = [(at - begin) * 1000 for at, begin in zip(instants, begins, strict=True)]
    return Direct(
        num_bytes=there["num_bytes"], num_storages=there["num_storages"], parts=parts, copy_ms=here["copy_ms"]
    )
