"""What the controller and the gateway of one server ask of each other.

The controller knows workers, attempts and the ledger; the gateway knows players, inputs and frames. Both
live in one event loop; each call here returns at once.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from worldmove.errors import LedgerError
from worldmove.fleet.failover_report import FailoverReport
from worldmove.fleet.forecast import Forecast
from worldmove.fleet.reports import MoveReport
from worldmove.fleet.views import SessionView, WorkerView
from worldmove.move.ledger_rules import Answer, Operation
from worldmove.move.strategy import Strategy
from worldmove.worker.messages import (
    BlockDone,
    Change,
    CheckDone,
    Described,
    Failed,
    Followed,
    Freed,
    Left,
    Opened,
    Replayed,
    Saved,
    StateDone,
    ToWorker,
)

Played = BlockDone | StateDone | CheckDone | Followed | Replayed | Left | Opened | Failed | Freed
"""What a worker says about a session's play."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Beginning:
    """A saved world to go on from: a file that the workers can read, and the environment that it needs."""

    path: str
    environment: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """Who plays a session, as the ledger's row says."""

    worker: str
    incarnation: int
    epoch: int


class Gateway(Protocol):
    """What the controller asks of the gateway."""

    def take(self, worker: str, message: Played) -> None:
        """Take a worker's message about a session's play."""
        ...

    def owned(self, session: str, owner: Owner) -> None:
        """The ledger's row now names this owner: send it the inputs from the next block on."""
        ...

    def holders(self, session: str, workers: Sequence[str]) -> None:
        """These workers hold a copy that still needs the session's inputs (owner, retired, promised)."""
        ...

    def linked_again(self, session: str, worker: str, block: int) -> None:
        """A worker whose next block is this one has made a new link: what was on its way to it may be lost."""
        ...

    def close_epoch(self, session: str, epoch: int) -> None:
        """From now on show no frame of this epoch or an older one (before an unfrozen owner is replaced)."""
        ...

    def resume(self, session: str, opened: Opened, forks: tuple[int, ...] = ()) -> None:
        """A session of an earlier server: show nothing of it and close no list until it may."""
        ...

    def held(self, session: str, block: int, changes: Sequence[Change]) -> None:
        """A holder has this list, closed by an earlier server: it is never closed anew."""
        ...

    def left(self, session: str, before: int, computed: int, *, sends: bool) -> None:
        """A holder says that every block before this one has left, and which one it would compute next.

        ``sends``: it owns the session, and sends again every block from ``before`` on.
        """
        ...

    def may_show(self, session: str, *, owner_lives: bool) -> None:
        """The owner has reported, or is proven dead: show as soon as the client has said what it received.

        Idempotent, and called again where that changes. Where the owner lives, the wait for a client is bounded:
        no client can have received what the owner has not computed.
        """
        ...

    def may_close(self, session: str) -> None:
        """Every holder has reported, or is proven dead: whichever list is not here now is held by nobody."""
        ...

    def open_epoch(self, session: str, epoch: int) -> None:
        """Show this epoch's frames after all: its owner was not replaced."""
        ...

    def next_block(self, session: str) -> int | None:
        """The next block to be shown. None while it is not known (after a restart)."""
        ...

    def log_reaches(self, session: str, first: int = 0) -> int | None:
        """The first block from ``first`` on whose input list is not here. None while not known (after a restart)."""
        ...

    def horizon_s(self, session: str) -> float | None:
        """Seconds from a block's arrival to the next block's due time less its compute time; None if unknown."""
        ...

    def is_stalled(self, session: str) -> bool | None:
        """Whether its owner has owed a block for so long that its engine may never return from a step."""
        ...

    def first_difference(self, session: str, attempt: str) -> int | None:
        """The first block of which an attempt's follower made other frames than were shown; None if there is none."""
        ...

    def moving(self, session: str, event: str, fields: dict[str, object]) -> None:
        """Tell who watches what a move is doing (``phase``, ``result``)."""
        ...

    def failed_over(self, session: str, report: FailoverReport) -> None:
        """A copy has taken over from an owner that is gone, or what was to be said of that is more by now."""
        ...

    def lost(self, session: str, why: str) -> None:
        """No copy is left."""
        ...


