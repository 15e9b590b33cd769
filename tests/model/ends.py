"""Both ends of a move as the drivers drive them: what a worker holds, and what it does with what it hears.

A worker holds at most one copy of the session, so one record says all. Messages are tuples, a word first.
"""

from collections.abc import Callable
from enum import Enum
from typing import Any, NamedTuple

from tests.model.book import NAMES, SESSION, Book, attempt_name
from tests.model.bounds import Bounds
from tests.model.rules import Rules
from worldmove.move.ledger_messages import CloseAttempt, CommitAttempt, Reclaim, Theirs, Yours
from worldmove.move.protocol import (
    DestinationEffect,
    DestinationEvent,
    DestinationPhase,
    SourceEffect,
    SourceEvent,
    SourcePhase,
)

EMPTY, GOOD, BAD = 0, 1, 2
NO_QUESTION = -1
Message = tuple[Any, ...]


class Ahead(Enum):
    """The words of a row that is not built yet: a destination in doubt computes one block, and shows nothing."""

    ONE_BLOCK = "the next block's list is there"
    COMPUTE = "compute one block, keep it, send nothing"


class Plan(NamedTuple):
    """One attempt, as the controller set it out."""

    source: int
    source_incarnation: int
    destination: int
    destination_incarnation: int
    epoch: int


class End(NamedTuple):
    """What a worker holds."""

    incarnation: int = 1
    phase: Any = DestinationPhase.NONE
    attempt: int = 0
    """Source: the newest that was begun or cancelled here. Destination: its own."""
    epoch: int = 0
    """Source: that it plays or played in. Destination: that of its attempt."""
    acked: int = 0
    """The first block that the gateway has not taken; with ``next`` the reach of the copy."""
    next: int = 0
    boundary: int = -1
    """Destination: of what is installed. Retired copy: its own."""
    row_epoch: int = 0
    """The ledger's, as far as it was told."""
    question: int = NO_QUESTION
    """The operation whose answer it waits for."""
    landed: bool = False
    content: int = EMPTY
    verified: bool = False
    replays_to: int = 0
    """The block from which on it sends what it computes; 0 once it is there."""
    left: int = 0
    """Blocks before this one have left the gateway, as this copy was told."""
    life: int = 1
    """The newest server that it had an acknowledgement of."""
    handles: int = 0
    """A bit for each attempt that can still write into the slot."""
    kept: int = -1
    """The boundary of the snapshot that is kept here, beside any copy; -1 where there is none."""
    kept_epoch: int = 0
    """That in which it was taken; of a copy that was installed from it, until that takes over."""

    @property
    def is_source(self) -> bool:
        return type(self.phase) is SourcePhase

    @property
    def is_revived(self) -> bool:
        """Whether it is a retired copy that was installed from a snapshot."""
        return self.phase is SourcePhase.RETIRED and self.kept < 0 < self.kept_epoch

    @property
    def is_complete(self) -> bool:
        """Whether the session could go on from it."""
        return self.content == GOOD and (self.is_source or (self.verified and self.phase is DestinationPhase.DOUBT))


Done = tuple[End, tuple[Message, ...]]
BESIDE = ("incarnation", "life", "handles", "kept", "kept_epoch")
"""What is not of the copy."""
NO_COPY = {name: End._field_defaults[name] for name in End._fields if name not in BESIDE}


