"""What is in flight: a set of messages as the bits of one number, and which of them can still matter.

A message that can change nothing any more, whatever comes, is forgotten: that keeps the number of states down,
and takes no behaviour away.
"""

from tests.model.book import NAMES, Book, Numbered
from tests.model.ends import End, Message, Plan
from tests.model.rules import Rules
from worldmove.move.ledger_messages import CloseAttempt, CommitAttempt, Reclaim, Yours
from worldmove.move.ledger_row import Row
from worldmove.move.protocol import DestinationPhase, SourcePhase


class Wire:
    """Messages by number, and masks of those that go one way."""

    def __init__(self, rules: Rules, book: Book) -> None:
        self.messages: Numbered[Message] = Numbered()
        self.asks = 0
        self.acks = 0
        self.frames = 0
        self.others = 0
        self._rules = rules
        self._book = book

    def mask(self, sent: tuple[Message, ...]) -> int:
        """Return messages as bits."""
        mask = 0
        for message in sent:
            known = len(self.messages)
            number = self.messages.of(message)
            bit = 1 << number
            mask |= bit
            if number == known:
                self._sort(message[0], bit)
        return mask

    def number(self, said: Message) -> int:
        """Return the number of a message that need not be in flight: it may be said at any time."""
        return self.mask((said,)).bit_length() - 1

    def _sort(self, word: str, bit: int) -> None:
        match word:
            case "ask":
                self.asks |= bit
            case "ack":
                self.acks |= bit
            case "frame":
                self.frames |= bit
            case _:
                self.others |= bit

    def of(self, mask: int) -> list[Message]:
        """Return what the bits stand for."""
        found = []
        while mask:
            low = mask & -mask
            found.append(self.messages.values[low.bit_length() - 1])
            mask ^= low
        return found

    def kept(self, mask: int, matters: "Matters") -> int:
        """Return those of some messages that can still matter."""
        kept, left = 0, mask
        while left:
            low = left & -left
            left ^= low
            if matters(self.messages.values[low.bit_length() - 1]):
                kept |= low
        return kept


class Matters:
    """Says of a message whether it can still change anything, in one state's surroundings."""

    def __init__(
        self, rules: Rules, book: Book, row: Row, plans: tuple[Plan, ...], ends: tuple[End, ...], gate_next: int
    ) -> None:
        self._rules = rules
        self._book = book
        self._row = row
        self._plans = plans
        self._ends = ends
        self._gate_next = gate_next

    def __call__(self, said: Message) -> bool:
        word = said[0]
        match word:
            case "ask":
                return self._ask_matters(said[1])
            case "ack":
                return any(_can_use(end, said) for end in self._ends)
            case "frame":
                return self._frame_matters(said)
            case "answer":
                return self._answer_matters(said)
            case "take over":
                end = self._ends[said[1]]
                done = end.is_source and (end.phase is not SourcePhase.RETIRED or end.epoch >= said[3])
                return end.incarnation == said[2] and not done and said[3] == self._row.epoch
            case "revive":
                end = self._ends[said[1]]
                return bool(end.incarnation == said[2] and end.kept == said[3])
            case "gone":
                return bool(said[1] == self._row.epoch)
            case "empty":
                return True
        return self._of_attempt(said)

    def _of_attempt(self, said: Message) -> bool:
        word, attempt = said[0], said[1]
        plan = self._plans[attempt - 1]
        source, destination = self._ends[plan.source], self._ends[plan.destination]
        if word in ("start", "landed"):
            return _source_waits(source, plan, attempt, word)
        if word == "data":
            asks_again = _waits(destination, attempt) and _source_waits(source, plan, attempt, "landed")
            return asks_again or bool(destination.handles >> attempt & 1)
        return _waits(destination, attempt)

    def _ask_matters(self, number: int) -> bool:
        """A question is over when it can no longer change the row, and nobody waits for its answer."""
        asked, row = self._book.operations.values[number], self._row
        if row.lost:
            return False
        worker = NAMES.index(asked.worker)
        end = self._ends[worker]
        if end.incarnation == asked.incarnation and end.question == number:
            return True
        match asked:
            case CloseAttempt(attempt=attempt):
                is_open = row.attempt is not None and row.attempt.attempt == attempt
                return is_open or attempt > row.last_attempt
            case CommitAttempt(epoch=epoch):
                return row.epoch <= epoch
            case Reclaim(epoch=epoch):
                return row.epoch <= epoch and not row.shown
        return True

    def _frame_matters(self, said: Message) -> bool:
        _, worker, epoch, block = said
        end = self._ends[worker]
        if epoch >= self._row.epoch and block >= self._gate_next:
            return True
        if self._rules.old_frames_matter and block >= self._gate_next:
            return True
        if not end.is_source or end.epoch != epoch:
            return False
        if epoch < self._row.epoch:
            return end.phase in (SourcePhase.LIVE, SourcePhase.FROZEN)
        return bool(end.acked <= block < end.next)

    def _answer_matters(self, said: Message) -> bool:
        _, worker, incarnation, question, answer = said
        end = self._ends[worker]
        if end.incarnation != incarnation:
            return False
        if end.question == question:
            return True
        told = self._book.answers.values[answer]
        holds_none = end.phase in (DestinationPhase.NONE, DestinationPhase.QUARANTINE)
        return holds_none and isinstance(told, Yours) and told.epoch == self._row.epoch


def _can_use(end: End, said: Message) -> bool:
    _, life, block = said
    if life < end.life or end.phase in (DestinationPhase.NONE, DestinationPhase.QUARANTINE, DestinationPhase.SHADOW):
        return False
    return bool(life > end.life or block + 1 > max(end.left, end.acked))


def _source_waits(end: End, plan: Plan, attempt: int, word: str) -> bool:
    if (end.incarnation, end.epoch) != (plan.source_incarnation, plan.epoch) or not end.is_source:
        return False
    if word == "start":
        return attempt > end.attempt and end.phase in (SourcePhase.LIVE, SourcePhase.FROZEN, SourcePhase.DOUBT)
    return attempt == end.attempt and end.phase is SourcePhase.FROZEN and not end.landed


def _waits(end: End, attempt: int) -> bool:
    return end.phase is DestinationPhase.SHADOW and end.attempt == attempt
