"""What a source asks of the ledger about its session, and what it has learnt of the row."""

from worldmove.move.answers import source_event
from worldmove.move.host import Host
from worldmove.move.ledger_messages import Answer, Theirs, Yours
from worldmove.move.protocol import SourceEvent, SourcePhase
from worldmove.move.questions import close, reclaim
from worldmove.move.source_copy import SourceCopy
from worldmove.move.source_inbox import SourceInbox


class Inquiry:
    """One copy's questions. The inbox knows the copy's epoch and its newest attempt, which every question names."""

    def __init__(
        self, *, host: Host, session: str, copy: SourceCopy, inbox: SourceInbox, boundary: int | None = None
    ) -> None:
        self.row_epoch = inbox.epoch
        """The newest that an answer has told of."""
        self.next_shown = 0
        """Where the session was given back by a failover: the next block to be shown."""
        self.boundary = boundary
        """Of a copy that has retired: its next block by then. None while it is played."""
        self._host = host
        self._session = session
        self._copy = copy
        self._inbox = inbox

    async def close(self) -> Answer | None:
        """Inquire, which closes."""
        boundary = self._copy.reach[1] if self.boundary is None else self.boundary
        asked = close(self._host, self._session, self._inbox.newest, epoch=self._inbox.epoch, boundary=boundary)
        return await self._host.ledger.ask(asked)

    async def reclaim(self) -> Answer | None:
        """Ask for the session back."""
        asked = reclaim(self._host, self._session, epoch=self.row_epoch, reach=self._copy.reach)
        return await self._host.ledger.ask(asked)

    def event(self, answer: Answer | None, phase: SourcePhase) -> SourceEvent | None:
        """Name an answer, and note the epoch that it tells of."""
        event = source_event(answer, phase=phase, epoch=self._inbox.epoch)
        if event is not None and isinstance(answer, Yours | Theirs):
            self.row_epoch = answer.epoch
        if event is SourceEvent.FAILOVER and isinstance(answer, Yours):
            self.next_shown = answer.replay_to or 0
        return event

    def taken_over(self, epoch: int, block: int) -> None:
        """The session was given back by a failover, and ``block`` is the next to be shown."""
        self.row_epoch, self.next_shown = epoch, block
