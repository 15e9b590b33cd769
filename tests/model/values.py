"""What one process's numbers mean in another: values as they travel, and what a peer's numbers are here."""

from collections.abc import Callable
from typing import Any

from tests.model.book import Numbered
from tests.model.ends import NO_QUESTION, End, Message
from tests.model.world import ENDS, FLIGHT, GATE, LUCK, PLANS, ROW, SHOWN, Luck, State, World

TABLES = ("rows", "gates", "plans", "lucks", "ends", "messages")
News = tuple[list[Any], ...]
"""For each table, its values that the receiver has not had, in their order."""


class Values:
    """The tables of one world, and those of its peers as far as they were told."""

    def __init__(self, world: World) -> None:
        self._book = world.book
        self._wire = world.wire
        self._tables: tuple[Numbered[Any], ...] = (
            world.book.rows,
            world.gates,
            world.plans,
            world.lucks,
            world.ends,
            world.wire.messages,
        )
        plain: dict[str, Callable[[Any], Any]] = {
            "lucks": self._plain_luck,
            "ends": self._plain_end,
            "messages": self._plain_message,
        }
        self._plain = tuple(plain.get(name, _same) for name in TABLES)
        self._hashes: tuple[list[int], ...] = tuple([] for _ in TABLES)
        self._told: dict[int, list[int]] = {}
        self._theirs: dict[int, tuple[list[int], ...]] = {}
        self._masks: dict[int, dict[int, int]] = {}

    def hashes(self, state: State) -> tuple[int, ...]:
        """Return what row, plans, luck and ends of a state hash to, in every process alike."""
        ends = (self._hash(4, number) for number in state[ENDS:])
        return (self._hash(0, state[ROW]), self._hash(2, state[PLANS]), self._hash(3, state[LUCK]), *ends)

    def _hash(self, table: int, number: int) -> int:
        known, values = self._hashes[table], self._tables[table].values
        while len(known) <= number:
            known.append(hash(self._plain[table](values[len(known)])))
        return known[number]

    def news(self, peer: int) -> News:
        """Return what a peer has not been told."""
        told = self._told.setdefault(peer, [0] * len(TABLES))
        found = []
        for table, numbered in enumerate(self._tables):
            found.append([self._plain[table](value) for value in numbered.values[told[table] :]])
            told[table] = len(numbered)
        return tuple(found)

    def learn(self, peer: int, news: News) -> None:
        """Take what a peer tells of its tables."""
        theirs = self._theirs.setdefault(peer, tuple([] for _ in TABLES))
        rows, gates, plans, lucks, ends, messages = theirs
        rows += [self._tables[0].of(value) for value in news[0]]
        gates += [self._tables[1].of(value) for value in news[1]]
        plans += [self._tables[2].of(value) for value in news[2]]
        lucks += [self._tables[3].of(self._luck(value)) for value in news[3]]
        ends += [self._tables[4].of(self._end(value)) for value in news[4]]
        messages += [self._wire.number(self._message(value)) for value in news[5]]

    def translated(self, peer: int, state: list[int]) -> State:
        """Return a peer's state in the numbers of this process."""
        rows, gates, plans, lucks, ends, _ = self._theirs[peer]
        numbers = (rows[state[ROW]], gates[state[GATE]], plans[state[PLANS]], lucks[state[LUCK]])
        flight = self._mask(peer, state[FLIGHT])
        return (*numbers, flight, state[SHOWN], *[ends[number] for number in state[ENDS:]])

    def _mask(self, peer: int, mask: int) -> int:
        known = self._masks.setdefault(peer, {})
        found = known.get(mask)
        if found is None:
            found, left, messages = 0, mask, self._theirs[peer][5]
            while left:
                low = left & -left
                left ^= low
                found |= 1 << messages[low.bit_length() - 1]
            known[mask] = found
        return found

    # values with the numbers in them replaced by what they stand for, and back

    def _plain_luck(self, luck: Luck) -> Any:
        before = self._book.rows.values[luck.before] if luck.before >= 0 else None
        return luck._replace(before=-1), before

    def _luck(self, plain: Any) -> Luck:
        luck: Luck = plain[0]
        before = plain[1]
        return luck if before is None else luck._replace(before=self._book.rows.of(before))

    def _plain_end(self, end: End) -> Any:
        asked = None if end.question == NO_QUESTION else self._book.operations.values[end.question]
        return end._replace(question=NO_QUESTION), asked

    def _end(self, plain: Any) -> End:
        end: End = plain[0]
        asked = plain[1]
        return end if asked is None else end._replace(question=self._book.operations.of(asked))

    def _plain_message(self, said: Message) -> Any:
        operations, answers = self._book.operations.values, self._book.answers.values
        if said[0] == "ask":
            return "ask", operations[said[1]]
        if said[0] == "answer":
            return *said[:3], operations[said[3]], answers[said[4]]
        return said

    def _message(self, plain: Any) -> Message:
        operations, answers = self._book.operations, self._book.answers
        if plain[0] == "ask":
            return "ask", operations.of(plain[1])
        if plain[0] == "answer":
            return *plain[:3], operations.of(plain[3]), answers.of(plain[4])
        said: Message = plain
        return said


def _same(value: Any) -> Any:
    return value
