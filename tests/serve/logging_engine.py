"""The counting engine, which writes down every list that it steps: one JSON line each, in a file for each process."""

import json
import os
from collections.abc import Sequence
from pathlib import Path

from tests.worker.counting import CountingEngine, World
from worldmove.engine.base import Block, KeyChange

FOLDER = "TEST_LISTS_FOLDER"


class LoggingEngine(CountingEngine):
    """An engine whose log outlives its server."""

    def step(self, session: World, changes: Sequence[KeyChange]) -> Block:
        with (Path(os.environ[FOLDER]) / f"{os.getpid()}.jsonl").open("a", encoding="utf-8") as file:
            seed = session.generator.initial_seed()
            file.write(json.dumps([seed, session.block, [[c.number, c.key, c.down] for c in changes]]) + "\n")
        return super().step(session, changes)


def engine(num_threads: int) -> LoggingEngine:
    return LoggingEngine(num_threads)


def lists_in(folder: Path, seed: int) -> dict[int, list[KeyChange]]:
    """Return every list that a seed's world stepped, by block. Raises AssertionError where one was closed twice."""
    found: dict[int, list[KeyChange]] = {}
    for file in sorted(folder.glob("*.jsonl")):
        for line in file.read_text(encoding="utf-8").splitlines():
            world, block, changes = json.loads(line)
            if world != seed:
                continue
            read = [KeyChange(number=number, key=key, down=down) for number, key, down in changes]
            assert found.setdefault(block, read) == read, f"block {block} was stepped from two lists"
    return found
