"""One try of a move as the controller conducts it: ask both ends in order, then hear how it ended.

    Prepare -> Prepared -> environment, admission -> Offer -> Reserved -> open -> Start -> Ended, Ended
                                                                             Begin ... -> Ready -> Start

Until it is open every way out is a refusal, and nothing has changed. A strategy that does something before the boundary
is begun then, and started once it is ready. From ``Start`` on the controller only listens, cancels, and closes what a
dead end has left open; what became of it is what the ledger's row says.
"""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TypeVar

from worldmove.errors import MoveRefused, TransportError
from worldmove.fleet.closing import closing
from worldmove.fleet.config import FleetConfig
from worldmove.fleet.desk import LedgerDesk
from worldmove.fleet.ends import Ends
from worldmove.fleet.getting_on import while_it_gets_on
from worldmove.fleet.reports import Outcome
from worldmove.fleet.testimony import Testimony
from worldmove.fleet.tries import CancelAsked, Died, Ending, Heard, LinkedAgain, Plan, refuse
from worldmove.fleet.views import WorkerState
from worldmove.fleet.workers import WorkerRecord
from worldmove.move.affordable import Affordable
from worldmove.move.ledger_messages import Denied, OpenAttempt, Opened
from worldmove.move.ledger_row import Row
from worldmove.move.messages import AnyMoveMessage, Ended, MoveMessage, Prepared, Ready, Reserved
from worldmove.state.environment import Environment

