"""What is done for a session whose owner is gone or suspected: let a copy that can go on have it.

In this order, and again until one of them has come to an end, or a suspected owner answers:

1. An open attempt is closed. Its destination, if it is in doubt, repeats its commit and is granted it. A suspected
   owner's is left open while the destination answers, for a commit that comes after the close would get no answer:
   that end commits, or gives up and closes it itself, within the shadow's lease. Where it does not answer either,
   nothing is to be waited for.
2. A frozen or superseded copy that answers asks for the session itself (reclaim); it is only told to ask.
3. Where there is neither, nor a retired one that can ever take over (5), the newest snapshot that is kept by a worker
   that answers is installed as a retired copy.
4. A retired copy whose lists reach the next block takes over, the owner's epoch closed at the gateway first. A shadow
   whose attempt was closed is not waited for, unless the owner is dead: else nobody grants it the session. Nor is any
   copy that asks by itself once it has had a shadow's lease for that, nor one whose engine is stuck, where another can.
   One that was told to go, and may be gone when it is granted the session, is left for another that can as well.
5. The owner is dead, and a numbered poll finds no copy that can go on: lost. No silence and no time-out says so. A
   retired copy cannot where the lists up to the next block are with nobody: a server and an owner died with them. A
   snapshot that is on its way is waited for, and one that comes later is kept no more: so no copy is left by then.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from worldmove.fleet.closing import closing
from worldmove.fleet.config import FleetConfig
from worldmove.fleet.desk import LedgerDesk
from worldmove.fleet.orphans import CURRENT, WAITING, num_current, successor, that_may_go_on, to_revive
from worldmove.fleet.ports import Gateway
from worldmove.fleet.worker_table import WorkerTable
from worldmove.fleet.workers import WorkerRecord
from worldmove.move.ledger_messages import Done, Failover, Lose
from worldmove.move.ledger_row import BY_FAILOVER, Row
from worldmove.move.messages import CONTROLLER, Inquire
from worldmove.worker.messages import KEPT, Close, Copy, Expect, Poll, Revive, TakeOver


@dataclass(frozen=True, slots=True, kw_only=True)
class Keepers:
    """Workers that may come to keep a session's snapshot. ``is_awaited``: one was asked to, and has yet to answer."""

    names: tuple[str, ...] = ()
    is_awaited: bool = False


NO_KEEPERS = Keepers()


