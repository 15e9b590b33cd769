"""Every error that WorldMove raises, in one tree.

    WorldMoveError
    |- StateRefused            a leaf cannot be carried exactly, or a state is not this engine's
    |- ManifestError           bytes that are not a manifest of ours
    |- ArenaFull               the state does not fit its slot
    |- NoMemory                the system, or a device, gives no memory
    |- MessageError            bytes that are not a message of ours
    |- ProtocolError           an event that the table does not know: a bug, never weather
    |- TransportError          bytes did not arrive; says nothing about ownership
    |  `- NoDescriptors        a process may open no more files: its path cannot be opened, however often it is tried
    |- EngineFailed            an engine raised; the session that it was about cannot go on there
    |- WeightsError            weights that are missing, damaged or not the pinned ones
    |- FileRefused             a record or a saved world that is damaged, not one of ours, or of another version
    |- MoveRefused             before a byte travelled; the session goes on at its source
    |- LedgerError             the ledger does not answer; nothing moves meanwhile
    `- UserError               a request that cannot be met, said in one sentence

Each error says whose fault it is and whether the session still runs, and carries fields, not only text. How a
move ended once bytes travelled is no error but an outcome, and stands in its report (``move.report``).
"""

from enum import Enum


class Fault(Enum):
    """Whose fault an error is, seen from the process that raises it."""

    LOCAL = "local"
    REMOTE = "remote"


class WorldMoveError(Exception):
    """The root. ``code`` is the stable word for programs; ``session_runs`` is None where none is concerned."""

    code = "error"
    fault = Fault.LOCAL
    session_runs: bool | None = None


class StateRefused(WorldMoveError):
    """A leaf cannot be carried exactly. ``path`` names it."""

    code = "state_refused"
    session_runs = True

    def __init__(self, path: str, why: str) -> None:
        super().__init__(f"{path or 'state'} cannot be carried: {why}")
        self.path = path
        self.why = why


class ManifestError(WorldMoveError):
    """Bytes that are not a manifest of ours: damaged, of another version, or beyond a limit."""

    code = "bad_manifest"
    fault = Fault.REMOTE


class ArenaFull(WorldMoveError):
    """The state does not fit the slot's arena. ``piece``: a storage that has no place, and the largest that would have.

    That is said where there would be bytes enough, and none of them in one place, beside what lies there.
    """

    code = "arena_full"
    session_runs = True

    def __init__(self, needed: int, available: int, *, piece: tuple[int, int] | None = None) -> None:
        said = f"the state needs {needed:,} bytes of arena, and {available:,} are there"
        if piece is not None and needed <= available:
            said += f", but in no place of it {piece[0]:,} in a row: at most {piece[1]:,}"
        super().__init__(said)
        self.needed = needed
        self.available = available


class NoMemory(WorldMoveError):
    """The system, or a device, gives no memory for what was to be done; all else goes on."""

    code = "no_memory"

    def __init__(self, why: str) -> None:
        super().__init__(f"there is no memory for it: {why}")
        self.why = why


class MessageError(WorldMoveError):
    """Bytes that are not a message of ours, or one beyond its limits."""

    code = "bad_message"
    fault = Fault.REMOTE


class ProtocolError(WorldMoveError):
    """An event that a transition table does not know. Drivers filter weather out, so this is a bug."""

    code = "protocol"


class TransportError(WorldMoveError):
    """Bytes did not arrive. Says nothing about who owns the session."""

    code = "transport"
    fault = Fault.REMOTE


class NoDescriptors(TransportError):
    """A path cannot be opened, for a process may open no more files: trying again at once changes nothing."""

    code = "no_descriptors"


class EngineFailed(WorldMoveError):
    """An engine raised while it opened or stepped a session, whose state nobody can vouch for any more."""

    code = "engine_failed"
    session_runs = False


class WeightsError(WorldMoveError):
    """Weights that are missing, damaged, or not the pinned ones."""

    code = "bad_weights"


class FileRefused(WorldMoveError):
    """A file that cannot be read as what it was taken for: foreign, damaged, too short, of another version."""

    code = "bad_file"
    fault = Fault.REMOTE


class MoveRefused(WorldMoveError):
    """Refused before a byte travelled. ``reason`` is a word; ``detail`` has the fields or numbers."""

    code = "refused"
    session_runs = True

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(f"Not moved, nothing changed: {detail}")
        self.reason = reason
        self.detail = detail


class LedgerError(WorldMoveError):
    """The ledger does not answer, or its file is not ours. No move starts meanwhile."""

    code = "ledger"
    session_runs = True

    def __init__(self, message: str, *, no_space: bool = False) -> None:
        super().__init__(message)
        self.no_space = no_space


class UserError(WorldMoveError):
    """A request that cannot be met. The sentence says what to do; ``status`` is its HTTP status."""

    code = "usage"

    def __init__(self, message: str, *, code: str = "usage", status: int = 400) -> None:
        super().__init__(message)
        self.code = code
        self.status = status