UNREACHED = (TransportError.code, "silent")
"""Why a try is refused where an end does not know whether the other one lives."""

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
        admit: Callable[[Plan, Prepared], Affordable | None],
        on_phase: Callable[[Plan, str], None],
    ) -> None:
        self.plan = plan
        self._config = config
        self._desk = desk
        self._ends = Ends(plan, config=config, send=send)
        self._admit = admit
        self._on_phase = on_phase
        self._inbox: asyncio.Queue[Heard] = asyncio.Queue()
        self._testimony = Testimony(plan, desk)
        self.takes_long = False
        """It is open, and what comes before the boundary goes on: the source plays, and has the room that it takes."""
        self.num_steps = 0
        """By how many beats an end has said that it gets on with it."""
        self._asked_to_open = False
        self._is_left = False
        """Whether it was given up before the boundary, since its source did not answer."""

    def take(self, event: Heard) -> None:
        """Hear one thing."""
        self._inbox.put_nowait(event)

    def row_changed(self, row: Row) -> None:
        """The session's row was written."""
        self._testimony.row_changed(row)

    async def run(self) -> Ending:
        """Conduct the try to its end."""
        try:
            await self._make_ready()
        except MoveRefused as refusal:
            self._ends.cancel()
            await self._until_closed()  # the ledger may have opened it without having said so
            reason, detail = await self._why_refused(refusal)
            return Ending(outcome=Outcome.REFUSED, reason=reason, detail=detail)
        is_ready = not self.plan.strategy.begins_early or await self._is_ready()
        self.takes_long = False
        if is_ready:
            self._on_phase(self.plan, "transfer")
            self._ends.start()
        else:
            self._ends.cancel()
        ending = await self._conclude()
        if self._is_left and ending.outcome is Outcome.ABORTED:  # both ends know only that they were to give up
            detail = f"{self.plan.source.name} does not answer, and the move was closed"
            return replace(ending, reason="silent", detail=detail)
        return ending

    async def break_off(self) -> Ending:
        """Its conduct has failed: have both ends give up, and close it. What became of it is what the row says."""
        why = "the server failed at it; its log says more"
        self._ends.cancel()
        if not self._asked_to_open:
            return Ending(outcome=Outcome.REFUSED, reason="internal", detail=why)
        await self._until_closed()
        await self._listen(self._config.doubt_s)
        ending = self._testimony.ending()
        if ending.outcome is Outcome.COMMITTED:
            return ending
        return replace(ending, reason="internal", detail=why)

    async def _make_ready(self) -> None:
        """Raise MoveRefused unless both ends are ready and the ledger has opened the attempt."""
        config, plan = self._config, self.plan
        self._on_phase(plan, "prepare")
        self._ends.prepare()
        prepared = await self._hear(Prepared, plan.source, config.prepare_s)
        self._compare(prepared)
        most = self._admit(plan, prepared)
        self._on_phase(plan, "reserve")
        self._ends.offer(prepared, most)
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

    async def _is_ready(self) -> bool:
        """Have both ends do what comes before the boundary. False where it came to nothing.

        It may take a minute. Where the source does not answer meanwhile, nobody plays the session: whoever could take
        it over is not to wait for that.
        """
        config, loop = self._config, asyncio.get_running_loop()
        self._on_phase(self.plan, "follow")
        ends_at = loop.time() + config.patience_s + config.told_s  # the ends' own words come first
        while loop.time() < ends_at:
            if self._desk.is_suspected(self.plan.source.name, self.plan.source.incarnation):
                self._is_left = True
                return False
            if self._testimony.has_let_go():  # it has said why over a link that is no more
                await self._close()
                return False
            self._ends.begin()
            try:
                async with asyncio.timeout(config.begin_every_s):
                    event = await self._inbox.get()
                    while not isinstance(event, Ready | Ended | CancelAsked | Died):
                        if isinstance(event, LinkedAgain):
                            await self._react(event)
                        event = await self._inbox.get()
            except TimeoutError:
                self.takes_long = True
                continue
            if isinstance(event, Ready):
                return True
            await self._react(event)
            return False
        return False

    def _compare(self, prepared: Prepared) -> None:
        """Raise MoveRefused, naming every field in which the two ends' environments differ."""
        hello = self.plan.destination.hello
        there = Environment(fields=dict(hello.environment) if hello else {})
        differences = Environment(fields=prepared.environment).difference(there)
        if differences:
            raise MoveRefused("environment", "; ".join(str(difference) for difference in differences))

    async def _hear(self, kind: type[MessageT], of: WorkerRecord, within_s: float) -> MessageT:
        """Return the next message of a kind. Raises MoveRefused: declined, silence, death, cancel.

        Other things may be at its engine first: it is silent once it has got nothing done for so long. Where it has
        made a new link, what it was asked, or its answer, may be lost with the old one: then it has so long in all.
        """
        why, loop = f"{of.name} has not answered, and got nothing done for {within_s:.0f} s", asyncio.get_running_loop()
        ends_at = loop.time() + self._config.patience_s
        try:
            async with asyncio.timeout_at(ends_at) as limit, while_it_gets_on(partial(self._how_far, of), within_s):
                while True:
                    event = await self._inbox.get()
                    if isinstance(event, kind) and event.sender == of.name:
                        return event
                    if isinstance(event, LinkedAgain) and event.worker == of.name:
                        limit.reschedule(min(ends_at, loop.time() + within_s))
                    refuse(event)
        except TimeoutError:
            raise MoveRefused("silent", why) from None

    def _how_far(self, end: WorkerRecord) -> int:
        """Return how far an end has got with what it was asked for before, or both with this."""
        return end.num_done + self.num_steps

    async def _why_refused(self, refusal: MoveRefused) -> tuple[str, str]:
        """Return the reason and the detail: an end that could not be reached may be dead, and not known to be."""
        ends = (self.plan.source, self.plan.destination) if refusal.reason in UNREACHED else ()
        for end in ends:
            await self._until_known(end)
            if self._desk.is_gone(end.name, end.incarnation):
                return "worker_gone", f"{end.name} ended"
        return refusal.reason, refusal.detail

    async def _until_known(self, end: WorkerRecord) -> None:
        """Return once an end has answered a beat that it is sent from now on, or is dead, or suspected."""
        sent = end.beat_sent
        try:
            async with asyncio.timeout(self._config.owner_s):
                while end.beat_answered <= sent and not end.suspected and end.state is not WorkerState.GONE:
                    await self._react_to_next()
        except TimeoutError:
            return  # beats are not sent to it: what was said of it is all that there is

    async def _conclude(self) -> Ending:
        """Listen until both ends have said how it ended, or cannot say it any more, or need not."""
        told = await self._listen(self._config.move_s)
        if not told:
            self._ends.cancel()
        if not told and not self._testimony.is_needless:
            told = await self._listen(self._config.doubt_s)
        await self._until_closed()
        for end in self._testimony.untold():
            await self._until_known(end)
        return self._testimony.ending()

    async def _listen(self, within_s: float) -> bool:
        """Say whether both ends have told within a time. Where it is certain without them it waits a little only."""
        loop, hurried = asyncio.get_running_loop(), False
        try:
            async with asyncio.timeout(within_s) as limit:
                while not self._testimony.is_complete:
                    if self._testimony.is_needless and not hurried:
                        hurried = True
                        limit.reschedule(loop.time() + min(within_s, self._config.told_s))
                    await self._react_to_next()
        except TimeoutError:
            return False
        return True

    async def _react_to_next(self) -> None:
        """React to the next event; or return after a little, for the next block is shown without one."""
        try:
            async with asyncio.timeout(self._config.recover_every_s):
                event = await self._inbox.get()
        except TimeoutError:
            return
        await self._react(event)

    async def _react(self, event: Heard) -> None:
        if not self._asked_to_open:
            return  # refused: no word changes that, and there is nothing to close
        match event:
            case Ended() if event.outcome != "in_doubt":  # a word on the way, not the end
                self._testimony.take(event)
                if event.outcome == "aborted":
                    await self._close()
            case Ready():
                self._ends.start()  # it may have been lost
                self._ends.go_on()  # a source may take longer to its boundary than a lease lasts
            case CancelAsked():
                self._ends.cancel()
            case LinkedAgain(worker=worker):
                self._testimony.cut_off(worker)
            case Died():
                await self._close()
                self._ends.wake(self.plan.destination if event.worker == self.plan.source.name else self.plan.source)

    async def _close(self) -> None:
        """Close the attempt in the place of an end that is dead. A destination in doubt may still be granted."""
        await self._desk.ask(closing(self.plan.session, self.plan.attempt, self.plan.epoch))

    async def _until_closed(self) -> None:
        """Leave no attempt open that nobody conducts, or none could begin after it. A silent ledger is asked again.

        Nor one whose commit is on its way to a slow one: it comes before the close that is asked now.
        """
        try:
            async with asyncio.timeout(self._config.doubt_s):
                while self._is_unsettled():
                    await self._close()
                    if self._is_unsettled():
                        await asyncio.sleep(self._config.recover_every_s)
        except TimeoutError:
            return  # it does not answer: the report says *in doubt*

    def _is_unsettled(self) -> bool:
        """Whether the row has it open, or may come to have it granted by what its destination has asked before.

        What the row is while the ledger does not answer, nobody knows.
        """
        row, attempt = self._desk.row(self.plan.session), self.plan.attempt
        has_it = row is not None and row.attempt is not None and row.attempt.attempt == attempt
        may_be_open = self._asked_to_open and (has_it or self._desk.failure is not None)
        is_granted = row is not None and row.epoch != self.plan.epoch
        return may_be_open or (not is_granted and self._desk.may_yet_commit(attempt))
