"""Everything that may happen next: the two ends, the ledger, the gateway, the controller, and the faults.

A state is a tuple of small numbers: row, gateway, plans, luck, messages in flight (bits), blocks shown, and one
end for each worker. No step is ever forced, so whoever is slow, or sleeps and wakes late, is among the paths.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from tests.model import invariants
from tests.model.book import NAMES, POLL, SESSION, Book, Numbered, attempt_name
from tests.model.bounds import Bounds
from tests.model.ends import GOOD, End, Ends, Message, Plan
from tests.model.invariants import Broken
from tests.model.rules import Rules
from tests.model.wire import Matters, Wire
from worldmove.fleet.ports import Owner
from worldmove.move.ledger_messages import (
    CloseAttempt,
    Closed,
    Done,
    Failover,
    Lose,
    MarkShown,
    OpenAttempt,
    Opened,
    Reclaim,
    Yours,
)
from worldmove.move.ledger_row import Row
from worldmove.move.messages import CONTROLLER
from worldmove.move.protocol import DestinationPhase, SourcePhase
from worldmove.serve.show import Fence, Verdict
from worldmove.worker.messages import KEPT, Copy

ROW, GATE, PLANS, LUCK, FLIGHT, SHOWN, ENDS = range(7)
State = tuple[int, ...]
Held = list[tuple[int, Copy]]
Step = tuple[bool, State | None, Broken | None]
"""Whether it is a fault; where it leads, if there; what it breaks."""


class Gate(NamedTuple):
    """The server: what its gateway and its controller remember."""

    life: int = 1
    next: int | None = 0
    closed: int = 0
    shown: int = 0
    gone: int = 0
    """The newest epoch whose owner said that it holds no copy."""


class Luck(NamedTuple):
    """The faults that are left, and those that were."""

    crashes: int
    suspicions: int
    restarts: int
    suspected: int = 0
    empty: int = 0
    """Workers that were heard to be empty, by whatever incarnation."""
    before: int = -1
    """The row before its last write, where the ledger may lose that."""
    snapshots: int = 0
    """Those that may still come to be kept."""


class World:
    """One session's world within some bounds, under some rules."""

    def __init__(self, bounds: Bounds, rules: Rules) -> None:
        self.bounds = bounds
        self.rules = rules
        self.book = Book(rules.decide)
        self.wire = Wire(rules, self.book)
        self.ends: Numbered[End] = Numbered()
        self.gates: Numbered[Gate] = Numbered()
        self.plans: Numbered[tuple[Plan, ...]] = Numbered()
        self.lucks: Numbered[Luck] = Numbered()
        self._drivers = Ends(bounds, rules, self.book)
        self._alone: dict[tuple[Any, ...], list[tuple[int, int, Broken | None]]] = {}
        self._heard: dict[tuple[Any, ...], tuple[int, int, Broken | None] | None] = {}
        self._kept: dict[tuple[Any, ...], int] = {}
        self._judged: dict[tuple[Any, ...], Broken | None] = {}

    def first(self) -> State:
        """Return the beginning: A plays, nothing was computed."""
        row = Row(session=SESSION, owner=NAMES[0], incarnation=1, epoch=1)
        bounds = self.bounds
        luck = Luck(bounds.num_crashes, bounds.num_suspicions, bounds.num_restarts, snapshots=bounds.num_snapshots)
        plays = End(phase=SourcePhase.LIVE, epoch=1, row_epoch=1, content=GOOD, verified=True)
        ends = (plays, *(End() for _ in range(bounds.num_workers - 1)))
        numbers = (self.book.rows.of(row), self.gates.of(Gate()), self.plans.of(()), self.lucks.of(luck), 0, 0)
        return (*numbers, *(self.ends.of(end) for end in ends))

    def is_good(self, state: State) -> bool:
        """Whether the owner plays and has shown every block there is, or the session is reported lost."""
        row: Row = self.book.rows.values[state[ROW]]
        if row.lost:
            return True
        worker = NAMES.index(row.owner)
        end = self.ends.values[state[ENDS + worker]]
        plays = end.phase is SourcePhase.LIVE and (end.incarnation, end.epoch) == (row.incarnation, row.epoch)
        return plays and state[SHOWN] == self.bounds.num_blocks

    def steps(self, state: State) -> Iterator[Step]:
        """Return every step that may be next."""
        row: Row = self.book.rows.values[state[ROW]]
        if row.lost:
            return
        yield from self._ends_alone(state, row)
        yield from self._learns_at_the_end(state, row)
        flight = state[FLIGHT]
        while flight:
            low = flight & -flight
            flight ^= low
            yield from self._arrives(state, row, low.bit_length() - 1)
        yield from self._controller(state, row)
        yield from self._keeps(state, row)
        yield from self._faults(state, row)

    # the ends

    def _ends_alone(self, state: State, row: Row) -> Iterator[Step]:
        for worker in range(self.bounds.num_workers):
            number = state[ENDS + worker]
            key = (worker, number, state[ROW], state[SHOWN])
            done = self._alone.get(key)
            if done is None:
                before = self.ends.values[number]
                done = self._alone[key] = []
                for end, sent in self._drivers.alone(worker, before, row_shown=row.shown):
                    broken = invariants.of_step(row, worker, before, end, shown=state[SHOWN], told=False)
                    done.append((self.ends.of(end), self.wire.mask(sent), broken))
            for found in done:
                yield self._end_steps(state, worker, *found)

    def _learns_at_the_end(self, state: State, row: Row) -> Iterator[Step]:
        """Beyond the last block that is explored there is another, and it would be refused."""
        for worker, end in enumerate(self._all_ends(state) if state[SHOWN] == self.bounds.num_blocks else ()):
            if end.phase is SourcePhase.LIVE and end.epoch < row.epoch and end.acked == self.bounds.num_blocks:
                yield from self._hears(state, row, worker, self.wire.number(("refused", row.epoch)))

    def _end_steps(self, state: State, worker: int, end: int, sent: int, broken: Broken | None) -> Step:
        place = ENDS + worker
        after = (*state[:FLIGHT], state[FLIGHT] | sent, state[SHOWN], *state[ENDS:place], end, *state[place + 1 :])
        return self._step(after, broken)

    def _hears(self, state: State, row: Row, worker: int, said: int) -> Iterator[Step]:
        number = state[ENDS + worker]
        message = self.wire.messages.values[said]
        good = message[0] == "data" and self._reads_well(state, message)
        key = (worker, number, said, good, state[PLANS], state[ROW], state[SHOWN])
        if key not in self._heard:
            before = self.ends.values[number]
            done = self._drivers.hear(worker, before, message, self.plans.values[state[PLANS]], good=good)
            if done is None:
                self._heard[key] = None
            else:
                told = message[0] == "answer"
                broken = invariants.of_step(row, worker, before, done[0], shown=state[SHOWN], told=told)
                self._heard[key] = (self.ends.of(done[0]), self.wire.mask(done[1]), broken)
        found = self._heard[key]
        if found is not None:
            yield self._end_steps(state, worker, *found)

    def _reads_well(self, state: State, message: Message) -> bool:
        """Whether what is pulled now is the boundary's state: the source still holds it, and has not gone on."""
        plan = self.plans.values[state[PLANS]][message[1] - 1]
        end = self.ends.values[state[ENDS + plan.source]]
        return bool(end.is_source and end.incarnation == plan.source_incarnation and end.next == message[2])

    # messages

    def _arrives(self, state: State, row: Row, number: int) -> Iterator[Step]:
        said = self.wire.messages.values[number]
        word = said[0]
        if word == "ask":
            yield from self._asked(state, row, said[1])
        elif word == "frame":
            yield from self._frame(state, row, said)
        elif word == "ack":
            for worker in range(self.bounds.num_workers):
                yield from self._hears(state, row, worker, number)
        elif word in ("answer", "take over", "revive"):
            if self.ends.values[state[ENDS + said[1]]].incarnation == said[2]:
                yield from self._hears(state, row, said[1], number)
        elif word == "gone":
            gate = self.gates.values[state[GATE]]
            yield self._changed(state, gate=gate._replace(gone=max(gate.gone, said[1])))
        elif word == "empty":
            luck = self.lucks.values[state[LUCK]]
            yield self._changed(state, luck=luck._replace(empty=luck.empty | 1 << said[1]))
        else:
            plan = self.plans.values[state[PLANS]][said[1] - 1]
            for worker in (plan.source, plan.destination):
                yield from self._hears(state, row, worker, number)

    def _asked(self, state: State, row: Row, number: int) -> Iterator[Step]:
        """A worker's question reaches the ledger."""
        asked = self.book.operations.values[number]
        worker = NAMES.index(asked.worker)
        for known in self._known(state, row):
            after, answer = self.book.decide(state[ROW], number, known)
            if answer < 0:
                continue
            said = ("answer", worker, asked.incarnation, number, answer)
            broken = None
            if isinstance(self.book.answers.values[answer], Closed):
                broken = self._only_copy_closed(state, worker, number)
            yield self._changed(state, row=after, sent=self.wire.mask((said,)), broken=broken)

    def _only_copy_closed(self, state: State, worker: int, number: int) -> Broken | None:
        """Whether a destination in doubt is told to discard the only copy that could play on."""
        ends = self._all_ends(state)
        waits = ends[worker].phase is DestinationPhase.DOUBT and ends[worker].question == number
        return Broken.I7 if waits and invariants.current(ends, state[SHOWN]) == (worker,) else None

    def _frame(self, state: State, row: Row, said: Message) -> Iterator[Step]:
        """A block reaches the gateway, which judges it by the row."""
        _, worker, epoch, block = said
        gate: Gate = self.gates.values[state[GATE]]
        if gate.next is None:
            return
        fence = Fence(next_block=gate.next, closed_epoch=gate.closed or None, shown_epoch=gate.shown or None)
        owner = Owner(worker=row.owner, incarnation=row.incarnation, epoch=row.epoch)
        verdict = self.rules.judge(fence, owner, worker=NAMES[worker], epoch=epoch, block=block)
        if verdict is Verdict.RECORD_FIRST:
            asked = self.book.operations.of(MarkShown(session=SESSION, epoch=epoch))
            after, answer = self.book.decide(state[ROW], asked, next(self._known(state, row)))
            if isinstance(self.book.answers.values[answer], Done):
                yield self._changed(state, row=after, gate=gate._replace(shown=epoch))
        elif verdict is Verdict.SHOW:
            yield self._shows(state, row, gate, said)
        elif verdict is Verdict.REPEATED:
            yield self._changed(state, sent=self.wire.mask((("ack", gate.life, block),)))
        elif verdict is not Verdict.AHEAD and row.epoch > epoch:
            yield from self._hears(state, row, worker, self.wire.number(("refused", row.epoch)))

    def _shows(self, state: State, row: Row, gate: Gate, said: Message) -> Step:
        _, worker, epoch, block = said
        broken = None
        if block != state[SHOWN]:
            broken = Broken.I1
        elif (row.owner, row.epoch) != (NAMES[worker], epoch):
            broken = Broken.I2
        sent = self.wire.mask((("ack", gate.life, block),))
        shown = max(state[SHOWN], block + 1)
        return self._changed(state, gate=gate._replace(next=block + 1), sent=sent, shown=shown, broken=broken)

    # the controller

    def _controller(self, state: State, row: Row) -> Iterator[Step]:
        if row.attempt is None:
            yield from self._offers(state, row)
            yield from self._recovers(state, row)
        else:
            asked = CloseAttempt(
                session=SESSION,
                attempt=row.attempt.attempt,
                epoch=row.epoch,
                worker=CONTROLLER,
                incarnation=0,
                boundary=0,
            )
            yield self._decided(state, row, asked)
        yield from self._attempts(state, row)
        gate: Gate = self.gates.values[state[GATE]]
        if gate.next is None:
            yield self._resolved(state, row)
        owner = self.ends.values[state[ENDS + NAMES.index(row.owner)]]
        holds_none = owner.phase in (DestinationPhase.NONE, DestinationPhase.QUARANTINE)
        if self.rules.reads_reports and holds_none and owner.incarnation == row.incarnation and gate.gone != row.epoch:
            yield self._changed(state, gate=gate._replace(gone=row.epoch))

    def _keeps(self, state: State, row: Row) -> Iterator[Step]:
        """Another worker has come to keep a snapshot of the owner's state: every block before it has left by then."""
        luck, owner = self.lucks.values[state[LUCK]], NAMES.index(row.owner)
        end = self.ends.values[state[ENDS + owner]]
        plays = end.phase is SourcePhase.LIVE and (end.incarnation, end.epoch) == (row.incarnation, row.epoch)
        still = end.acked == end.next or not self.rules.keeps_what_has_left
        if not luck.snapshots or not plays or end.next < end.replays_to or not still:
            return
        left = self.lucks.of(luck._replace(snapshots=luck.snapshots - 1))
        for worker in range(self.bounds.num_workers):
            if worker != owner:
                place = ENDS + worker
                keeper = self.ends.values[state[place]]
                kept = self.ends.of(keeper._replace(kept=end.next, kept_epoch=end.epoch))
                after = (*state[:LUCK], left, *state[FLIGHT:place], kept, *state[place + 1 :])
                yield self._step(after, None)

    def _revives(self, state: State, row: Row, next_block: int | None, held: list[tuple[int, Copy]]) -> Iterator[Step]:
        found = None if next_block is None else self.rules.to_revive(held, next_block)
        if found is not None and row.attempt is None:
            worker, copy = found
            incarnation = self.ends.values[state[ENDS + worker]].incarnation
            said = ("revive", worker, incarnation, copy.block, next_block, row.epoch)
            yield self._changed(state, sent=self.wire.mask((said,)))

    def _offers(self, state: State, row: Row) -> Iterator[Step]:
        plans: tuple[Plan, ...] = self.plans.values[state[PLANS]]
        source = NAMES.index(row.owner)
        ends = self._all_ends(state)
        plays = ends[source].phase is SourcePhase.LIVE and ends[source].epoch == row.epoch
        if len(plans) == self.bounds.num_attempts or not plays or ends[source].incarnation != row.incarnation:
            return
        for worker, end in enumerate(ends):
            is_twin = not plans and worker > 1  # the workers that hold nothing are alike
            if worker == source or end.phase is not DestinationPhase.NONE or is_twin:
                continue
            plan = Plan(source, row.incarnation, worker, end.incarnation, row.epoch)
            yield self._changed(state, plans=(*plans, plan))

    def _attempts(self, state: State, row: Row) -> Iterator[Step]:
        """The controller offers, opens and cancels: each whenever it likes, and as often."""
        for number, plan in enumerate(self.plans.values[state[PLANS]], start=1):
            name = attempt_name(number)
            is_open = row.attempt is not None and row.attempt.attempt == name
            if name > row.last_attempt or is_open:
                yield from self._hears(state, row, plan.destination, self.wire.number(("offer", number)))
            yield from self._hears(state, row, plan.source, self.wire.number(("cancel", number)))
            shadow = self.ends.values[state[ENDS + plan.destination]]
            reserved = shadow.phase is DestinationPhase.SHADOW and shadow.attempt == number
            if not reserved or shadow.incarnation != plan.destination_incarnation:
                continue
            asked = OpenAttempt(
                session=SESSION,
                attempt=name,
                epoch=plan.epoch,
                destination=NAMES[plan.destination],
                destination_incarnation=plan.destination_incarnation,
            )
            yield self._decided(state, row, asked, sent=("start", number))

    def _recovers(self, state: State, row: Row) -> Iterator[Step]:
        """The owner is gone, or may be: a retired copy takes over, or the session is lost."""
        for known in self._known(state, row):
            gone, suspected, next_block, _ = known
            if not (gone or suspected):
                continue
            ends, gate = self._all_ends(state), self.gates.values[state[GATE]]
            if self.rules.reclaims_unasked and next_block is not None and (gone or suspected):
                yield from self._reclaims_unasked(state, known)
            held = [(worker, copy_of(end)) for worker, end in enumerate(ends)]
            holders = [(worker, copy) for worker, copy in held if copy is not None]
            holders += [(worker, kept_of(end)) for worker, end in enumerate(ends) if end.kept >= 0]
            for answering in self._answering(state, holders, silent=() if gone else (NAMES.index(row.owner),)):
                of_use = self.rules.that_may_go_on(answering, may_be_granted=gone)
                yield from self._revives(state, row, next_block, of_use)
                holder = self.rules.successor(of_use)
                if holder is not None and next_block is not None:
                    closed = gate._replace(closed=max(gate.closed, row.epoch))
                    yield self._fails_over(state, row, holder, (gone, suspected, next_block, closed.closed), closed)
            if gone or (suspected and self.rules.suspicion_is_death):
                found = self.rules.num_current(copy for _, copy in holders)
                asked = Lose(session=SESSION, epoch=row.epoch, poll=POLL, copies_found=found)
                after, answer = self.book.decide(state[ROW], self.book.operations.of(asked), known)
                if isinstance(self.book.answers.values[answer], Done):
                    lives = any(end.is_complete or end.kept >= 0 for end in ends)
                    yield self._changed(state, row=after, broken=Broken.I5 if lives else None)

    def _answering(self, state: State, holders: Held, silent: tuple[int, ...]) -> Iterator[Held]:
        """Return the copies of workers that answer: of all but the ``silent``; and of those that are not suspected.

        A suspicion comes and goes, but for the one that this is done for.
        """
        suspected = self.lucks.values[state[LUCK]].suspected
        others = [(worker, copy) for worker, copy in holders if worker not in silent]
        yield others
        answering = [(worker, copy) for worker, copy in others if not suspected >> worker & 1]
        if len(answering) < len(others):
            yield answering

    def _fails_over(self, state: State, row: Row, holder: int, known: tuple[Any, ...], gate: Gate) -> Step:
        incarnation = self.ends.values[state[ENDS + holder]].incarnation
        reaches = self.bounds.num_blocks
        asked = Failover(
            session=SESSION, epoch=row.epoch, worker=NAMES[holder], incarnation=incarnation, log_reaches=reaches
        )
        after, answer = self.book.decide(state[ROW], self.book.operations.of(asked), known)
        told = self.book.answers.values[answer] if answer >= 0 else None
        sent: tuple[Message, ...] = ()
        if isinstance(told, Done):
            sent = (("take over", holder, incarnation, told.epoch, known[2]),)
        return self._changed(state, row=after, gate=gate, sent=self.wire.mask(sent))

    def _reclaims_unasked(self, state: State, known: tuple[Any, ...]) -> Iterator[Step]:
        for plan in self.plans.values[state[PLANS]]:
            asked = Reclaim(
                session=SESSION,
                epoch=plan.epoch + 1,
                acknowledged=known[2],
                computed=known[2],
                worker=NAMES[plan.source],
                incarnation=self.ends.values[state[ENDS + plan.source]].incarnation,
            )
            after, answer = self.book.decide(state[ROW], self.book.operations.of(asked), known)
            if answer >= 0 and isinstance(self.book.answers.values[answer], Yours):
                yield self._changed(state, row=after)

    def _resolved(self, state: State, row: Row) -> Step:
        """A restarted server has been told: by the client, and by the owner, or of its death."""
        gate: Gate = self.gates.values[state[GATE]]
        owner = self.ends.values[state[ENDS + NAMES.index(row.owner)]]
        lives = owner.incarnation == row.incarnation
        told = owner.acked if lives and owner.is_source and owner.epoch == row.epoch else 0
        next_block = told if self.rules.restart_asks_owner_only else max(told, state[SHOWN])
        return self._changed(state, gate=gate._replace(next=next_block))

    # faults

    def _faults(self, state: State, row: Row) -> Iterator[Step]:
        luck: Luck = self.lucks.values[state[LUCK]]
        if state[FLIGHT]:
            yield True, (*state[:FLIGHT], 0, *state[SHOWN:]), None
        if luck.crashes:
            for worker in range(self.bounds.num_workers):
                _, after, broken = self._crashed(state, worker, luck)
                yield True, after, broken
        owner = NAMES.index(row.owner)
        lives = self.ends.values[state[ENDS + owner]].incarnation == row.incarnation
        if luck.suspicions and lives and not luck.suspected >> owner & 1:
            left = luck._replace(suspicions=luck.suspicions - 1, suspected=luck.suspected | 1 << owner)
            _, after, broken = self._changed(state, luck=left)
            yield True, after, broken
        if luck.restarts:
            _, after, broken = self._restarted(state, row, luck)
            yield True, after, broken

    def _crashed(self, state: State, worker: int, luck: Luck) -> Step:
        place = ENDS + worker
        incarnation = self.ends.values[state[place]].incarnation + 1
        left = self.lucks.of(luck._replace(crashes=luck.crashes - 1, suspected=luck.suspected & ~(1 << worker)))
        sent = 0 if self.rules.gone_needs_incarnation else self.wire.mask((("empty", worker),))
        end = self.ends.of(End(incarnation=incarnation))
        flight = state[FLIGHT] | sent
        return self._step(
            (*state[:LUCK], left, flight, state[SHOWN], *state[ENDS:place], end, *state[place + 1 :]), None
        )

    def _restarted(self, state: State, row: Row, luck: Luck) -> Step:
        gate: Gate = self.gates.values[state[GATE]]
        after = row
        if luck.before >= 0 and self.rules.after_lost_write is not None:
            ends = enumerate(self._all_ends(state))
            reports = tuple((end.epoch, worker, end.incarnation) for worker, end in ends if end.is_source)
            after = self.rules.after_lost_write(self.book.rows.values[luck.before], reports)
        if not self.rules.shown_survives_restart:
            after = Row(**{**_fields(after), "shown": False})
        forgets = Gate(life=gate.life + 1, next=0 if self.rules.restart_shows_at_once else None)
        left = luck._replace(restarts=luck.restarts - 1, before=-1)
        return self._changed(state, row=self.book.rows.of(after), gate=forgets, luck=left, keeps=True)

    # what all steps share

    def _all_ends(self, state: State) -> tuple[End, ...]:
        values = self.ends.values
        return tuple(values[number] for number in state[ENDS:])

    def _known(self, state: State, row: Row) -> Iterator[tuple[Any, ...]]:
        """Return what the server may know when it asks: a suspicion comes and goes."""
        gate: Gate = self.gates.values[state[GATE]]
        luck: Luck = self.lucks.values[state[LUCK]]
        owner = NAMES.index(row.owner)
        gone = self.ends.values[state[ENDS + owner]].incarnation != row.incarnation or gate.gone == row.epoch
        gone = gone or bool(luck.empty >> owner & 1)
        yield gone, False, gate.next, gate.closed
        if luck.suspected >> owner & 1 and not gone:
            yield gone, True, gate.next, gate.closed

    def _decided(self, state: State, row: Row, asked: Any, sent: Message | None = None) -> Step:
        """The controller puts an operation to the ledger; ``sent`` follows an attempt that was opened."""
        known = next(self._known(state, row))
        after, answer = self.book.decide(state[ROW], self.book.operations.of(asked), known)
        opened = answer >= 0 and isinstance(self.book.answers.values[answer], Opened)
        return self._changed(state, row=after, sent=self.wire.mask((sent,)) if sent and opened else 0)

    def _changed(
        self,
        state: State,
        *,
        row: int | None = None,
        gate: Gate | None = None,
        plans: tuple[Plan, ...] | None = None,
        luck: Luck | None = None,
        sent: int = 0,
        shown: int | None = None,
        broken: Broken | None = None,
        keeps: bool = False,
    ) -> Step:
        numbers: State = (
            state[ROW] if row is None else row,
            state[GATE] if gate is None else self.gates.of(gate),
            state[PLANS] if plans is None else self.plans.of(plans),
            state[LUCK] if luck is None else self.lucks.of(luck),
            state[FLIGHT] | sent,
            state[SHOWN] if shown is None else shown,
        )
        if self.bounds.ledger_loses_a_write and not keeps and numbers[ROW] != state[ROW]:
            left = self.lucks.values[numbers[LUCK]]._replace(before=state[ROW])
            numbers = (*numbers[:LUCK], self.lucks.of(left), *numbers[FLIGHT:])
        return self._step((*numbers, *state[ENDS:]), broken)

    def _step(self, state: State, broken: Broken | None) -> Step:
        """Forget the messages that can matter no more, and judge where the step leads."""
        if broken is None:
            broken = self._broken(state)
        if broken is not None:
            return False, None, broken
        return False, self._forgotten(state), None

    def _broken(self, state: State) -> Broken | None:
        key = (state[ROW], state[SHOWN], self.lucks.values[state[LUCK]].suspected, *state[ENDS:])
        if key not in self._judged:
            row = self.book.rows.values[state[ROW]]
            self._judged[key] = invariants.of_state(row, self._all_ends(state), state[SHOWN], key[2])
        return self._judged[key]

    def _forgotten(self, state: State) -> State:
        flight = state[FLIGHT]
        if not flight:
            return state
        wire, ends, row = self.wire, state[ENDS:], state[ROW]
        kept = 0
        if some := flight & wire.others:
            kept |= self._kept_of(state, (some, row, state[PLANS], *ends))
        if some := flight & wire.asks:
            kept |= self._kept_of(state, (some, row, *ends))
        if some := flight & wire.acks:
            kept |= self._kept_of(state, (some, *ends))
        if some := flight & wire.frames:
            kept |= self._kept_of(state, (some, row, state[GATE], *ends))
        return state if kept == flight else (*state[:FLIGHT], kept, *state[SHOWN:])

    def _kept_of(self, state: State, key: tuple[int, ...]) -> int:
        kept = self._kept.get(key)
        if kept is None:
            row = self.book.rows.values[state[ROW]]
            gate = self.gates.values[state[GATE]]
            plans = self.plans.values[state[PLANS]]
            matters = Matters(self.rules, self.book, row, plans, self._all_ends(state), gate.next or 0)
            kept = self._kept[key] = self.wire.kept(key[0], matters)
        return kept


def copy_of(end: End) -> Copy | None:
    """Return what a worker reports of its copy; None if it holds none."""
    words = {
        SourcePhase.LIVE: "live",
        SourcePhase.FROZEN: "frozen",
        SourcePhase.DOUBT: "frozen",
        SourcePhase.SUPERSEDED: "superseded",
        SourcePhase.RETIRED: "retired",
        DestinationPhase.SHADOW: "shadow",
        DestinationPhase.DOUBT: "shadow",
    }
    word = words.get(end.phase)
    return None if word is None else Copy(session=SESSION, phase=word, epoch=end.epoch, block=end.next)


def kept_of(end: End) -> Copy:
    """Return what a worker reports of the snapshot that it keeps."""
    return Copy(session=SESSION, phase=KEPT, epoch=end.kept_epoch, block=end.kept)


def _fields(row: Row) -> dict[str, Any]:
    return {name: getattr(row, name) for name in Row.__slots__}
