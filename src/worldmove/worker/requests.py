"""What the server asks for that takes a while: a session is opened, looked at, saved, closed; each is answered."""

from worldmove.errors import MessageError
from worldmove.move.sayable import said
from worldmove.worker.asides import answer
from worldmove.worker.background import Background
from worldmove.worker.containment import Containment
from worldmove.worker.copies import CopyTable
from worldmove.worker.drivers import Drivers
from worldmove.worker.messages import Close, Describe, Failed, Freed, NotDone, Open, Opened, Save
from worldmove.worker.opening import open_session
from worldmove.worker.protecting import Protecting
from worldmove.worker.session import CopyPhase
from worldmove.worker.tools import Tools


class Requests:
    """One worker's. Each is done beside everything else."""

    def __init__(
        self,
        *,
        copies: CopyTable,
        drivers: Drivers,
        protecting: Protecting,
        background: Background,
        containment: Containment,
        tools: Tools,
    ) -> None:
        self._copies = copies
        self._drivers = drivers
        self._protecting = protecting
        self._background = background
        self._containment = containment
        self._tools = tools

    def take(self, message: Open | Close | Describe | Save) -> None:
        """Begin what a message asks for."""
        match message:
            case Open():
                name, work = f"open {message.session}", self._open(message)
                self._background.start(name, work, contained=lambda error: self._unopened(message, error))
            case Close():
                self._containment.start("close", message.session, self._close(message))
            case Describe() | Save():
                name, answer = f"answer {message.request}", self._answer(message)
                self._background.start(name, answer, contained=lambda error: self._unanswered(message, error))

    async def _open(self, message: Open) -> None:
        answer = await open_session(message, self._copies, self._tools)
        if isinstance(answer, Opened):  # a refusal needs no engine, and says nothing of it
            self._tools.progress.one_more()
        copy = self._copies.get(message.session)
        if copy is not None and copy.phase is CopyPhase.LIVE and not isinstance(answer, Failed):
            self._drivers.play(copy)
        self._tools.send(answer)

    def _unopened(self, message: Open, error: BaseException) -> None:
        """An opening has failed, perhaps before there was a copy."""
        if self._copies.get(message.session) is None:
            self._tools.send(Failed(session=message.session, code="internal", message=said(f"it failed: {error!r}")))
        self._containment.failed("open", message.session, error)

    async def _answer(self, message: Describe | Save) -> None:
        """Answer; what is longer than a message may be cannot be told, and ends nothing."""
        try:
            said_of_it = await answer(message, self._copies, self._tools)
            if not isinstance(said_of_it, NotDone):
                self._tools.progress.one_more()
            self._tools.send(said_of_it)
        except MessageError as error:
            why = f"What there is to say of {message.session} is too long: {error}."
            refusal = NotDone(session=message.session, request=message.request, code=error.code, message=said(why))
            self._tools.send(refusal)

    def _unanswered(self, message: Describe | Save, error: BaseException) -> None:
        """A question has failed, which has no part in how its session is played."""
        why = self._containment.report("answer", message.session, error)
        refusal = NotDone(session=message.session, request=message.request, code="internal", message=said(why))
        self._tools.send(refusal)

    async def _close(self, message: Close) -> None:
        await self._protecting.close(message.session)
        copy = self._copies.get(message.session)
        if copy is not None:
            copy.end()
        await self._drivers.end(message.session)
        if copy is not None:
            await copy.ended.wait()
        self._tools.send(Freed(session=message.session))
