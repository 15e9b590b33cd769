"""Purity: files that decide see no clock, socket, thread or tensor; drivers meet the world only through ports.

Two nets over the syntax of the package; ruff's banned-api is a third, and the seal over a simulated run a fourth.

1. PURE files decide. They import what is listed here and nothing else, are never asynchronous, and give the
   same answer in every process: no ``id``, no ``hash``, no order taken from a set.
2. Files of DRIVEN layers get time, ids, links and blocking work as arguments, so that a simulator can run
   them unmodified. What implements such a port is an EDGE, listed with its reason.
"""

import ast
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

from tests.purity import impure, matches, names, unported, unstable

PACKAGE = Path(__file__).parents[1] / "src" / "worldmove"

PURE = (
    "engine/base.py",
    "limits.py",
    "fleet/forecast.py",
    "fleet/failover_report.py",
    "fleet/hosts.py",
    "fleet/lessons.py",
    "fleet/past.py",
    "fleet/stretches.py",
    "fleet/notes.py",
    "fleet/orphans.py",
    "fleet/path_health.py",
    "fleet/ports.py",
    "fleet/reports.py",
    "fleet/views.py",
    "fleet/warmed_up.py",
    "fleet/wish.py",
    "move/account.py",
    "move/admission.py",
    "move/choice.py",
    "move/controller_messages.py",
    "move/end_messages.py",
    "move/ledger_messages.py",
    "move/ledger_row.py",
    "move/ledger_rules.py",
    "move/measured.py",
    "move/message.py",
    "move/messages.py",
    "move/protocol.py",
    "move/precopy.py",
    "move/foreseen.py",
    "move/reconcile.py",
    "move/reckoning/base.py",
    "move/reckoning/boundary_copy.py",
    "move/reckoning/difference.py",
    "move/reckoning/pre_copy.py",
    "move/reckoning/reckoners.py",
    "move/reckoning/replay.py",
    "move/reckoning/rest.py",
    "move/reckoning/settled.py",
    "move/reckoning/streaming.py",
    "move/remedy.py",
    "move/report.py",
    "move/sayable.py",
    "move/strategy.py",
    "move/terms.py",
    "serve/allowance.py",
    "serve/frames.py",
    "serve/lineage.py",
    "serve/owed.py",
    "serve/receipts.py",
    "serve/recent.py",
    "serve/resumption.py",
    "serve/record_entries.py",
    "serve/record_file.py",
    "serve/sequencer.py",
    "serve/show.py",
    "serve/tempo.py",
    "serve/unwatched.py",
    "serve/witness.py",
    "state/by_id.py",
    "state/check.py",
    "state/checked_frame.py",
    "state/dtypes.py",
    "state/extent.py",
    "state/frame.py",
    "state/geometry.py",
    "state/held.py",
    "state/layout.py",
    "state/leaf.py",
    "state/leaf_record.py",
    "state/leaf_sizes.py",
    "state/manifest.py",
    "state/room.py",
    "state/row_digests.py",
    "state/row_moves.py",
    "state/rows.py",
    "state/runs.py",
    "state/saved.py",
    "state/storage.py",
    "state/structure.py",
    "transport/link_speed.py",
    "units.py",
    "worker/accounts.py",
    "worker/inputs.py",
    "worker/leeway.py",
    "worker/long_run.py",
    "worker/message.py",
    "worker/messages.py",
    "worker/orders.py",
    "worker/reports.py",
)

NEARLY_PURE: Mapping[str, str] = {
    "errors.py": "exceptions",
}
"""What PURE files may import beside each other."""

PURE_IMPORTS = frozenset(
    {
        *("abc", "bisect", "collections", "dataclasses", "enum", "functools", "hashlib", "heapq", "hmac"),
        *("itertools", "math", "operator", "re", "statistics", "struct", "types", "typing"),
        *("msgspec", "numpy", "worldmove", "xxhash"),
    }
)

DRIVEN = ("move", "worker", "fleet", "serve")

EDGES: Mapping[str, str] = {
    "fleet/hosts_local.py": "starts worker processes",
    "fleet/local_door.py": "the socket by which they come in",
    "fleet/local_process.py": "sees a worker's process end, and ends it by signal",
    "serve/ids.py": "names, seeds and nonces by the system's randomness",
    "serve/listen.py": "the listening socket",
    "serve/server.py": "a server's process: its clocks, its end",
    "serve/signals.py": "the signals that end it",
    "serve/spool.py": "saved worlds on this host's disk, written and read by threads",
    "worker/picture_threads.py": "hashes pictures by several threads",
    "worker/process.py": "a worker's process: its clock, its signals, its exit status",
    "worker/process_end.py": "a worker's process ends, whatever its threads do",
    "worker/log_queue.py": "the thread that writes a log",
    "worker/process_log.py": "a process's log: what all of it says, and when a line was said",
    "worker/profile.py": "looks into the threads, for a bench",
    "worker/room.py": "asks the kernel for room in a socket",
    "worker/threads.py": "runs blocking work on one thread",
    "worker/uplink.py": "the socket to its server",
}


def _said(findings: Iterable[tuple[int, str]]) -> str:
    return "\n".join(f"line {line}: {what}" for line, what in sorted(set(findings)))


def _parse(name: str) -> ast.AST:
    return ast.parse((PACKAGE / name).read_text(encoding="utf-8"), name)


def _files(layers: tuple[str, ...]) -> list[str]:
    found = [path for layer in layers for path in (PACKAGE / layer).rglob("*.py")]
    return sorted(str(path.relative_to(PACKAGE)) for path in found)