class Ends:
    """The drivers' steps, pure: an end and an event in, an end and messages out."""

    def __init__(self, bounds: Bounds, rules: Rules, book: Book) -> None:
        self._bounds = bounds
        self._rules = rules
        self._book = book
        self._effects: dict[Any, Callable[[int, End, list[Message]], End]] = {
            SourceEffect.FREEZE: self._freeze,
            SourceEffect.SUPERSEDE: self._inquire,
            SourceEffect.THAW_UNASKED: self._thaw_unasked,
            SourceEffect.SEND_PROOF: self._send_proof,
            SourceEffect.INQUIRE: self._inquire,
            SourceEffect.THAW: self._thaw,
            SourceEffect.HOLD: self._hold,
            SourceEffect.CHECK: self._check,
            SourceEffect.REPLAY: self._thaw,
            SourceEffect.FREE: self._free,
            DestinationEffect.RESERVE: self._reserve,
            DestinationEffect.GIVE_UP: self._give_up,
            DestinationEffect.NOTHING: self._always,
            DestinationEffect.COMMIT: self._commit,
            DestinationEffect.PROMOTE: self._promote,
            DestinationEffect.DISCARD: self._discard,
            DestinationEffect.HOLD: self._hold,
            DestinationEffect.RETIRE: self._retire,
            DestinationEffect.RELEASE: self._release,
            DestinationEffect.ANSWER_GONE: self._answer_gone,
            Ahead.COMPUTE: self._compute_ahead,
        }

    def step(self, worker: int, end: End, event: Any, sent: list[Message]) -> End:
        """Ask the table, and do the one thing. A pair that is not in the table raises KeyError: a bug."""
        table = self._rules.source_steps if end.is_source else self._rules.destination_steps
        phase, effect = table[end.phase, event]
        return self._effects[effect](worker, end._replace(phase=phase), sent)

    # what a driver does by itself

    def alone(self, worker: int, end: End, *, row_shown: bool) -> list[Done]:
        """Return everything that may happen at an end though nothing comes."""
        done: list[Done] = []
        if end.phase is SourcePhase.LIVE:
            done.extend(self._play(worker, end))
        if end.phase is SourcePhase.FROZEN:
            done.append((end, (self._data(end), *self._frames(worker, end))))
        for event in self._own_events(end, row_shown=row_shown):
            sent: list[Message] = []
            done.append((self.step(worker, end, event, sent), tuple(sent)))
        return list(dict.fromkeys(done))

    def _own_events(self, end: End, *, row_shown: bool) -> tuple[Any, ...]:
        match end.phase:
            case SourcePhase.FROZEN:
                acknowledged = end.acked == end.next or not self._rules.proves_when_acknowledged
                ready = (SourceEvent.READY,) if end.landed and acknowledged else ()
                return (SourceEvent.TIME_OUT, SourceEvent.CANCEL, SourceEvent.PASSES_DIFFER, *ready)
            case SourcePhase.DOUBT:
                silence = (SourceEvent.SILENCE,) if end.question == NO_QUESTION else ()
                return (SourceEvent.TIME_OUT, SourceEvent.CANCEL, *silence)
            case SourcePhase.SUPERSEDED:
                return (SourceEvent.TIME_OUT,)
            case SourcePhase.RETIRED:
                passed = end.left > end.boundary or (row_shown and not self._rules.frees_when_passed)
                return (SourceEvent.TIME_OUT, SourceEvent.DONE) if passed else (SourceEvent.TIME_OUT,)
            case DestinationPhase.SHADOW:
                failed = (DestinationEvent.MISMATCH,) if end.content else ()
                return (DestinationEvent.TIME_OUT, DestinationEvent.ABANDON, *failed)
            case DestinationPhase.DOUBT:
                may = (end.phase, Ahead.ONE_BLOCK) in self._rules.destination_steps
                ahead = may and end.next == end.acked == end.boundary < self._bounds.num_blocks
                return (DestinationEvent.TIME_OUT, Ahead.ONE_BLOCK) if ahead else (DestinationEvent.TIME_OUT,)
            case DestinationPhase.QUARANTINE:
                return (DestinationEvent.RELEASED,)
        return ()

    def _play(self, worker: int, end: End) -> list[Done]:
        """An owner computes one block past what was taken, and sends it again where a link is made anew."""
        if end.next < end.replays_to:
            there = end.next + 1 == end.replays_to
            return [
                (end._replace(next=end.next + 1, acked=end.next + 1, replays_to=0 if there else end.replays_to), ())
            ]
        if end.acked < end.next:
            return [(end, self._frames(worker, end))]
        if end.next == self._bounds.num_blocks:
            return []
        end = end._replace(next=end.next + 1)
        return [(end, self._frames(worker, end))]

    # what a driver does about what it hears: None where its filter drops it

    def hear(self, worker: int, end: End, said: Message, plans: tuple[Plan, ...], *, good: bool) -> Done | None:
        """Take a message. ``good``: whether bytes that are read now are those of the boundary."""
        sent: list[Message] = []
        hears = self._source_hears if end.is_source else self._destination_hears
        after = hears(worker, end, said, plans, good, sent)
        return None if after is None else (after, tuple(sent))

    def _source_hears(
        self, worker: int, end: End, said: Message, plans: tuple[Plan, ...], _good: bool, sent: list[Message]
    ) -> End | None:
        word, phase = said[0], end.phase
        if word == "ack":
            return self._acknowledged(end, said)
        if word == "answer":
            return self._source_answered(worker, end, said, sent)
        if word == "take over":
            return self._taken_over(worker, end, said, sent)
        if word == "refused":
            plays = phase in (SourcePhase.LIVE, SourcePhase.FROZEN) and said[1] > end.epoch
            return self.step(worker, end, SourceEvent.REFUSED, sent) if plays else None
        if word == "data":
            return self._late_write(end, said)
        return self._source_told(worker, end, said, plans, sent)

    def _source_told(
        self, worker: int, end: End, said: Message, plans: tuple[Plan, ...], sent: list[Message]
    ) -> End | None:
        """Hear what belongs to an attempt: a new one, or this one."""
        word, attempt, phase = said[0], said[1], end.phase
        plan = plans[attempt - 1]
        if (plan.source, plan.source_incarnation, plan.epoch) != (worker, end.incarnation, end.epoch):
            return None
        if phase is SourcePhase.LIVE and attempt > end.attempt:
            if word == "start" and end.next < end.replays_to and self._rules.freezes_when_replayed:
                return None  # it waits for the replay's end, or gives up
            if word == "start":
                return self.step(worker, end._replace(attempt=attempt, landed=False), SourceEvent.START, sent)
            return end._replace(attempt=attempt) if word == "cancel" else None
        if attempt != end.attempt or phase not in (SourcePhase.FROZEN, SourcePhase.DOUBT):
            return None
        if word == "landed" and phase is SourcePhase.FROZEN and said[2] == plan.destination_incarnation:
            return None if end.landed else end._replace(landed=True)
        return None

    def _source_answered(self, worker: int, end: End, said: Message, sent: list[Message]) -> End | None:
        _, _, _, question, answer = said
        if question != end.question:
            return None
        told = self._book.answers.values[answer]
        event = self._rules.source_event(told, phase=end.phase, epoch=end.epoch)
        is_reclaim = isinstance(self._book.operations.values[question], Reclaim)
        if event is SourceEvent.YOURS and end.is_revived and self._rules.revived_waits_for_failover:
            sent.append(("gone", told.epoch))
            event = None
        if event is None or (is_reclaim and event is not SourceEvent.YOURS):
            return end._replace(question=NO_QUESTION) if end.phase is SourcePhase.RETIRED else None
        if isinstance(told, Yours | Theirs):
            end = end._replace(row_epoch=told.epoch)
        if event is SourceEvent.FAILOVER:
            end = _replaying(end, told.replay_to)
        return self.step(worker, end, event, sent)

    def _taken_over(self, worker: int, end: End, said: Message, sent: list[Message]) -> End | None:
        _, _, _, epoch, block = said
        if end.phase is not SourcePhase.RETIRED or epoch <= end.epoch:
            return None
        return self.step(worker, _replaying(end, block)._replace(row_epoch=epoch), SourceEvent.FAILOVER, sent)

    def _destination_hears(
        self, worker: int, end: End, said: Message, plans: tuple[Plan, ...], good: bool, sent: list[Message]
    ) -> End | None:
        word, phase = said[0], end.phase
        if word == "revive":
            return self._revived(end, said)
        if word == "ack":
            return (
                self._acknowledged(end, said) if phase is DestinationPhase.DOUBT and said[2] >= end.boundary else None
            )
        if word == "answer":
            return self._destination_answered(worker, end, said, sent)
        if word == "take over":
            sent.append(("gone", said[3]))
            return end
        if word == "offer":
            return self._offered(worker, end, said[1], plans, sent)
        if word == "data":
            return self._pull(end, said, sent, good=good)
        if phase is not DestinationPhase.SHADOW or said[1] != end.attempt or plans[said[1] - 1].destination != worker:
            return None
        if word == "proof" and end.content != EMPTY and said[2] == end.boundary:
            event = DestinationEvent.MATCHED if end.content == GOOD else DestinationEvent.MISMATCH
            return self.step(worker, end._replace(verified=end.content == GOOD), event, sent)
        return None

    def _revived(self, end: End, said: Message) -> End | None:
        """What is kept becomes a retired copy, where there is none: needed until the block that was next has left."""
        _, _, _, block, next_block, epoch = said
        if end.phase is not DestinationPhase.NONE or end.kept != block:
            return None
        return end._replace(**NO_COPY)._replace(
            phase=SourcePhase.RETIRED,
            epoch=epoch,
            row_epoch=epoch,
            acked=block,
            next=block,
            boundary=next_block,
            content=GOOD,
            verified=True,
            kept=-1,
        )

    def _offered(self, worker: int, end: End, attempt: int, plans: tuple[Plan, ...], sent: list[Message]) -> End | None:
        if end.phase is not DestinationPhase.NONE or plans[attempt - 1].destination != worker:
            return None
        epoch = plans[attempt - 1].epoch
        end = end._replace(**NO_COPY)._replace(attempt=attempt, epoch=epoch, row_epoch=epoch)
        return self.step(worker, end, DestinationEvent.OFFER, sent)

    def _pull(self, end: End, said: Message, sent: list[Message], *, good: bool) -> End | None:
        """The bytes of a boundary reach a slot that still has a handle of their attempt."""
        _, attempt, block = said
        if end.phase is DestinationPhase.SHADOW and attempt == end.attempt:
            if end.content != EMPTY:
                sent.append(("landed", attempt, end.incarnation))
                return end
            handles = end.handles & ~(1 << attempt) if self._rules.closes_window else end.handles
            sent.append(("landed", attempt, end.incarnation))
            content = GOOD if good else BAD
            return end._replace(content=content, handles=handles, boundary=block, next=block, acked=block)
        return self._late_write(end, said)

    def _late_write(self, end: End, said: Message) -> End | None:
        """Bytes that come again overwrite whatever the slot holds by now, if the path can still write there."""
        _, attempt, block = said
        if not end.handles >> attempt & 1 or end.content != GOOD:
            return None
        if not end.is_source and attempt == end.attempt:
            return None
        is_same = end.is_source and end.attempt == 0 and end.next == block
        return None if is_same else end._replace(content=BAD)

    def _destination_answered(self, worker: int, end: End, said: Message, sent: list[Message]) -> End | None:
        _, _, _, question, answer = said
        told = self._book.answers.values[answer]
        if question != end.question:
            if end.phase is DestinationPhase.NONE and isinstance(told, Yours) and self._rules.says_gone:
                return self.step(worker, end._replace(row_epoch=told.epoch), DestinationEvent.YOURS, sent)
            return None
        end = end._replace(question=NO_QUESTION) if end.phase is DestinationPhase.QUARANTINE else end
        if isinstance(told, Yours | Theirs):
            end = end._replace(row_epoch=told.epoch)
        if end.phase is DestinationPhase.QUARANTINE:
            return self.step(worker, end, DestinationEvent.YOURS, sent) if isinstance(told, Yours) else end
        event = self._rules.destination_event(told)
        is_reclaim = isinstance(self._book.operations.values[question], Reclaim)
        if event is None or (is_reclaim and event is not DestinationEvent.YOURS):
            return None
        return self.step(worker, end, event, sent)

    def _acknowledged(self, end: End, said: Message) -> End | None:
        _, life, block = said
        if life < end.life:
            return None
        left, acked = max(end.left, block + 1), end.acked
        if end.is_source or end.next > end.boundary:
            acked = min(end.next, max(acked, block + 1))
        after = end._replace(life=life, left=left if left > acked else 0, acked=acked)
        return None if after == end else after

    # one effect each

    def _freeze(self, worker: int, end: End, sent: list[Message]) -> End:
        sent += [self._data(end), *self._frames(worker, end)]
        return end

    def _thaw_unasked(self, worker: int, end: End, sent: list[Message]) -> End:
        sent.append(("ask", self._close(worker, end)))
        sent += self._frames(worker, end)
        return end._replace(landed=False, question=NO_QUESTION)

    def _send_proof(self, _worker: int, end: End, sent: list[Message]) -> End:
        sent.append(("proof", end.attempt, end.next))
        return end._replace(question=NO_QUESTION, row_epoch=end.epoch)

    def _inquire(self, worker: int, end: End, sent: list[Message]) -> End:
        return self._ask(end, self._close(worker, end), sent)

    def _thaw(self, worker: int, end: End, sent: list[Message]) -> End:
        epoch = max(end.row_epoch, end.epoch)
        if end.kept < 0:
            end = end._replace(kept_epoch=0)
        end = end._replace(epoch=epoch, row_epoch=epoch, boundary=-1, question=NO_QUESTION, landed=False)
        sent += self._frames(worker, end)
        return end

    def _hold(self, worker: int, end: End, sent: list[Message]) -> End:
        asked = Reclaim(
            session=SESSION,
            epoch=end.row_epoch,
            acknowledged=end.acked,
            computed=end.next,
            worker=NAMES[worker],
            incarnation=end.incarnation,
        )
        return self._ask(end, self._book.operations.of(asked), sent)

    def _check(self, _worker: int, end: End, _sent: list[Message]) -> End:
        return end._replace(boundary=end.next, question=NO_QUESTION)

    def _free(self, _worker: int, end: End, _sent: list[Message]) -> End:
        return end._replace(**NO_COPY)._replace(kept_epoch=0 if end.kept < 0 else end.kept_epoch)

    def _reserve(self, _worker: int, end: End, _sent: list[Message]) -> End:
        return end._replace(handles=end.handles | 1 << end.attempt)

    def _give_up(self, worker: int, end: End, sent: list[Message]) -> End:
        asked = self._ask(end, self._close(worker, end), sent)
        return self._discarded(end, asked.question)

    def _always(self, worker: int, end: End, sent: list[Message]) -> End:
        return self.step(worker, end, DestinationEvent.ALWAYS, sent)

    def _commit(self, worker: int, end: End, sent: list[Message]) -> End:
        asked = CommitAttempt(
            session=SESSION,
            attempt=attempt_name(end.attempt),
            epoch=end.epoch,
            boundary=end.boundary,
            worker=NAMES[worker],
            incarnation=end.incarnation,
        )
        return self._ask(end, self._book.operations.of(asked), sent)

    def _promote(self, worker: int, end: End, sent: list[Message]) -> End:
        handles = 0 if self._rules.closes_window else end.handles
        end = end._replace(
            phase=SourcePhase.LIVE,
            attempt=0,
            epoch=end.row_epoch,
            boundary=-1,
            question=NO_QUESTION,
            handles=handles,
        )
        sent += self._frames(worker, end)
        return end

    def _discard(self, _worker: int, end: End, _sent: list[Message]) -> End:
        return self._discarded(end, NO_QUESTION)

    def _discarded(self, end: End, question: int) -> End:
        phase = DestinationPhase.QUARANTINE if self._rules.quarantines else DestinationPhase.NONE
        if phase is DestinationPhase.NONE:
            return end._replace(**NO_COPY)
        kept: dict[str, Any] = {"attempt": end.attempt, "epoch": end.epoch, "phase": phase, "question": question}
        return end._replace(**NO_COPY)._replace(**kept)

    def _retire(self, _worker: int, end: End, _sent: list[Message]) -> End:
        return end._replace(phase=SourcePhase.RETIRED, attempt=0, epoch=end.row_epoch, question=NO_QUESTION, handles=0)

    def _release(self, _worker: int, end: End, _sent: list[Message]) -> End:
        return end._replace(**NO_COPY)._replace(handles=0)

    def _answer_gone(self, _worker: int, end: End, sent: list[Message]) -> End:
        sent.append(("gone", end.row_epoch))
        return end if end.phase is DestinationPhase.QUARANTINE else end._replace(**NO_COPY)

    def _compute_ahead(self, _worker: int, end: End, _sent: list[Message]) -> End:
        return end._replace(next=end.next + 1)

    # what they say

    def _ask(self, end: End, operation: int, sent: list[Message]) -> End:
        sent.append(("ask", operation))
        return end._replace(question=operation)

    def _close(self, worker: int, end: End) -> int:
        asked = CloseAttempt(
            session=SESSION,
            attempt=attempt_name(end.attempt),
            epoch=end.epoch,
            worker=NAMES[worker],
            incarnation=end.incarnation,
            boundary=end.next if end.boundary < 0 else end.boundary,
        )
        return self._book.operations.of(asked)

    def _data(self, end: End) -> Message:
        return ("data", end.attempt, end.next)

    def _frames(self, worker: int, end: End) -> tuple[Message, ...]:
        return tuple(("frame", worker, end.epoch, block) for block in range(end.acked, end.next))


def _replaying(end: End, block: int) -> End:
    """Return a retired copy that takes over from ``block``: what it kept before that is not sent."""
    if end.next < block:
        return end._replace(acked=end.next, replays_to=block)
    return end._replace(acked=max(end.acked, block))
