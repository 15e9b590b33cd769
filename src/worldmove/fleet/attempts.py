"""One try of a move as the controller conducts it: ask both ends in order, then hear how it ended.

    Prepare -> Prepared -> environment, admission -> Offer -> Reserved -> open -> Start -> Ended, Ended

Until ``Start`` every way out is a refusal, and nothing has changed. From ``Start`` on the controller only
listens, cancels, and closes what a dead end has left open; what became of it is what the ledger's row says.
"""

import asyncio
from collections.abc import Callable
from typing import TypeVar

from worldmove.errors import MoveRefused
from worldmove.fleet.config import FleetConfig
from worldmove.fleet.desk import LedgerDesk
from worldmove.fleet.reports import Outcome
from worldmove.fleet.tries import CancelAsked, Died, Ending, Heard, LinkedAgain, Plan, refuse
from worldmove.fleet.workers import WorkerRecord
from worldmove.move.ledger_messages import CloseAttempt, Denied, OpenAttempt, Opened
from worldmove.move.ledger_row import Row
from worldmove.move.messages import (
    CONTROLLER,
    AnyMoveMessage,
    Cancel,
    Ended,
    Inquire,
    MoveMessage,
    Offer,
    Prepare,
    Prepared,
    Reserved,
    Start,
)
from worldmove.state.environment import Environment

MessageT = TypeVar("MessageT", bound=MoveMessage)