DRIVEN_FILES = _files(DRIVEN)


@pytest.mark.parametrize("name", PURE)
def test_a_file_that_decides_is_pure(name: str) -> None:
    assert _said(impure(_parse(name), PURE_IMPORTS)) == ""


@pytest.mark.parametrize("name", PURE)
def test_a_file_that_decides_imports_only_such_files(name: str) -> None:
    pure = [f"worldmove.{file.removesuffix('.py').replace('/', '.')}" for file in (*PURE, *NEARLY_PURE)]
    ours = [found for found in names(_parse(name)) if found[1].startswith("worldmove.")]
    assert _said(found for found in ours if not any(matches(found[1], module) for module in pure)) == ""


@pytest.mark.parametrize("name", [name for name in DRIVEN_FILES if name not in EDGES])
def test_a_driver_meets_the_world_through_its_ports(name: str) -> None:
    assert _said(unported(_parse(name))) == ""


@pytest.mark.parametrize("name", DRIVEN_FILES)
def test_a_driver_does_the_same_in_every_process(name: str) -> None:
    assert _said(unstable(_parse(name))) == ""


def test_every_listed_file_exists() -> None:
    assert [name for name in (*PURE, *NEARLY_PURE, *EDGES) if not (PACKAGE / name).exists()] == []


@pytest.mark.parametrize("name", EDGES)
def test_an_edge_needs_to_be_one(name: str) -> None:
    assert list(unported(_parse(name))) != []


@pytest.mark.parametrize(
    "planted",
    [
        "import time",
        "from time import monotonic",
        "import datetime",
        "import os",
        "from pathlib import Path",
        "import logging",
        "import structlog",
        "import random",
        "import uuid",
        "import secrets",
        "import socket",
        "import threading",
        "import asyncio",
        "import torch",
        "def decide():\n    import torch.nn",
        "async def decide():\n    return 1",
        "def decide():\n    return open('row').read()",
        "def decide():\n    print('decided')",
        "def decide(row):\n    return hash(row)",
        "def decide(rows):\n    return sorted(rows, key=id)",
        "def decide(rows):\n    return [row for row in {1, 2}]",
    ],
)
def test_an_impure_line_is_found(planted: str) -> None:
    assert _said(impure(ast.parse(planted), PURE_IMPORTS)) != ""


@pytest.mark.parametrize(
    "planted",
    [
        "for x in {1, 2}:\n    pass",
        "for x in set(rows):\n    pass",
        "[x for x in {y for y in rows}]",
        "list(x for x in {1, 2})",
        "list(frozenset(rows))",
        "','.join({'a', 'b'})",
        "f(*{1, 2})",
        "open_moves: set[str] = f()\nfor x in open_moves:\n    pass",
        "self.moves = set()\n[x for x in self.moves]",
        "def f(moves: frozenset[str]):\n    return list(moves)",
        "a = {1}\nfor x in a | b:\n    pass",
    ],
)
def test_an_order_taken_from_a_set_is_found(planted: str) -> None:
    assert [what for _, what in unstable(ast.parse(planted))] == ["takes an order from a set"]


@pytest.mark.parametrize(
    "harmless",
    [
        "for x in sorted({1, 2}):\n    pass",
        "sorted(x for x in {1, 2})",
        "{x for x in {1, 2}}",
        "y in {1, 2}",
        "len(set(rows))",
        "for x in [1, 2]:\n    pass",
        "for x in rows.items():\n    pass",
        "class Row:\n    def __hash__(self):\n        return hash(self.name)",
        "def hash_of(x):\n    return x.hash()",
        "class Row:\n    id: int\n    def f(self):\n        return self.id",
    ],
)
def test_a_stable_line_is_let_pass(harmless: str) -> None:
    assert list(unstable(ast.parse(harmless))) == []


@pytest.mark.parametrize(
    "planted",
    [
        "import time",
        "import datetime as dt\ndt.datetime.now()",
        "from datetime import datetime\ndatetime.now()",
        "import random\nrandom.random()",
        "from random import choice",
        "import os\nos.urandom(16)",
        "from os import environ",
        "import asyncio\nasyncio.wait(tasks)",
        "from asyncio import to_thread",
        "import asyncio as aio\naio.open_connection('h', 1)",
        "loop.run_in_executor(None, f)",
        "loop.call_soon_threadsafe(f)",
        "import weakref\nweakref.finalize(x, f)",
        "class Slot:\n    def __del__(self):\n        pass",
        "def f():\n    global last\n    last = 1",
        "async def f():\n    yield 1",
        "import asyncio\nasync def f():\n    asyncio.create_task(g())",
    ],
)
def test_a_reach_past_the_ports_is_found(planted: str) -> None:
    assert list(unported(ast.parse(planted))) != []


@pytest.mark.parametrize(
    "harmless",
    [
        "import random\ndef f(rng: random.Random):\n    return rng.random()",
        "import asyncio\nasync def f():\n    await asyncio.sleep(1)\n    await asyncio.wait_for(g(), 1)",
        "import asyncio\nasyncio.get_running_loop().time()",
        "def f(clock):\n    return clock.now()",
        "def f(time):\n    return time.monotonic",
        "import os\nos.getpid()",
        "@asynccontextmanager\nasync def f():\n    yield 1",
        "import asyncio\nasync def f(self):\n    self.task = asyncio.create_task(g())",
        "async def f(tasks):\n    tasks.create_task(g())",
    ],
)
def test_a_use_of_ports_is_let_pass(harmless: str) -> None:
    assert list(unported(ast.parse(harmless))) == []
