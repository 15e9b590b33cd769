"""What a worker does for the protection of sessions, beside their play: give snapshots, keep others', revive them."""

from collections.abc import Callable, Coroutine
from typing import Any

from worldmove.worker.background import Background
from worldmove.worker.beats import Beats
from worldmove.worker.containment import Containment
from worldmove.worker.copies import CopyTable
from worldmove.worker.keeper import Keeper
from worldmove.worker.messages import DropSnapshot, Expect, Keep, LetGo, Revive, TakeSnapshot, ToServer
from worldmove.worker.taking import Snapshots


class Protecting:
    """One worker's. Where something fails here, the play goes on."""

    def __init__(
        self,
        *,
        copies: CopyTable,
        keeper: Keeper,
        snapshots: Snapshots,
        background: Background,
        containment: Containment,
        beats: Beats,
        send: Callable[[ToServer], None],
    ) -> None:
        self._copies = copies
        self._keeper = keeper
        self._snapshots = snapshots
        self._background = background
        self._containment = containment
        self._beats = beats
        self._send = send

    def take(self, message: TakeSnapshot | DropSnapshot | Expect | Keep | LetGo | Revive) -> None:
        """Do, or begin, what a message asks for."""
        match message:
            case TakeSnapshot(request=request):
                self._beside(f"snapshot {request}", message.session, self._give_snapshot(message))
            case DropSnapshot(request=request):
                self._beside(f"drop snapshot {request}", message.session, self._drop_snapshot(request))
            case Expect(session=session):
                self._copies.kept.expect(session)
            case Keep(session=session):
                self._beside(f"keep {session}", session, self._keep(message))
            case LetGo():
                self._let_go(message)
            case Revive(session=session):
                name, work = f"revive {session}", self._keeper.revive(message)
                self._background.start(name, work, contained=lambda error: self._unrevived(message, error))

    def begin_anew(self) -> None:
        """There is a new link: whoever asked for the snapshots that are held may not know of them."""
        self._beside("drop snapshots", "", self._snapshots.begin_anew())

    def _let_go(self, message: LetGo) -> None:
        """Keep nothing of it any more; what is only expected goes also where the word of it has come late."""
        keeping = self._copies.kept.get(message.session)
        if keeping is not None and keeping.state is not None and not self._beats.is_in_time(message.only):
            return
        self._copies.kept.let_go(message.session)

    async def close(self, session: str) -> None:
        """The session is closed: keep nothing of it, and end what is under way for it."""
        for work in ("keep", "revive"):
            await self._background.end(f"{work} {session}")
        self._copies.kept.let_go(session)

    def _beside(self, name: str, session: str, work: Coroutine[Any, Any, None]) -> None:
        def contained(error: BaseException) -> None:
            self._containment.report(name.partition(" ")[0], session, error)

        self._background.start(name, work, contained=contained)

    def _unrevived(self, asked: Revive, error: BaseException) -> None:
        """What was kept could not be made a session of: it is let go, or it would be tried again for ever."""
        why = self._containment.report("revive", asked.session, error)
        self._keeper.cannot_be_used(asked, "internal", why)

    async def _give_snapshot(self, message: TakeSnapshot) -> None:
        self._send(await self._snapshots.take(message))

    async def _drop_snapshot(self, request: int) -> None:
        await self._background.end(f"snapshot {request}")
        await self._snapshots.drop(request)

    async def _keep(self, message: Keep) -> None:
        answer = await self._keeper.keep(message)
        self._copies.report()  # before the answer: who hears of it asks what is kept
        self._send(answer)
