"""Binds a session's key changes to blocks: each lands in exactly one block's list. Pure.

Rules of this file:

1. A change is taken if its number is greater than every number taken before, and dropped otherwise. So a
   message that arrives twice counts once. Gaps are allowed, up to ``max_gap``.
2. Changes wait in the order in which they were taken. Closing block b's list takes at most ``max_list`` of
   them; what is left waits for b + 1.
3. A closed list never changes. The lists from block 0 on are the session's input log; its record has all of them.
4. When the player is gone, what was down is released by changes of the sequencer's own. They have the number of
   the newest change taken, and so use up none of the client's.
5. After a restart of the server the log begins with the lists that holders have reported, each as it was. What an
   earlier server had taken and not yet put into a list is gone: the client presses again what is down then.
6. Numbers go on from the server's life number then. It counts milliseconds and rises with every server, so no earlier
   one has taken such a number from a client that makes fewer than one change a millisecond. What is known of the
   newest number is no bound: whoever knew of a later one may have died, twice in a row.

7. Here are the newest lists only, KEPT_LISTS of them and up to twice MARK_EVERY more: no holder of a session can have
   use of an older one, for it has forgotten as much itself. What was before the first one is known as a position. So
   however long it is played, the log takes 23 MB of memory where a client sends all that it may at four blocks a
   second (measured, CPython 3.11), and 75 where its blocks are so long that every list is full.
"""

from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from itertools import islice

from worldmove.engine.base import KeyChange
from worldmove.limits import MAX_COUNT, MAX_LIST
from worldmove.worker.inputs import MAX_LISTS

EMPTY: tuple[KeyChange, ...] = ()
Position = tuple[int, tuple[str, ...]]
"""The newest number by the lists up to some block, and which keys are, or may be, down by them."""
KEPT_LISTS = 2 * MAX_LISTS
"""Twice what any holder keeps: some blocks are ahead of what was shown, and some words late."""
MARK_EVERY = 64
"""Lists between two positions that are kept: so many are walked to tell any other."""
NUMBER_GAP = 1_000_000
"""By how much numbers rise with a restart where a client has counted beyond the server's life number."""

MAX_NUMBER = MAX_COUNT - 1
"""What a message can say. A saved world that was made up may have counted so far; no client does."""


class Taken(Enum):
    """What became of a change."""

    TAKEN = "taken"
    OLD = "old"
    """Its number, or a greater one, was taken before."""
    FULL = "full"
    """Too many changes wait."""
    TOO_FAR = "too_far"
    """Its number leaves a gap that no honest client makes."""


