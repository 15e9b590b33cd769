"""What a server must still know after its own death, beside the ledger's rows: its workers, sessions and moves.

Rules of this file:

1. A note is durable before what it speaks of can matter: a worker's before any session is opened in it, a
   holder's before it is sent a list, a move's before its first message.
2. A note decides nothing. Who owns a session is the row's to say, and who is dead is its process's.
3. What is kept can be read: it is read before it is kept, by the very rule by which a later server does.
4. A move that cannot be read is left out, and said: no server is kept from its workers by what is past.
"""

from typing import Annotated, Protocol, TypeVar

import msgspec

from worldmove.errors import LedgerError
from worldmove.fleet.reports import MoveReport, Outcome
from worldmove.move.ledger_messages import Count, Name

SERVER = "server"
Pid = Annotated[int, msgspec.Meta(ge=1, lt=1 << 31)]
ReceiptKey = Annotated[str, msgspec.Meta(pattern="^([0-9a-f]{64})?$")]
Holding = tuple[tuple[Name, Count], ...]
MOST_INSTANT = 1e11
Instant = Annotated[float, msgspec.Meta(ge=0, lt=MOST_INSTANT)]
"""Seconds of the wall clock: what a calendar can say."""


class NoteStore(Protocol):
    """Where notes are kept: texts by kind and key. Each verb is durable when it returns; raises LedgerError."""

    def keep(self, kind: str, key: str, value: str) -> None: ...

    def drop(self, kind: str, key: str) -> None: ...

    def kept(self, kind: str) -> dict[str, str]:
        """Return every note of a kind, in the order of their keys."""
        ...


class MemoryNotes:
    """Notes that are forgotten with their process."""

    def __init__(self) -> None:
        self._notes: dict[str, dict[str, str]] = {}

    def keep(self, kind: str, key: str, value: str) -> None:
        self._notes.setdefault(kind, {})[key] = value

    def drop(self, kind: str, key: str) -> None:
        self._notes.get(kind, {}).pop(key, None)

    def kept(self, kind: str) -> dict[str, str]:
        return dict(sorted(self._notes.get(kind, {}).items()))


class _Note(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The root of what is noted."""


class ServerNote(_Note, frozen=True, kw_only=True):
    """The newest server of a state folder."""

    life: Count
    """Its life number: each server's is greater than the one before it."""
    engine: str
    """What its workers were told to build."""
    speech: str
    """A digest of the messages that its workers understand."""
    fields: dict[str, str] = msgspec.field(default_factory=dict)
    """What that is, as fields of an environment; none where an older version lived here."""
    receipt_key: ReceiptKey = ""
    """The secret of what it gives with a block, hexadecimal; empty where an older version lived here."""


class WorkerNote(_Note, frozen=True, kw_only=True):
    """A worker's newest incarnation. ``pid`` is None from its start to its hello; it holds nothing until then."""

    name: Name
    incarnation: Count
    pid: Pid | None = None
    birth: str = ""
    """What tells its process from a later one with the same pid."""


class SessionNote(_Note, frozen=True, kw_only=True):
    """A session's facts, and who may hold lists of it: (worker, incarnation)."""

    name: Name
    seed: Count
    num_bytes: Count
    num_leaves: Count
    state_digest: str
    holders: Holding = ()
    closing: bool = False
    protect_every: Count = 0
    """After how many blocks a snapshot of it is kept elsewhere; 0: never."""
    forks: tuple[Count, ...] = ()
    """The first block of each timeline after the first: see ``serve.receipts``."""


class MoveNote(_Note, frozen=True, kw_only=True):
    """A move: under way while ``report`` is None."""

    number: Count
    session: Name
    attempt: str
    source: Name
    destination: Name
    epoch: Count
    transport: str
    strategy: str
    started_at: Instant
    granted: bool = False
    """Whether the ledger has granted it, and its source has not got the session back. The row of a later epoch does
    not say so any more."""
    report: MoveReport | None = None

    def unfinished(self, detail: str) -> MoveReport:
        """Return the report of a move whose server has died in the middle of it."""
        return MoveReport(
            session=self.session,
            attempt=self.attempt,
            source=self.source,
            destination=self.destination,
            outcome=Outcome.IN_DOUBT,
            reason="server_ended",
            detail=detail,
            epoch=self.epoch,
            tries=1,
            transport=self.transport,
            strategy=self.strategy,
            epoch_before=self.epoch,
            started_at=self.started_at,
            took_s=0.0,
        )


NoteT = TypeVar("NoteT", bound=_Note)


def instant(wall_s: float) -> float:
    """Return the nearest that a note can say: a clock may stand anywhere, and nothing is refused for that."""
    return min(max(wall_s, 0.0), MOST_INSTANT - 1.0)


def _read(text: str, kind: type[NoteT]) -> NoteT:
    try:
        return msgspec.json.decode(text, type=kind)
    except (msgspec.MsgspecError, UnicodeError) as error:
        raise LedgerError(f"A note in the ledger is damaged ({error}): use another --state folder.") from error


def _written(note: _Note) -> str:
    """Return a note's text, which can be read. Raises LedgerError."""
    try:
        text = msgspec.json.encode(note).decode()
        msgspec.json.decode(text, type=type(note))
    except (msgspec.MsgspecError, UnicodeError) as error:
        raise LedgerError(f"This cannot be noted, for no later server could read it: {error}.") from error
    return text


class Notes:
    """The notes by their types. Each verb raises LedgerError where its note cannot be kept."""

    def __init__(self, store: NoteStore) -> None:
        self._store = store

    def server(self) -> ServerNote | None:
        found = self._store.kept("server").get(SERVER)
        return None if found is None else _read(found, ServerNote)

    def keep_server(self, note: ServerNote) -> None:
        self._keep("server", SERVER, note)

    def workers(self) -> tuple[WorkerNote, ...]:
        return tuple(_read(text, WorkerNote) for text in self._store.kept("worker").values())

    def keep_worker(self, note: WorkerNote) -> None:
        self._keep("worker", note.name, note)

    def sessions(self) -> dict[str, SessionNote]:
        kept = self._store.kept("session")
        return {name: _read(text, SessionNote) for name, text in kept.items()}

    def keep_session(self, note: SessionNote) -> None:
        self._keep("session", note.name, note)

    def drop_session(self, name: str) -> None:
        self._store.drop("session", name)

    def moves(self) -> tuple[tuple[MoveNote, ...], dict[int, str]]:
        """Return the moves, oldest first, and by their numbers why others cannot be read."""
        found, unreadable = list[MoveNote](), dict[int, str]()
        for key, text in self._store.kept("move").items():
            try:
                found.append(_read(text, MoveNote))
            except LedgerError as error:
                unreadable[int(key) if key.isdecimal() else 0] = str(error)
        return tuple(sorted(found, key=lambda note: note.number)), unreadable

    def keep_move(self, note: MoveNote) -> None:
        self._keep("move", f"{note.number:016d}", note)

    def drop_move(self, number: int) -> None:
        self._store.drop("move", f"{number:016d}")

    def _keep(self, kind: str, key: str, note: _Note) -> None:
        self._store.keep(kind, key, _written(note))
