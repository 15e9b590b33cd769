"""Leases: each worker is asked for a sign of life, and one that gives none for a whole lease is *suspected*.

Rules:

1. Suspicion proves nothing. It lets a copy elsewhere take a session over; it never makes one lost.
2. A lease is renewed from when the beat was sent that the worker has answered: an answer that waited in a socket
   says nothing of the present, and one direction that carries says nothing of the other.
3. Time in which this server itself did not run (stopped, or its host slept) counts for nobody.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace

from worldmove.fleet.config import FleetConfig
from worldmove.fleet.views import WorkerState
from worldmove.fleet.worker_table import WorkerTable
from worldmove.fleet.workers import WorkerRecord
from worldmove.worker.messages import Beat


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sent:
    """A beat, when it was sent, and when for a lease: this server's own absences since do not count there."""

    number: int
    at: float
    counts_from: float


class Leases:
    """The leases of all workers, by the event loop's clock."""

    def __init__(
        self,
        *,
        config: FleetConfig,
        workers: WorkerTable,
        on_suspected: Callable[[WorkerRecord], None],
        on_answered: Callable[[WorkerRecord], None],
    ) -> None:
        """``on_answered`` hears of a worker that was suspected and has answered again."""
        self._config = config
        self._workers = workers
        self._on_suspected = on_suspected
        self._on_answered = on_answered
        self._sent: deque[_Sent] = deque()
        self._number = 0

    async def run(self) -> None:
        """Send beats, and look who has answered, until cancelled."""
        loop, every_s = asyncio.get_running_loop(), self._config.beat_s
        while True:
            due = loop.time() + every_s
            await asyncio.sleep(every_s)
            late_s = loop.time() - due
            if late_s > every_s:
                self._forgive(late_s)
            self._look(loop.time())
            self._beat(loop.time())

    def answered(self, worker: WorkerRecord, number: int) -> None:
        """Renew a lease. A beat that was sent longer ago than a lease lasts renews nothing."""
        sent = next((sent for sent in self._sent if sent.number == number), None)
        if sent is None:
            return
        if number > worker.beat_answered:
            worker.ways_s.append(asyncio.get_running_loop().time() - sent.counts_from)
        worker.alive_at = max(sent.at, worker.alive_at or sent.at)
        worker.answered_at = max(sent.counts_from, worker.answered_at or sent.counts_from)
        worker.beat_answered = max(number, worker.beat_answered)
        if worker.suspected and self._holds(worker, asyncio.get_running_loop().time()):
            worker.suspected = False
            self._on_answered(worker)

    def _forgive(self, late_s: float) -> None:
        """This server was away for so long."""
        self._sent = deque(replace(sent, counts_from=sent.counts_from + late_s) for sent in self._sent)
        for worker in self._workers.all():
            if worker.answered_at is not None:
                worker.answered_at += late_s

    def _look(self, now: float) -> None:
        for worker in self._workers.all():
            if worker.state is not WorkerState.READY:
                continue
            if worker.answered_at is None:
                worker.answered_at = now  # its first lease begins
            if not worker.suspected and not self._holds(worker, now):
                worker.suspected = True
                self._on_suspected(worker)

    def _beat(self, now: float) -> None:
        self._number += 1
        self._sent.append(_Sent(number=self._number, at=now, counts_from=now))
        while self._sent[0].counts_from < now - self._config.worker_lease_s:
            self._sent.popleft()
        for worker in self._workers.ready():
            worker.beat_sent = self._number
            block_s = self._workers.load(worker).beside_s
            self._workers.send(worker.name, Beat(number=self._number, block_s=block_s, empties=worker.is_emptied))

    def _holds(self, worker: WorkerRecord, now: float) -> bool:
        return worker.answered_at is not None and now - worker.answered_at <= self._config.worker_lease_s
