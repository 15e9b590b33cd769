"""The edge that sees a worker's process of this machine: one that was spawned here, and one that is found by pid.

A number may be given to another process; with the birth beside it, and a descriptor held, it names one for ever.
"""

import asyncio
import os
import select
import signal
from contextlib import suppress

from worldmove.worker.birth import birth_of


class LocalProcess:
    """One spawned worker (a ``WorkerProcess``)."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    @property
    def pid(self) -> int:
        return self._process.pid

    async def ended(self) -> int:
        return await self._process.wait()

    def terminate(self) -> None:
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        self._signal(signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> None:
        if self._process.returncode is None:
            with suppress(ProcessLookupError):
                self._process.send_signal(number)


class AdoptedProcess:
    """A worker that an earlier server spawned (a ``WorkerProcess``).

    It is no child of this process, so its end has no status; a descriptor of the process itself still proves it,
    and its signals can reach no other that is given its number.
    """

    def __init__(self, pid: int, descriptor: int) -> None:
        self._pid = pid
        self._descriptor = descriptor
        self._ended = asyncio.Event()
        asyncio.get_running_loop().add_reader(descriptor, self._note_end)

    @property
    def pid(self) -> int:
        return self._pid

    async def ended(self) -> None:
        await self._ended.wait()

    def terminate(self) -> None:
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        self._signal(signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> None:
        if not self._ended.is_set():
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._descriptor, number)

    def _note_end(self) -> None:
        asyncio.get_running_loop().remove_reader(self._descriptor)
        os.close(self._descriptor)
        self._ended.set()


def descriptor_of(pid: int, birth: str) -> int | None:
    """Return a descriptor of the process with this number and birth; None where it is proven dead."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return None
    ended = select.poll()
    ended.register(descriptor, select.POLLIN)
    # Only now: from here on the number cannot be given to another while it is looked at.
    if birth_of(pid) == birth and not ended.poll(0):
        return descriptor
    os.close(descriptor)
    return None


def is_alive(pid: int, birth: str) -> bool:
    """Whether the process with this number and birth lives."""
    descriptor = descriptor_of(pid, birth)
    if descriptor is not None:
        os.close(descriptor)
    return descriptor is not None


def terminate(pid: int, birth: str) -> None:
    """Ask the process with this number and birth to end, if it lives."""
    descriptor = descriptor_of(pid, birth)
    if descriptor is not None:
        signal.pidfd_send_signal(descriptor, signal.SIGTERM)
        os.close(descriptor)
