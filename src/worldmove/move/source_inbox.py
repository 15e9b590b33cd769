"""What reaches a source, filtered: in each phase, only what that phase can use gets through.

Late, repeated and foreign messages end here, so that the table may be strict.
"""

import asyncio
from collections import deque
from dataclasses import dataclass

from worldmove.move.attempt import Attempt, GaveUpError
from worldmove.move.messages import (
    Abandon,
    AnyMoveMessage,
    Begin,
    Cancel,
    Fetched,
    Inquire,
    Landed,
    Prepare,
    Ready,
    Start,
)
from worldmove.move.protocol import SourceEvent

NO_ATTEMPT = "00000000-none"
MAX_SPENT = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """The gateway has refused a frame of this copy: the ledger's row has ``epoch``."""

    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenOver:
    """The ledger has granted the session to this retired copy (failover); ``block`` is the next to be shown."""

    epoch: int
    block: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Passed:
    """A block past the boundary of the copy that retired in ``epoch`` has left, and its check is done."""

    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Hint:
    """A reason to ask the ledger now; and the words for it, where somebody gave up."""

    reason: str = ""
    detail: str = ""


Item = AnyMoveMessage | Refused | TakenOver | Passed


class SourceInbox:
    """One copy's messages and facts."""

    def __init__(self, session: str, epoch: int) -> None:
        self.epoch = epoch
        """The copy's own."""
        self.newest = NO_ATTEMPT
        """The greatest attempt that was begun here, or was prepared here and cancelled."""
        self._spent: deque[str] = deque(maxlen=MAX_SPENT)
        self._session = session
        self._items: asyncio.Queue[Item] = asyncio.Queue()

    def put(self, item: Item) -> None:
        self._items.put_nowait(item)

    def spend(self, attempt: str) -> None:
        """Take no word of an attempt any more that was never prepared here, and was ended or begun by somebody.

        It does not count as the newest: its id may be anything, and one that is far ahead would leave no room
        for a newer one.
        """
        self._spent.append(attempt)

    async def live(self) -> Prepare | Begin | Start | Cancel | Fetched | Abandon | Refused:
        """Return the next word about a new attempt, or a refusal."""
        while True:
            match await self._items.get():
                case Prepare() | Begin() | Start() | Cancel() | Fetched() | Abandon() as message if self._is_new(
                    message
                ):
                    return message
                case Refused() as refused if refused.epoch > self.epoch:
                    return refused

    async def frozen(self, attempt: Attempt, ready: asyncio.Event, landed: asyncio.Event) -> None:
        """Set ``ready`` when the other end waits for the freeze, ``landed`` when the bytes are over.

        Raises GaveUpError when there is a reason to.
        """
        while True:
            match await self._items.get():
                case Ready() as message if attempt.owns(message):
                    ready.set()
                case Landed() as message if attempt.owns(message):
                    landed.set()
                case Cancel() as message if attempt.owns(message):
                    raise GaveUpError(SourceEvent.CANCEL, "cancelled", "it was cancelled")
                case Abandon() as message if attempt.owns(message):
                    raise GaveUpError(SourceEvent.CANCEL, message.reason, message.detail)
                case Refused() as refused if refused.epoch > self.epoch:
                    raise GaveUpError(SourceEvent.REFUSED, "superseded", f"the row has epoch {refused.epoch}")

    async def doubt(self, attempt: Attempt | None, wait_s: float) -> Hint | None:
        """Return the next reason to ask the ledger; None after ``wait_s`` without one."""
        try:
            async with asyncio.timeout(wait_s):
                while True:
                    match await self._items.get():
                        case Cancel() as message if attempt and attempt.owns(message):
                            return Hint(reason="cancelled", detail="it was cancelled")
                        case Abandon() as message if attempt and attempt.owns(message):
                            return Hint(reason=message.reason, detail=message.detail)
                        case Inquire() as message if self._concerns(message, attempt):
                            return Hint()
                        case Refused() | TakenOver() as told if told.epoch > self.epoch:
                            return Hint()
        except TimeoutError:
            return None

    async def retired(self, wait_s: float) -> Passed | TakenOver | None:
        """Return the end of a retired copy's time, or its return; None after ``wait_s`` without either."""
        try:
            async with asyncio.timeout(wait_s):
                while True:
                    match await self._items.get():
                        case Passed() as passed if passed.epoch == self.epoch:
                            return passed
                        case TakenOver() as taken if taken.epoch > self.epoch:
                            return taken
        except TimeoutError:
            return None

    def _concerns(self, hint: Inquire, attempt: Attempt | None) -> bool:
        """A late hint about another attempt would close this one for nothing."""
        return hint.session == self._session if attempt is None else attempt.owns(hint)

    def _is_new(self, message: AnyMoveMessage) -> bool:
        if (message.session, message.epoch) != (self._session, self.epoch):
            return False
        return message.attempt > self.newest and message.attempt not in self._spent