class Recovery:
    """Finds a new owner for sessions, or loses them."""

    def __init__(
        self,
        *,
        config: FleetConfig,
        workers: WorkerTable,
        desk: LedgerDesk,
        gateway: Callable[[], Gateway],
        why_failed: Callable[[str], str] = lambda session: "",
        keepers: Callable[[str], Keepers] = lambda session: NO_KEEPERS,
        is_left_alone: Callable[[str], bool] = lambda session: False,
        on_failover: Callable[[Row, str, Copy, TakeOver], None] = lambda row, worker, copy, taken: None,
    ) -> None:
        """``why_failed``: what an engine raised that played a session; empty where none has.

        ``keepers``: who is to keep a session's snapshot. ``is_left_alone``: whether one is being ended, or the
        ledger is behind: then it is not gone on with, and is not lost either.
        ``on_failover`` hears of a copy that has taken over, as it was by then, and of the row before that.
        """
        self._why_failed = why_failed
        self._keepers = keepers
        self._is_left_alone = is_left_alone
        self._on_failover = on_failover
        self._config = config
        self._workers = workers
        self._desk = desk
        self._gateway = gateway
        self._polls = 0
        self._since: dict[str, float] = {}
        """When it was begun to look for an owner."""

    async def recover(self, session: str) -> None:
        """Return once the session has an owner that answers, or is lost, or closed."""
        self._since[session] = asyncio.get_running_loop().time()
        try:
            await self._recover(session)
        finally:
            del self._since[session]

    async def _recover(self, session: str) -> None:
        steps: tuple[Callable[[Row], Awaitable[None]], ...]
        steps = (self._settle, self._close, self._wake, self._revive, self._fail_over, self._lose)
        while self._orphan(session) is not None:
            for step in steps:
                row = self._orphan(session)
                if row is not None:
                    await step(row)
            await self._workers.changed(self._config.recover_every_s)
            await self._hand_over_unanswered(session)

    def _orphan(self, session: str) -> Row | None:
        """Return the row of a session whose owner is gone or suspected; None if there is nothing to do."""
        row = self._desk.row(session)
        if row is None or row.lost or self._is_left_alone(session):
            return None
        return row if self._desk.owner_is_missing(row) or self._desk.is_unsettled(row) else None

    async def _settle(self, row: Row) -> None:
        if self._desk.is_unsettled(row):
            await self._desk.settle(row.session)

    async def _close(self, row: Row) -> None:
        opened = row.attempt
        if opened is None:
            return
        if self._desk.owner_is_gone(row) or not self._desk.answers(opened.destination, opened.incarnation):
            await self._desk.ask(closing(row.session, opened.attempt, row.epoch))

    async def _wake(self, row: Row) -> None:
        for worker, copy in self._workers.holders(row.session, WAITING):
            if (worker.name, worker.incarnation) == (row.owner, row.incarnation):
                continue  # a suspected owner in doubt: its question would close the attempt that may replace it
            hint = Inquire(
                to=worker.name,
                sender=CONTROLLER,
                incarnation=0,
                session=row.session,
                attempt=copy.attempt or row.last_attempt or "-",
                epoch=copy.epoch,
            )
            self._workers.send(worker.name, hint)

    async def _revive(self, row: Row) -> None:
        """Have the newest snapshot installed, where no other copy can go on. It is a retired copy from then on."""
        next_block, held = self._gateway().next_block(row.session), self._held(row)
        usable = [(worker, copy) for worker, copy in held if self._is_of_use(copy)]
        found = None if next_block is None else to_revive(usable, next_block)
        if next_block is None or found is None or not self._may_fail_over(row):
            return
        worker, copy = found
        self._gateway().linked_again(row.session, worker.name, copy.block)  # whatever it may lack of the lists
        asked = Revive(session=row.session, epoch=row.epoch, block=copy.block, next_block=next_block)
        self._workers.send(worker.name, asked)

    def _is_of_use(self, copy: Copy) -> bool:
        """Whether a copy can go on, or may yet be able to: a retired one may still get lists, a snapshot has them."""
        return self._has_lists(copy) if copy.phase == KEPT else not self._lacks_lists(copy)

    def _held(self, row: Row) -> Sequence[tuple[WorkerRecord, Copy]]:
        """Return the copies of workers that answer, but for those that nobody will grant the session.

        And those that do not go on by themselves for as long as a shadow's lease, that go on with nothing as long as
        their engine does not return, or that are just being let go as they were told, where others can.
        """
        held = self._workers.holders(row.session, CURRENT, answering=True)
        may_be_granted = row.attempt is not None or self._desk.owner_is_gone(row)
        able = that_may_go_on(held, may_be_granted=may_be_granted)
        is_late = asyncio.get_running_loop().time() - self._since[row.session] > self._config.lease_s
        prompt = [(worker, copy) for worker, copy in able if not (is_late and copy.phase in WAITING)]
        sound = [(worker, copy) for worker, copy in prompt if not self._workers.is_stuck(worker)]
        staying = [(worker, copy) for worker, copy in sound if not worker.is_giving_up(copy.session, copy.phase)]
        some = (staying, sound)
        return next((found for found in some if any(self._may_take_over(copy) for _, copy in found)), able)

    def _may_take_over(self, copy: Copy) -> bool:
        return copy.phase in ("retired", KEPT) and not self._lacks_lists(copy)

    def _may_fail_over(self, row: Row) -> bool:
        """Whether it would not be denied; else the owner may be alive, and its frames are not refused for nothing."""
        return row.attempt is None and self._desk.owner_is_missing(row)

    async def _fail_over(self, row: Row) -> None:
        """Let a retired copy take over, unless a copy that is further on can still ask for the session itself."""
        next_block, held = self._gateway().next_block(row.session), self._held(row)
        worker = successor(held)
        if next_block is None or worker is None:
            return
        (copy,) = (copy for holder, copy in held if holder is worker and copy.phase == "retired")
        log_reaches = self._gateway().log_reaches(row.session, copy.block)
        if log_reaches is None or log_reaches < next_block or not self._may_fail_over(row):
            return
        answer = await self._desk.fail_over(
            Failover(
                session=row.session,
                epoch=row.epoch,
                worker=worker.name,
                incarnation=worker.incarnation,
                log_reaches=log_reaches,
            )
        )
        if isinstance(answer, Done):
            # It may be heard of as a holder only now, and lack what was on its way to it when a server ended.
            self._gateway().linked_again(row.session, worker.name, copy.block)
            taken = TakeOver(session=row.session, epoch=answer.epoch, block=next_block)
            self._on_failover(row, worker.name, copy, taken)
            await self._hand_over(worker, taken)

    async def _hand_over_unanswered(self, session: str) -> None:
        """A failover that got no answer was done all the same: its copy does not know yet that it owns the session."""
        row, next_block = self._desk.row(session), self._gateway().next_block(session)
        if row is None or row.lost or row.granted_by != BY_FAILOVER or next_block is None:
            return
        owner = self._workers.find(row.owner)
        if owner is not None and owner.incarnation == row.incarnation:
            await self._hand_over(owner, TakeOver(session=session, epoch=row.epoch, block=next_block))

    async def _hand_over(self, worker: WorkerRecord, taken: TakeOver) -> None:
        """Tell a copy that it owns the session, until it plays, or its worker says that it has none, or is gone.

        Once is not enough: the link may be made anew meanwhile, and the copy may just have been let go.
        """
        while self._is_waited_for(worker, taken):
            self._workers.send(worker.name, taken)
            await asyncio.sleep(self._config.recover_every_s)

    def _is_waited_for(self, worker: WorkerRecord, taken: TakeOver) -> bool:
        row = self._desk.row(taken.session)
        if row is None or row.epoch != taken.epoch or self._desk.owner_is_missing(row):
            return False  # of one that does not answer, another copy may take over; it hears of its grant when it asks
        copies = [copy for copy in worker.copies if copy.session == taken.session and copy.phase != KEPT]
        return not any(copy.epoch >= taken.epoch for copy in copies)

    async def _lose(self, row: Row) -> None:
        keepers = self._keepers(row.session)
        if not self._desk.owner_is_gone(row) or self._may_go_on(row) or keepers.is_awaited:
            return
        for keeper in keepers.names:
            self._workers.send(keeper, Expect(session=row.session))  # anew: what it has not proven by then is not kept
        number = await self._poll()
        held = self._workers.holders(row.session, CURRENT)
        found = num_current(copy for _, copy in held if not self._lacks_lists(copy))
        if number is None or found or self._is_left_alone(row.session):
            return
        answer = await self._desk.ask(Lose(session=row.session, epoch=row.epoch, poll=number, copies_found=found))
        if isinstance(answer, Done) and not self._is_left_alone(row.session):
            what = self._why_failed(row.session) or f"{row.owner} ended"
            which = "a copy that could go on: their key lists are lost" if held else "a copy"
            self._gateway().lost(row.session, f"{what} and no other worker holds {which}")
            for worker, _ in held:
                self._workers.send(worker.name, Close(session=row.session))

    def _may_go_on(self, row: Row) -> bool:
        """Whether a copy is known that can take over as soon as it is told: no poll could find less."""
        held = self._workers.holders(row.session, ("retired", KEPT), answering=True)
        return any(self._has_lists(copy) for _, copy in held)

    def _has_lists(self, copy: Copy) -> bool:
        """Whether every list is here that a copy needs to come to the next block."""
        gateway = self._gateway()
        reaches, next_block = gateway.log_reaches(copy.session, copy.block), gateway.next_block(copy.session)
        return reaches is not None and next_block is not None and copy.block <= next_block <= reaches

    def _lacks_lists(self, copy: Copy) -> bool:
        """Whether a retired copy can never take over: every holder has reported, and lists that it needs are lost."""
        if copy.phase not in ("retired", KEPT):
            return False
        gateway = self._gateway()
        reaches, next_block = gateway.log_reaches(copy.session, copy.block), gateway.next_block(copy.session)
        return reaches is not None and next_block is not None and reaches < next_block

    async def _poll(self) -> int | None:
        """Ask every worker what it holds; None unless each has answered, or died in the poll."""
        self._polls += 1
        number = self._polls
        asked = self._workers.may_hold()
        for worker in asked:
            self._workers.send(worker.name, Poll(poll=number))
        for worker in asked:
            if not await self._answered(worker, number):
                return None
        self._desk.poll = number
        return number

    async def _answered(self, worker: WorkerRecord, number: int) -> bool:
        try:
            async with asyncio.timeout(self._config.poll_s):
                while worker.polled < number and not self._workers.is_gone(worker.name, worker.incarnation):
                    worker.heard.clear()
                    await worker.heard.wait()
        except TimeoutError:
            return False
        return True