class Attempt:
    """Conducts one try. Messages, deaths and cancels come in by ``take``, in order."""

    def __init__(
        self,
        plan: Plan,
        *,
        config: FleetConfig,
        desk: LedgerDesk,
        send: Callable[[str, AnyMoveMessage], None],
        admit: Callable[[Plan, Prepared], None],
        on_phase: Callable[[Plan, str], None],
    ) -> None:
        self.plan = plan
        self._config = config
        self._desk = desk
        self._send = send
        self._admit = admit
        self._on_phase = on_phase
        self._inbox: asyncio.Queue[Heard] = asyncio.Queue()
        self._ended: dict[str, Ended] = {}
        self._granted = False
        self._asked_to_open = False
        self._cut: dict[str, None] = {}
        """Ends whose words may be lost."""

    def take(self, event: Heard) -> None:
        """Hear one thing."""
        self._inbox.put_nowait(event)

    def row_changed(self, row: Row) -> None:
        """The session's row was written. What made an epoch is not in it any more once the next one has begun."""
        self._granted = self._granted or row.granted_by == self.plan.attempt

    async def run(self) -> Ending:
        """Conduct the try to its end."""
        try:
            await self._make_ready()
        except MoveRefused as refusal:
            self._cancel_both()
            await self._until_closed()  # the ledger may have opened it without having said so
            return Ending(outcome=Outcome.REFUSED, reason=refusal.reason, detail=refusal.detail)
        self._on_phase(self.plan, "transfer")
        self._tell(
            self.plan.source.name,
            Start,
            destination=self.plan.destination.name,
            destination_incarnation=self.plan.destination.incarnation,
            nonce=self.plan.nonce,
        )
        return await self._conclude()

    async def _make_ready(self) -> None:
        """Raise MoveRefused unless both ends are ready and the ledger has opened the attempt."""
        config, plan = self._config, self.plan
        self._on_phase(plan, "prepare")
        self._tell(plan.source.name, Prepare, transport=plan.transport)
        prepared = await self._hear(Prepared, plan.source, config.prepare_s)
        self._compare(prepared)
        self._admit(plan, prepared)
        self._on_phase(plan, "reserve")
        self._tell(
            plan.destination.name,
            Offer,
            layout=prepared.layout,
            environment=prepared.environment,
            ticket=prepared.ticket,
            nonce=plan.nonce,
            source=plan.source.name,
            source_incarnation=plan.source.incarnation,
            transport=plan.transport,
            strategy=plan.strategy.value,
            lease_s=config.lease_s,
        )
        await self._hear(Reserved, plan.destination, config.reserve_s)
        await self._open()

    async def _open(self) -> None:
        plan, self._asked_to_open = self.plan, True
        answer = await self._desk.ask(
            OpenAttempt(
                session=plan.session,
                attempt=plan.attempt,
                epoch=plan.epoch,
                destination=plan.destination.name,
                destination_incarnation=plan.destination.incarnation,
            )
        )
        if not isinstance(answer, Opened):
            why = answer.reason if isinstance(answer, Denied) else "no answer"
            raise MoveRefused("ledger", f"the ledger does not open the move ({why})")

    def _compare(self, prepared: Prepared) -> None:
        """Raise MoveRefused, naming every field in which the two ends' environments differ."""
        hello = self.plan.destination.hello
        there = Environment(fields=dict(hello.environment) if hello else {})
        differences = Environment(fields=prepared.environment).difference(there)
        if differences:
            raise MoveRefused("environment", "; ".join(str(difference) for difference in differences))

    async def _hear(self, kind: type[MessageT], of: WorkerRecord, within_s: float) -> MessageT:
        """Return the next message of a kind. Raises MoveRefused: declined, silence, death, cancel."""
        try:
            async with asyncio.timeout(within_s):
                while True:
                    event = await self._inbox.get()
                    if isinstance(event, kind) and event.sender == of.name:
                        return event
                    refuse(event)
        except TimeoutError:
            raise MoveRefused("silent", f"{of.name} did not answer within {within_s:.0f} s") from None

    async def _conclude(self) -> Ending:
        """Listen until both ends have said how it ended, or cannot say it any more, or need not."""
        told = await self._listen(self._config.move_s)
        if not told:
            self._cancel_both()
        if not told and not self._needs_no_words():
            told = await self._listen(self._config.doubt_s)
        await self._until_closed()
        return self._ending()

    async def _listen(self, within_s: float) -> bool:
        """Say whether both ends have told within a time. Where it is certain without them it waits a little only."""
        loop, hurried = asyncio.get_running_loop(), False
        try:
            async with asyncio.timeout(within_s) as limit:
                while not self._all_told():
                    await self._react(await self._inbox.get())
                    if self._needs_no_words() and not hurried:
                        hurried = True
                        limit.reschedule(loop.time() + min(within_s, self._config.told_s))
        except TimeoutError:
            return False
        return True

    def _needs_no_words(self) -> bool:
        """Whether the row says how it ended, and an end's own word may never come."""
        if self._is_aborted():
            return True
        row, cut = self._desk.row(self.plan.session), [end for end in self._untold() if end.name in self._cut]
        return bool(cut) and row is not None and row.attempt is None

    def _is_aborted(self) -> bool:
        """Whether the attempt is closed and was not granted, with its owner alive: then it never will be."""
        row = self._desk.row(self.plan.session)
        granted = row is not None and row.granted_by == self.plan.attempt
        return row is not None and row.attempt is None and not granted and not self._desk.owner_is_gone(row)

    async def _react(self, event: Heard) -> None:
        match event:
            case Ended() if event.outcome != "in_doubt":  # a word on the way, not the end
                self._ended[event.side] = event
                if event.outcome == "aborted":
                    await self._close()
            case CancelAsked():
                self._cancel_both()
            case LinkedAgain(worker=worker):
                self._cut[worker] = None
            case Died():
                await self._close()
                self._wake(self.plan.destination if event.worker == self.plan.source.name else self.plan.source)

    async def _close(self) -> None:
        """Close the attempt in the place of an end that is dead. A destination in doubt may still be granted."""
        plan = self.plan
        await self._desk.ask(
            CloseAttempt(
                session=plan.session,
                attempt=plan.attempt,
                epoch=plan.epoch,
                worker=CONTROLLER,
                incarnation=0,
                boundary=0,
            )
        )

    async def _until_closed(self) -> None:
        """Leave no attempt open that nobody conducts, or none could begin after it. A silent ledger is asked again."""
        try:
            async with asyncio.timeout(self._config.doubt_s):
                while self._may_be_open():
                    await self._close()
                    if self._may_be_open():
                        await asyncio.sleep(self._config.recover_every_s)
        except TimeoutError:
            return  # it does not answer: the report says *in doubt*

    def _may_be_open(self) -> bool:
        """Whether the row has it open; what the row is while the ledger does not answer, nobody knows."""
        row = self._desk.row(self.plan.session)
        has_it = row is not None and row.attempt is not None and row.attempt.attempt == self.plan.attempt
        return self._asked_to_open and (has_it or self._desk.failure is not None)

    def _wake(self, end: WorkerRecord) -> None:
        """Have an end give up if it may, and ask the ledger if it may not."""
        self._tell(end.name, Cancel)
        self._tell(end.name, Inquire)

    def _all_told(self) -> bool:
        """Whether each end has said how it ended, or is dead."""
        return all(self._desk.is_gone(end.name, end.incarnation) for end in self._untold())

    def _untold(self) -> tuple[WorkerRecord, ...]:
        """Return the ends that have not said how it ended."""
        ends = (("source", self.plan.source), ("destination", self.plan.destination))
        return tuple(end for side, end in ends if side not in self._ended)

    def _why_untold(self) -> tuple[str, str] | None:
        """Say of an end that could not say how it ended that it is dead, or does not answer; None where there is none.

        What the other end says is the echo of having been woken, or of its time being over.
        """
        for end in self._untold():
            if self._desk.is_gone(end.name, end.incarnation):
                return "worker_gone", f"{end.name} ended in the middle of the move"
        for end in self._untold():
            if self._desk.is_suspected(end.name, end.incarnation):
                return "silent", f"{end.name} does not answer, and the move was closed"
        return None

    def _was_granted(self, row: Row) -> bool:
        """Whether the destination has owned the session by this attempt, and the source did not get it back unshown."""
        source, destination = self._ended.get("source"), self._ended.get("destination")
        if source is not None and source.reason == "reclaimed":
            return False
        told = any(end is not None and end.outcome == "committed" for end in (source, destination))
        return told or self._granted or row.granted_by == self.plan.attempt

    def _ending(self) -> Ending:
        """Read from the row what became of the try; the ends' words explain it."""
        row = self._desk.row(self.plan.session)
        source, destination = self._ended.get("source"), self._ended.get("destination")
        aborted = next((end for end in (destination, source) if end is not None and end.outcome == "aborted"), None)
        if row is None or row.lost:
            outcome, reason, detail = Outcome.LOST, "lost", "no copy is left"
        elif self._was_granted(row):
            outcome, reason, detail = Outcome.COMMITTED, "done", ""
        elif row.attempt is None:
            outcome, reason, detail = Outcome.ABORTED, "silent", "an end did not answer, and the move was closed"
            if why := self._why_untold():
                reason, detail = why
            elif aborted:
                reason, detail = aborted.reason, aborted.detail
        else:
            outcome, reason, detail = Outcome.IN_DOUBT, "silent", "an end has not said how the move ended"
        return Ending(outcome=outcome, reason=reason, detail=detail, source=source, destination=destination)

    def _cancel_both(self) -> None:
        for end in (self.plan.source, self.plan.destination):
            self._tell(end.name, Cancel)

    def _tell(self, to: str, kind: type[AnyMoveMessage], **fields: object) -> None:
        plan = self.plan
        message = kind(
            to=to,
            sender=CONTROLLER,
            incarnation=0,
            session=plan.session,
            attempt=plan.attempt,
            epoch=plan.epoch,
            **fields,  # type: ignore[arg-type]
        )
        self._send(to, message)
