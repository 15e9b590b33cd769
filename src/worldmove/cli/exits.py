"""What a command's exit status says. Each command's ``--help`` lists those it can end with."""

from enum import IntEnum

from worldmove.cli.termination import ToldToEnd
from worldmove.errors import UserError, WorldMoveError


class ExitCode(IntEnum):
    DONE = 0
    """Done; for a move: committed and proven."""
    FAILED = 1
    """An unexpected failure of ours, or of this machine."""
    USAGE = 2
    """The command cannot be meant so: an unknown name, a port that is taken, weights that are not the pinned ones."""
    REFUSED = 3
    """Refused, nothing changed. ``doctor``, ``audit``, ``bench``: a check failed."""
    ABORTED = 4
    """Given up on the way; the session runs on at its source."""
    IN_DOUBT = 5
    """Only the ledger knows who owns the session: ask again with its name."""
    LOST = 6
    """No complete copy is left."""
    UNREACHABLE = 7
    """The server does not answer."""
    DIFFERENT = 8
    """``verify``: what was computed anew is not what was recorded."""
    UNWRITTEN = 9
    """Done, and standard output could not be written: standard error says what was done."""
    HUNG_UP = 129
    """Its terminal has gone (SIGHUP). As INTERRUPTED otherwise."""
    INTERRUPTED = 130
    """By Ctrl-C. Where a server may go on with what was asked, that was said."""
    READER_GONE = 141
    """Done, and nobody read standard output any more: what a shell says of a program that ends by that."""
    TERMINATED = 143
    """Told to end (SIGTERM). As INTERRUPTED otherwise."""

    @property
    def is_interrupt(self) -> bool:
        return self in (ExitCode.HUNG_UP, ExitCode.INTERRUPTED, ExitCode.TERMINATED)


BY_OUTCOME = {
    "committed": ExitCode.DONE,
    "refused": ExitCode.REFUSED,
    "aborted": ExitCode.ABORTED,
    "in_doubt": ExitCode.IN_DOUBT,
    "lost": ExitCode.LOST,
}
BY_CODE = {
    **BY_OUTCOME,
    "unreachable": ExitCode.UNREACHABLE,
    "unanswered": ExitCode.UNREACHABLE,
    "too_slow": ExitCode.REFUSED,
    "bad_weights": ExitCode.USAGE,
    "no_slot": ExitCode.REFUSED,
    "no_worker": ExitCode.REFUSED,
    "worker_gone": ExitCode.REFUSED,
    "silent": ExitCode.REFUSED,
    "environment": ExitCode.REFUSED,
    "no_record": ExitCode.REFUSED,
    "arena_full": ExitCode.REFUSED,
    "no_memory": ExitCode.REFUSED,
    "state_refused": ExitCode.REFUSED,
    "bad_answer": ExitCode.REFUSED,
    "bad_file": ExitCode.USAGE,
    "moving": ExitCode.REFUSED,
    "resuming": ExitCode.REFUSED,
    "not_moving": ExitCode.REFUSED,
    "busy": ExitCode.REFUSED,
    "already_there": ExitCode.REFUSED,
    "walk_first": ExitCode.REFUSED,
    "engine_failed": ExitCode.REFUSED,
    "crashed": ExitCode.REFUSED,
    "overdue": ExitCode.REFUSED,
    "worker_start": ExitCode.FAILED,
    "no_space": ExitCode.FAILED,
    "cannot_write": ExitCode.FAILED,
    "internal": ExitCode.FAILED,
}


def exit_of(error: WorldMoveError) -> ExitCode:
    """Return the exit status of an error."""
    otherwise = ExitCode.USAGE if isinstance(error, UserError) else ExitCode.FAILED
    return BY_CODE.get(error.code, otherwise)


def exit_told(told: ToldToEnd) -> ExitCode:
    """Return the exit status of a command that a signal has ended: what a shell says of one that ends by that."""
    return ExitCode(128 + told.number)


def exit_unwritten(status: ExitCode, failure: OSError) -> ExitCode:
    """Return the exit status of a command whose output could not be written; what is no success says more than that."""
    if status is not ExitCode.DONE:
        return status
    return ExitCode.READER_GONE if isinstance(failure, BrokenPipeError) else ExitCode.UNWRITTEN


def epilog(*codes: ExitCode, refused: str = "refused, nothing changed") -> str:
    """Return the line of a command's help that says how it can end. ``refused``: what that means to it."""
    words = {
        ExitCode.DONE: "done",
        ExitCode.FAILED: "unexpected failure",
        ExitCode.USAGE: "usage",
        ExitCode.REFUSED: refused,
        ExitCode.ABORTED: "aborted, the session runs at its source",
        ExitCode.IN_DOUBT: "in doubt: ask again",
        ExitCode.LOST: "lost",
        ExitCode.UNREACHABLE: "the server does not answer",
        ExitCode.DIFFERENT: "different from what was recorded",
        ExitCode.UNWRITTEN: "done, and its output could not be written",
    }
    return "Exit status: " + "; ".join(f"{int(code)} {words[code]}" for code in (*codes, ExitCode.UNWRITTEN)) + "."
