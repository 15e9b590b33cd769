"""Values by number: rows, operations and answers of the product's, and whatever else a state is made of."""

from typing import Any, Generic, TypeVar

from tests.model.rules import Decide
from worldmove.move.ledger_row import Facts, attempt_id
from worldmove.move.source_inbox import NO_ATTEMPT

NAMES = ("A", "B", "C")
SESSION = "s"
POLL = 1

ValueT = TypeVar("ValueT")


def attempt_name(number: int) -> str:
    """Return the id of the model's ``number``th attempt; 0 is none."""
    return attempt_id(number, "m") if number else NO_ATTEMPT


class Numbered(Generic[ValueT]):
    """Equal values have one number, in the order of their first coming."""

    def __init__(self) -> None:
        self.values: list[ValueT] = []
        self._numbers: dict[ValueT, int] = {}

    def __len__(self) -> int:
        return len(self.values)

    def of(self, value: ValueT) -> int:
        number = self._numbers.get(value)
        if number is None:
            number = self._numbers[value] = len(self.values)
            self.values.append(value)
        return number


class Book:
    """The ledger: each question is decided once for each row and facts, and looked up from then on."""

    def __init__(self, decide: Decide) -> None:
        self.rows: Numbered[Any] = Numbered()
        self.operations: Numbered[Any] = Numbered()
        self.answers: Numbered[Any] = Numbered()
        self._decide = decide
        self._decided: dict[tuple[Any, ...], tuple[int, int]] = {}

    def decide(self, row: int, operation: int, known: tuple[Any, ...]) -> tuple[int, int]:
        """Return the row and the answer (-1: none yet). ``known``: gone, suspected, next block, closed epoch."""
        key = (row, operation, known)
        decided = self._decided.get(key)
        if decided is None:
            decided = self._decided[key] = self._ask(row, operation, known)
        return decided

    def _ask(self, row: int, operation: int, known: tuple[Any, ...]) -> tuple[int, int]:
        before = self.rows.values[row]
        gone, suspected, next_block, closed = known
        facts = Facts(
            owner=before.owner,
            incarnation=before.incarnation,
            epoch=before.epoch,
            owner_gone=gone,
            owner_suspected=suspected,
            next_block=next_block,
            closed_epoch=closed or None,
            poll=POLL,
        )
        after, answer = self._decide(before, self.operations.values[operation], facts)
        return self.rows.of(after), -1 if answer is None else self.answers.of(answer)