class Fleet(Protocol):
    """What the gateway, HTTP and the command line ask of the controller. ``fleet.controller.Controller`` is one."""

    def attach(self, gateway: Gateway) -> None:
        """Name the gateway. Once, before ``start``: each of the two needs the other."""
        ...

    async def start(self) -> None:
        """Start every worker and return when all have said hello. Raises UserError if one cannot start."""
        ...

    async def open(
        self,
        session: str,
        seed: int,
        on: str | None = None,
        *,
        beginning: Beginning | None = None,
        protect_every: int | None = None,
    ) -> SessionView:
        """Begin a world in ``on``, else in the worker with most free slots, and return once it is open.

        ``protect_every``: after how many blocks another worker is to keep a snapshot; 0: never; None: as configured.
        ``Gateway.owned`` is called before it returns. Raises UserError: name taken, unknown worker, no slot, or a
        saved world of another environment.
        """
        ...

    async def describe(self, session: str) -> Described:
        """Return the leaves of a session, as its owner holds them now. Raises UserError: unknown, moving, silent."""
        ...

    async def save(self, session: str, path: str) -> Saved:
        """Have a session's owner write its state to a new file. Raises UserError: unknown, moving, silent, no space."""
        ...

    async def open_throwaway(self, session: str, picture: bytes, seed: int) -> SessionView:
        """Begin a world from one raw RGB frame of ``session``, beside it, named like ``s-1~rk3m9qa``.

        It is in no ledger and has epoch 0: ``Gateway.owned`` is called for its own name. The gateway feeds
        it, shows it, and closes it. Raises UserError: no slot, or an engine that cannot recover.
        """
        ...

    async def close(self, session: str) -> None:
        """End a session or a throw-away copy everywhere, and forget its row. Raises UserError: unknown, moving."""
        ...

    def plan(self, session: str, to: str, *, strategy: Strategy | None = None, link: str | None = None) -> Forecast:
        """Say what a move would be, with every term of every strategy, and make none. Raises UserError as a move."""
        ...

    async def move(
        self,
        session: str,
        to: str,
        *,
        damage: bool = False,
        strategy: Strategy | None = None,
        link: str | None = None,
    ) -> MoveReport:
        """Move a session and return how it ended: refused, aborted and in doubt are reports, not errors.

        ``damage``: every try's bytes pass the Corrupting wrapper (*Break it*). ``strategy``: None has admission
        choose. ``link``: the speed, such as ``1gbit``, that the path is slowed down to. Raises UserError: unknown
        session or worker, already there, or another move of it under way.
        """
        ...

    async def cancel(self, session: str) -> MoveReport:
        """Give its move up if that is still possible, and return how that move ended. UserError: none is under way."""
        ...

    def protect(self, session: str, every: int) -> None:
        """Have another worker keep a snapshot every so many blocks; 0: none. Raises UserError, LedgerError."""
        ...

    def fork(self, session: str, block: int) -> None:
        """From this block on it is another world than a client may have seen. Raises LedgerError, and it is not."""
        ...

    def compared(self, session: str, epoch: int, block: int, *, equal: bool) -> None:
        """A replayed block was compared with what was shown. One that differs: its copy must not go on."""
        ...

    def malformed(self, session: str, epoch: int, why: str) -> None:
        """What an epoch's owner sends can never be shown: its copy must not go on."""
        ...

    def failovers(self) -> tuple[FailoverReport, ...]:
        """The last failovers, oldest first (a bounded history)."""
        ...

    async def ask(self, operation: Operation) -> Answer | None:
        """Put an operation to the ledger with the facts that only the server knows (the gateway's MarkShown).

        None is silence: a precondition is not known yet.
        """
        ...

    def owner(self, session: str) -> Owner | None:
        """The ledger's row, read now: whose frames may be shown. None if unknown or lost."""
        ...

    def send(self, worker: str, message: ToWorker) -> None:
        """Queue a message for a worker; never waits. One that is gone drops it."""
        ...

    def amend(self, told: MoveReport) -> None:
        """Keep a move's report as it was told: with its gap, and where the session was by then."""
        ...

    def workers(self) -> tuple[WorkerView, ...]: ...

    def sessions(self) -> tuple[SessionView, ...]: ...

    def moves(self) -> tuple[MoveReport, ...]:
        """The last moves, oldest first (a bounded history)."""
        ...

    @property
    def ledger_failure(self) -> LedgerError | None:
        """Why the ledger cannot be written, and no move starts; None while it can."""
        ...

    async def stop(self) -> None:
        """End every worker cleanly (kill what does not end) and release everything. Idempotent."""
        ...
