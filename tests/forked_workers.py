"""Whoever imports this has the workers of its servers forked: the fork server does, and so all that is begun by it.

The product starts each worker in an interpreter of its own, and most of what a test would wait for, and pay, is an
import of torch. How that start goes is seen where the command line serves (``tests/cli/test_serve.py``) and by
``tests/fleet/test_hosts_local.py``.
"""

import asyncio
import os
import signal
import sys
from collections.abc import Mapping
from contextlib import suppress
from multiprocessing import forkserver, resource_tracker
from multiprocessing.context import ForkServerProcess
from pathlib import Path

import msgspec

from worldmove.fleet.hosts_local import LocalHosts
from worldmove.fleet.local_process import LocalProcess
from worldmove.worker import process


class ForkedProcess(LocalProcess):
    """A worker that was forked."""

    def __init__(self, forked: ForkServerProcess) -> None:
        self._forked = forked
        self._end: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().add_reader(forked.sentinel, self._note_end)

    @property
    def pid(self) -> int:
        assert self._forked.pid is not None
        return self._forked.pid

    async def ended(self) -> int:
        return await asyncio.shield(self._end)

    def _signal(self, number: signal.Signals) -> None:
        if not self._end.done():
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def _note_end(self) -> None:
        asyncio.get_running_loop().remove_reader(self._forked.sentinel)
        self._forked.join()
        assert self._forked.exitcode is not None
        self._end.set_result(self._forked.exitcode)


async def _spawn(self: LocalHosts, worker: str, incarnation: int, socket_path: Path) -> LocalProcess:
    from tests.forks import FORKS  # it imports this module by its name, before all else

    config = msgspec.structs.replace(
        self._config.worker, worker=worker, incarnation=incarnation, socket_path=str(socket_path)
    )
    errors = os.path.realpath("/proc/self/fd/2")
    said = (msgspec.json.encode(config).decode(), self._environment(worker), errors)
    forked = FORKS.Process(target=_begin, args=said, daemon=True)
    await asyncio.to_thread(forked.start)
    return ForkedProcess(forked)


def _begin(config: str, environment: Mapping[str, str], errors: str) -> None:
    """Be a worker in a session of its own, with the environment that its server gives it, where its server says why."""
    os.setsid()
    os.environ.clear()
    os.environ.update(environment)
    if os.path.isfile(errors):
        os.dup2(os.open(errors, os.O_WRONLY | os.O_APPEND), 2)
    sys.argv = ["worker", config]
    process.main()


LocalHosts._spawn = _spawn  # type: ignore[method-assign]
if sys.version_info < (3, 14):  # from then on it is asked with a key that its children lack: they begin one more
    # A child knows where its fork server listens, and would begin another all the same: it sees no process of its own.
    forkserver._forkserver.ensure_running = resource_tracker.ensure_running  # type: ignore[method-assign]