class Sequencer:
    """One session's changes and closed lists."""

    def __init__(self, *, max_list: int = MAX_LIST, max_waiting: int = 1024, max_gap: int = 1_000_000) -> None:
        self._first = 0
        """The block of the log's first list."""
        self._max_list = max_list
        self._max_waiting = max_waiting
        self._max_gap = max_gap
        self._waiting: deque[KeyChange] = deque()
        self._down: dict[str, None] = {}
        self._log: list[tuple[KeyChange, ...]] = []
        self._marks: list[Position] = [(0, ())]
        """Before the first list, and before every MARK_EVERY-th after it."""
        self._wanted: Counter[int] = Counter()
        """Blocks from which on no list is to be forgotten."""
        self._newest = 0

    @property
    def next_number(self) -> int:
        """The number that the client's next change is to have."""
        return self._newest + 1

    @property
    def reaches(self) -> int:
        """The first block whose list is not closed."""
        return self._first + len(self._log)

    @property
    def first(self) -> int:
        """The first block whose list is here: 0, or what was reported after a restart."""
        return self._first

    def reach_from(self, block: int) -> int:
        """Return the first block from ``block`` on whose list is not here."""
        return self.reaches if block >= self._first else block

    @property
    def active(self) -> bool:
        """Whether a key is down or a change waits."""
        return bool(self._down or self._waiting)

    def take(self, change: KeyChange) -> Taken:
        """Take one change, or say why not."""
        if change.number <= self._newest:
            return Taken.OLD
        if change.number > self._newest + self._max_gap:
            return Taken.TOO_FAR
        if len(self._waiting) >= self._max_waiting:
            return Taken.FULL
        self._append(change)
        return Taken.TAKEN

    def release(self) -> None:
        """Let go of every key that is down: whoever held them is gone."""
        for key in tuple(self._down):
            self._append(KeyChange(number=self._newest, key=key, down=False))

    def begin_again(self, newest: int, keys: Iterable[str], *, life: int) -> None:
        """Take numbers on from an earlier server's, of which ``newest`` is known, and release every key.

        Which keys were down is not known here, so each counts as down until the log releases it; who held them is
        gone. ``life``: this server's life number.
        """
        keys = tuple(keys)
        self._newest = life if newest < life else min(newest + NUMBER_GAP, MAX_NUMBER)
        self._mark_from((newest, keys))
        for key in keys:
            self._append(KeyChange(number=self._newest, key=key, down=False))

    def resume(self, next_block: int, lists: Mapping[int, tuple[KeyChange, ...]]) -> None:
        """Begin the log with an earlier server's lists: those in a row up to ``next_block``, and all from it on.

        A list after it that nobody holds, before one that somebody does, is closed now, as an empty one.
        """
        first = next_block
        while first - 1 in lists:
            first -= 1
        reaches = max([next_block, *(block + 1 for block in lists)])
        self._first = first
        self._log = [lists.get(block, EMPTY) for block in range(first, reaches)]
        self._mark_from(self._marks[0])

    def close(self) -> tuple[KeyChange, ...]:
        """Close the list of block ``reaches`` and append it to the log."""
        closed = tuple(islice(self._waiting, self._max_list)) or EMPTY
        for _ in closed:
            self._waiting.popleft()
        self._log.append(closed)
        if len(self._log) % MARK_EVERY == 0:
            self._marks.append(self.position(self.reaches))
            self._forget()
        return closed

    def closed(self, block: int) -> tuple[KeyChange, ...]:
        """Return a closed list. Raises IndexError where it is not closed."""
        if block < self._first:
            raise IndexError(block)
        return self._log[block - self._first]

    def go_on(self, first: int, newest: int, down: Sequence[str]) -> None:
        """Take up a saved world before anything else: its log begins at block ``first``.

        Whoever held the keys that are down is not here, so they are released.
        """
        self._first, self._newest = first, newest
        self._mark_from((newest, tuple(down)))
        self._down = dict.fromkeys(down)
        self.release()

    def position(self, block: int) -> Position:
        """Return where the lists before ``block`` have come to. Of a block before the first list: as of that one."""
        number = min(max(block - self._first, 0), len(self._log))
        mark = min(number // MARK_EVERY, len(self._marks) - 1)
        newest, down = self._marks[mark]
        held = dict.fromkeys(down)
        for closed in self._log[mark * MARK_EVERY : number]:
            for change in closed:
                newest = max(newest, change.number)
                if change.down:
                    held[change.key] = None
                else:
                    held.pop(change.key, None)
        return newest, tuple(held)

    def keep_from(self, block: int) -> None:
        """Forget no list from ``block`` on, and so no position, until ``let_go_from``: somebody is to ask for it."""
        self._wanted[block] += 1

    def let_go_from(self, block: int) -> None:
        """Whoever had them kept has asked. Once for each ``keep_from``."""
        self._wanted -= Counter((block,))

    def _forget(self) -> None:
        """Let the oldest lists go, as many between two marks as nobody can want."""
        wanted = min([self.reaches - KEPT_LISTS, *self._wanted])
        marks = max(0, wanted - self._first) // MARK_EVERY
        self._first += marks * MARK_EVERY
        del self._log[: marks * MARK_EVERY], self._marks[:marks]

    def _mark_from(self, began: Position) -> None:
        """Make the marks anew: the log begins there."""
        self._marks = [began]
        for number in range(MARK_EVERY, len(self._log) + 1, MARK_EVERY):
            self._marks.append(self.position(self._first + number))

    def _append(self, change: KeyChange) -> None:
        self._newest = change.number
        self._waiting.append(change)
        if change.down:
            self._down[change.key] = None
        else:
            self._down.pop(change.key, None)
