"""The ledger's row of one session, and what the server knows beside it."""

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedFor:
    """The attempt that is open, and the shadow that may commit it."""

    attempt: str
    destination: str
    incarnation: int


OPENED_BY_USER = "opened"
BY_RECLAIM = "reclaim"
BY_FAILOVER = "failover"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Who owns a session. One owner per epoch, for ever."""

    session: str
    owner: str
    incarnation: int
    epoch: int
    shown: bool = False
    """A frame of this epoch may have left."""
    attempt: OpenedFor | None = None
    granted_by: str = OPENED_BY_USER
    """What made this epoch: an attempt's id, or one of the three words above."""
    last_attempt: str = ""
    """The greatest attempt id that was opened or closed. A new one is greater."""
    lost: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What the server knows when it asks. None is *not known*, and so is whatever is about another owner."""

    owner: str = ""
    """With the next two, the owner that ``owner_gone`` and ``owner_suspected`` are about."""
    incarnation: int = 0
    epoch: int = 0
    owner_gone: bool | None = None
    """True: its copy is proven dead (an exit status, a newer incarnation's hello, ``Gone``). False: it answers."""
    owner_suspected: bool = False
    """Its lease has lapsed, or its link is down. Proves nothing."""
    next_block: int | None = None
    """The next block that the gateway would show."""
    closed_epoch: int | None = None
    """The newest epoch whose frames the gateway refuses from now on."""
    poll: int | None = None
    """The number of the newest poll that every worker has answered, or died in."""

    def about(self, row: Row) -> "Facts":
        """Return these facts as they concern the owner that ``row`` names."""
        if (self.owner, self.incarnation, self.epoch) == (row.owner, row.incarnation, row.epoch):
            return self
        return replace(self, owner_gone=None, owner_suspected=False)


def attempt_id(number: int, salt: str) -> str:
    """Return the ``number``th attempt's id. Ids are ordered as text; ``salt`` keeps two of one number apart."""
    return f"{number:08d}-{salt}"


def next_attempt(row: Row, salt: str, *, tried: str = "") -> str:
    """Return an id that is newer than every attempt that this row has seen, and than ``tried``.

    A try that was refused before the ledger opened it has left no trace in the row, but the source knows it.
    """
    newest = max(row.last_attempt, tried)
    return attempt_id(int(newest.partition("-")[0] or 0) + 1, salt)
