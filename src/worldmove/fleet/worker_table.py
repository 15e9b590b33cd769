"""The controller's table of workers: which process each one is, what it last said, and who is proven dead."""

import asyncio
from collections.abc import Callable, Iterable

from worldmove.errors import UserError
from worldmove.fleet.pace import Load, Paces
from worldmove.fleet.views import WorkerState, WorkerView
from worldmove.fleet.workers import WorkerRecord
from worldmove.worker.messages import Copies, Copy, Hello, ToWorker

STUCK_S = 5.0
"""An engine that is at one thing for longer is asked for nothing where another can do it. It may return yet."""
NUM_BLOCKS = 20
"""What takes so many times as long as its blocks is long for an engine, however slow they are."""


class WorkerTable:
    """All workers, by name, in the order of the configuration."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self._records = {name: WorkerRecord(name=name, incarnation=0) for name in names}
        self.paces = Paces()
        self._change = asyncio.Event()
        self.is_stalled: Callable[[str], bool | None] = lambda session: False
        """Whether a session's block does not come though its worker answers, as far as whoever waits for it knows."""

    def all(self) -> tuple[WorkerRecord, ...]:
        return tuple(self._records.values())

    def views(self) -> tuple[WorkerView, ...]:
        """Return what is shown of each."""
        return tuple(record.view(is_stuck=self.is_stuck(record)) for record in self.all())

    def ready(self) -> tuple[WorkerRecord, ...]:
        return tuple(record for record in self.all() if record.state is WorkerState.READY)

    def may_hold(self) -> tuple[WorkerRecord, ...]:
        """Return the workers that live and may hold copies, also those that have not said so yet."""
        alive = (WorkerState.READY, WorkerState.AWAITED)
        return tuple(record for record in self.all() if record.state in alive)

    def load(self, worker: WorkerRecord, besides: str = "") -> Load:
        """Return what is known of the device that a worker computes on, for another session than those there.

        ``besides``: a session that is not counted where it is followed there already.
        """
        there = [record for record in self.all() if record.device == worker.device and record.num_live]
        return Load(
            period_s=worker.period_s or 0.0,
            block_s=self.paces.block_s(worker.device),
            long_run_s=self.paces.long_run_s(worker.device),
            spare_s=worker.spare_s,
            own=worker.num_played(besides),
            others=tuple(record.num_live for record in there if record is not worker),
            ages_s=worker.ages_s,
        )

    def find(self, name: str) -> WorkerRecord | None:
        return self._records.get(name)

    def get(self, name: str) -> WorkerRecord:
        """Return a worker that is ready and answers. Raises UserError: unknown, gone, or suspected."""
        record = self._records.get(name)
        if record is None:
            known = ", ".join(self._records)
            raise UserError(f"There is no worker {name}; there are {known}.", code="unknown_worker", status=404)
        if record.state is not WorkerState.READY:
            why = f"{name} is {record.state.value}; try again when it is back."
            raise UserError(why, code="worker_gone", status=409)
        if record.suspected:
            why = f"{name} does not answer at the moment; try again, or name another worker."
            raise UserError(why, code="worker_suspected", status=409)
        return record

    def to_fill(self, name: str) -> WorkerRecord:
        """Return a worker that a session may be opened in, or moved to. Raises UserError: as ``get``, or it ends."""
        record = self.get(name)
        if record.leaving:
            why = f"{name} was told to end, and takes nothing any more; name another worker."
            raise UserError(why, code="worker_leaving", status=409)
        return record

    def begin(self, name: str) -> WorkerRecord:
        """Begin the next incarnation of a worker."""
        old = self._records[name]
        self._records[name] = WorkerRecord(name=name, incarnation=old.incarnation + 1)
        return self._records[name]

    def remember(self, name: str, incarnation: int) -> WorkerRecord:
        """Begin with a worker as an earlier server left it. Until more is known it is not proven dead."""
        self._records[name] = WorkerRecord(name=name, incarnation=incarnation, state=WorkerState.AWAITED)
        return self._records[name]

    def leave_out(self, name: str) -> None:
        """A worker that is proven dead is not started again: show it no more."""
        del self._records[name]

    def hello(self, hello: Hello) -> None:
        record = self._records[hello.worker]
        record.hello, record.copies = hello, hello.copies
        record.slots_free = hello.num_slots - len(hello.copies)
        record.reported = False
        record.heard.set()

    def has_reported(self, name: str, incarnation: int) -> None:
        """It has said all that it holds."""
        record = self._records[name]
        if record.incarnation == incarnation:
            record.reported = True
            record.heard.set()
            self._change.set()

    def ready_now(self, record: WorkerRecord) -> None:
        """It has said hello and can be told things; unless it died meanwhile."""
        if record.state in (WorkerState.STARTING, WorkerState.AWAITED):
            record.state = WorkerState.READY

    def report(self, report: Copies) -> None:
        record = self._records[report.worker]
        if report.incarnation != record.incarnation or record.state is WorkerState.GONE:
            return  # a word of the dead that was still on its way: the copies went with the process
        record.copies = report.copies
        record.slots_free, record.slots_quarantined = report.slots_free, report.slots_quarantined
        record.polled = max(record.polled, report.poll)
        record.heard.set()
        self._change.set()

    def gone(self, name: str, incarnation: int) -> None:
        """A process is proven dead. Its copies went with it."""
        record = self._records[name]
        if record.incarnation == incarnation:
            record.state, record.copies, record.slots_free, record.slots_quarantined = WorkerState.GONE, (), 0, 0
            record.link, record.suspected = None, False
            record.heard.set()
            self._change.set()

    async def changed(self, within_s: float) -> None:
        """Return at the next report or death, or after a time without one."""
        self._change.clear()
        try:
            async with asyncio.timeout(within_s):
                await self._change.wait()
        except TimeoutError:
            return

    def is_gone(self, name: str, incarnation: int) -> bool:
        """Whether an incarnation is proven dead: by its exit status, or because a newer one exists."""
        record = self._records.get(name)
        if record is None or record.incarnation > incarnation:
            return True
        return record.state is WorkerState.GONE

    def is_there(self, name: str, incarnation: int) -> bool:
        """Whether this incarnation is the newest, ready, and not known to be dead."""
        record = self._records.get(name)
        return record is not None and record.incarnation == incarnation and record.state is WorkerState.READY

    def is_suspected(self, name: str, incarnation: int) -> bool:
        """Whether an incarnation's lease has lapsed. It may be alive all the same."""
        record = self._records.get(name)
        return record is not None and record.incarnation == incarnation and record.suspected

    def send(self, name: str, message: ToWorker) -> None:
        """Queue a message for a worker. One that is gone drops it."""
        record = self._records.get(name)
        if record is not None and record.link is not None:
            record.link.send(message)
            record.told(message)

    def with_most_room(self) -> WorkerRecord:
        """Return the worker with most room: free slots that no opening under way will take.

        Raises UserError if none has any.
        """
        return max(self._with_room(), key=lambda record: record.room)

    def with_fewest_players(self, best: Callable[[WorkerRecord], bool] = lambda record: True) -> WorkerRecord:
        """Return the worker with room that plays the fewest sessions: one of the best, if any is.

        Raises UserError if none has any.
        """
        return min(self._with_room(), key=lambda record: (not best(record), record.num_live, -record.room))

    def answering(self) -> tuple[WorkerRecord, ...]:
        """Return the workers that are neither suspected nor leaving."""
        return tuple(record for record in self.ready() if not record.suspected and not record.leaving)

    def sound(self, records: Iterable[WorkerRecord]) -> tuple[WorkerRecord, ...]:
        """Return those whose engine is not known to be stuck; all of them where there are no such."""
        found = tuple(records)
        return tuple(record for record in found if not self.is_stuck(record)) or found

    def is_stuck(self, record: WorkerRecord, for_s: float = STUCK_S) -> bool:
        """Whether a worker's engine does not return, as far as that shows: from a step, or from whatever it is at."""
        return record.taken_s > long_s(record, for_s) or any(
            copy.phase == "live" and self.is_stalled(copy.session) for copy in record.copies
        )

    def is_past_hope(self, record: WorkerRecord, session: str) -> bool:
        """Whether a session comes to no boundary at a worker that answers, as far as that shows.

        It has waited for long, and for half of that at least its engine was in one block. Another call may well return.
        """
        return bool(self.is_stalled(session)) and record.at_block and record.taken_s > long_s(record) / 2

    def _with_room(self) -> tuple[WorkerRecord, ...]:
        answering = self.answering()
        if not answering:
            raise UserError("No worker answers just now; try again in a moment.", code="worker_gone", status=409)
        found = self.sound(record for record in answering if record.room > 0)
        if not found:
            raise UserError("Every slot is taken; close a session first.", code="no_slot", status=409)
        return found

    def holding(self, session: str) -> tuple[WorkerRecord, ...]:
        """Return the workers that hold a copy of a session, in any phase."""
        return tuple(worker for worker in self.ready() if any(copy.session == session for copy in worker.copies))

    def left(self, session: str) -> int | None:
        """Return before which block all of a session have left the gateway, as its copies say; None without any."""
        copies = [copy for record in self.all() for copy in record.copies if copy.session == session]
        return max((copy.left for copy in copies), default=None)

    def holders(
        self, session: str, phases: tuple[str, ...], *, answering: bool = False
    ) -> tuple[tuple[WorkerRecord, Copy], ...]:
        """Return every copy of a session that is in one of the phases, with its worker.

        ``answering``: not those of suspected workers.
        """
        asked = tuple(record for record in self.all() if not (answering and record.suspected))
        found = [(record, copy) for record in asked for copy in record.copies]
        return tuple((record, copy) for record, copy in found if copy.session == session and copy.phase in phases)


def long_s(record: WorkerRecord, least_s: float = STUCK_S) -> float:
    """Return what is long for one thing at a worker's engine, in seconds."""
    return max(least_s, NUM_BLOCKS * (record.block_s or 0.0))
