"""The engine, as one copy uses it on behalf of a move: a turn at a time, or within one that is taken already."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

from worldmove.errors import ProtocolError, StateRefused
from worldmove.transport.base import Blocking
from worldmove.worker.session import CopyPhase, SessionCopy
from worldmove.worker.tools import Tools
from worldmove.worker.turns import Turn


class EngineUse:
    """Of one copy. A copy that is being freed is used no more: whoever frees it ends its move's driver next."""

    def __init__(self, copy: SessionCopy, tools: Tools) -> None:
        self._copy = copy
        self._tools = tools
        self._in_hand: Blocking | None = None

    @asynccontextmanager
    async def turn(self, turn: Turn) -> AsyncIterator[Blocking]:
        """Take a turn at the copy, which keeps its slot meanwhile. Raises StateRefused if it is being freed by then."""
        with self._copy.users.one_more():
            async with self._tools.turns.take(turn) as engine_thread:
                self.require_kept()
                yield engine_thread

    @contextmanager
    def in_hand(self, engine_thread: Blocking) -> Iterator[None]:
        """Let ``at_hand`` use this turn meanwhile."""
        self._in_hand = engine_thread
        try:
            yield
        finally:
            self._in_hand = None

    @asynccontextmanager
    async def at_hand(self) -> AsyncIterator[Blocking]:
        """Use the turn that is taken already, or take one that nobody's player waits for. Raises StateRefused."""
        if self._in_hand is not None:
            yield self._in_hand
            return
        async with self.turn(Turn.OPEN) as engine_thread:
            yield engine_thread

    def require_live(self) -> None:
        """Raise StateRefused for a copy that is being freed, ProtocolError for one that is not played."""
        self.require_kept()
        if self._copy.phase is not CopyPhase.LIVE:
            raise ProtocolError(f"{self._copy.name} is {self._copy.phase.value}, and only a live copy is frozen")

    def require_kept(self) -> None:
        """Raise StateRefused for a copy that is being freed."""
        if self._copy.is_freeing:
            raise StateRefused("", "its session has ended here: its engine failed, or it was closed")
