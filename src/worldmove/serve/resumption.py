"""What a session of an earlier server waits for, before a block of it is shown or a list of it closed. Pure.

Rules of this file:

1. Nothing is shown until the owner has reported or is dead, and the client has said what it received. The next block
   is the first that a living owner sends again, as it does with all that it does not know to have left; what a client
   says that it has is then left out for it alone, so that a false word costs nobody else a block. Where the owner is
   dead, it is the first that no holder has heard to have left, and the same holds for what a client says that it has,
   as long as holders have its lists: whoever takes over makes the same blocks. A client may also have a block of which
   nobody has the list: then the next block is the one after it, which no copy can reach.
2. No list is closed until every holder has reported or is dead. A list that one of them holds stays as it is.
3. Where the owner lives, the wait for a client is bounded: whatever a client received, the owner has computed, from
   lists that the owner holds. So going on from the owner's report loses nothing, and shows nothing else.
4. Where the owner is dead, a client may have received a block of which no list is left, and a copy that took over
   would make another one. So a client is waited for without limit, and after the first some time longer, since another
   that has more may be on its way. So is every holder: what one of them knows to have left may be past what the client
   has received, and the copy that takes over cannot go back behind it.
5. What a client claims beyond what a living owner has computed is no claim, and makes no other client's less. Of a
   dead owner nobody knows how far it came: a holder that was cut off may be any number of blocks behind.
6. A client that lacks blocks before the next one waits a while for a holder that may have them and has not reported,
   and for an owner that is computing them anew: what a replaced one has sent of them counts once it is equal.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from worldmove.engine.base import KeyChange
from worldmove.serve.recent import MAX_BLOCKS

NO_BOUND = 1 << 63
"""Beyond every block."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumptionConfig:
    """Seconds. ``client_s``: how long a client is waited for where the wait is bounded, or another after the first.

    ``recall_s``: how long blocks that a client lacks are waited for.
    """

    client_s: float = 10.0
    recall_s: float = 1.0


class Resumption:
    """One session's reports. Times come in as arguments."""

    def __init__(self, config: ResumptionConfig) -> None:
        self._config = config
        self._lists: dict[int, tuple[KeyChange, ...]] = {}
        self._left = 0
        self._sent_from: int | None = None
        """The first block that the owner sends again; None where no owner that has computed any is known."""
        self._owner_computed = 0
        """Which block the owner would compute next."""
        self._recalled: dict[int, None] = {}
        self._lacked_at: float | None = None
        """Since when only blocks that a client lacks are waited for."""
        self._joined_with: dict[int | None, None] = {}
        self._computed = 0
        self._joined_at: float | None = None
        self._owner_at: float | None = None
        self._owner_lives = True
        self.may_close = False
        """Whether every holder has reported, or is dead."""

    @property
    def lists(self) -> Mapping[int, tuple[KeyChange, ...]]:
        """The lists that holders have reported."""
        return self._lists

    def hold(self, block: int, changes: Sequence[KeyChange]) -> None:
        """A holder has a list. Two never have different ones: a list is closed once."""
        self._lists.setdefault(block, tuple(changes))

    def left(self, before: int, computed: int, *, sends: bool) -> None:
        """A holder says what has left, and which block it would compute next. ``sends``: it owns the session."""
        self._left, self._computed = max(self._left, before), max(self._computed, computed)
        if sends:
            self._sent_from, self._owner_computed = before, computed

    def recall(self, block: int) -> None:
        """A holder has given a block that an earlier server has shown."""
        self._recalled[block] = None

    def owner(self, *, lives: bool, now: float) -> None:
        """The owner has reported, or is dead."""
        self._owner_lives = lives
        if self._owner_at is None:
            self._owner_at = now

    def client(self, received: int | None, now: float) -> None:
        """A client has come back with every block up to this one; None: with nothing."""
        self._joined_with[received] = None
        if self._joined_at is None:
            self._joined_at = now

    def may_show(self, now: float) -> bool:
        """Whether the next block is known, and clients are sent what they lack, or need not wait for it."""
        if not self._is_known(now):
            return False
        if self._lacked_at is None:
            self._lacked_at = now
        has_all = self.may_close and not self._is_replaying
        return has_all or now - self._lacked_at >= self._config.recall_s or not self._lacks

    def _is_known(self, now: float) -> bool:
        if self._owner_at is None:
            return False
        if self._owner_lives:
            return self._joined_at is not None or now - self._owner_at >= self._config.client_s
        return self._joined_at is not None and self.may_close and now - self._joined_at >= self._config.client_s

    @property
    def next_block(self) -> int:
        """The next block to be shown, by what has been said so far."""
        if self._owner_lives and self._sent_from is not None:
            return self._sent_from
        if not self._owner_lives and self._claim < self._kept_before:
            return self._left
        return max(self._left, self._claim + 1)

    @property
    def forks_at(self) -> int | None:
        """The first block that may be another than an earlier server has shown, to a client that is not back yet.

        None where the owner lives: nobody has a block that it has not computed.
        """
        return None if self._owner_lives else max(self.next_block, self._kept_before)

    @property
    def _is_replaying(self) -> bool:
        """Whether a living owner is still computing anew what has left."""
        return self._owner_lives and self._sent_from is not None and self._owner_computed < self._sent_from

    @property
    def _kept_before(self) -> int:
        """The first block, of those that may not have left, of which no holder has the list."""
        block = self._left
        while block in self._lists:
            block += 1
        return block

    @property
    def _lacks(self) -> bool:
        """Whether a block is not here that a client lacks: all that it has not received; the newest if it has none."""
        newest = self.next_block - 1
        firsts = [newest if received is None else received + 1 for received in self._joined_with]
        first = max(min(firsts, default=self.next_block), self.next_block - MAX_BLOCKS, 0)
        return any(block not in self._recalled for block in range(first, self.next_block))

    @property
    def shown_before(self) -> int:
        """No earlier server can have shown this block, or a later one: a living owner has not computed it."""
        return self._computed if self._owner_lives else NO_BOUND

    @property
    def _claim(self) -> int:
        claims = (block for block in self._joined_with if block is not None and block < self.shown_before)
        return max(claims, default=-1)
