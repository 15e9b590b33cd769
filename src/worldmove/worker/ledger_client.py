"""The ledger as a worker asks it: over its link, by numbered questions."""

import asyncio
from collections.abc import Callable

from worldmove.move.ledger_messages import Answer, CloseAttempt, Closed, CommitAttempt, Denied, Operation, Theirs, Yours
from worldmove.worker.messages import LedgerAnswer, LedgerAsk


class LinkLedger:
    """A ``LedgerClient`` over the server's link."""

    def __init__(
        self,
        *,
        worker: str,
        incarnation: int,
        send: Callable[[LedgerAsk], None],
        answer_s: float,
        log: Callable[..., None],
    ) -> None:
        self._worker = worker
        self._incarnation = incarnation
        self._send = send
        self._answer_s = answer_s
        self._log = log
        self._asked = 0
        self._waiting: dict[int, asyncio.Future[Answer]] = {}

    async def ask(self, operation: Operation) -> Answer | None:
        """Put one operation to the ledger. None is silence: it may or may not have been done.

        So is an answer to something else: whoever gave it is blamed in the log, and is asked again.
        """
        self._asked += 1
        number = self._asked
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        ask = LedgerAsk(request=number, worker=self._worker, incarnation=self._incarnation, operation=operation)
        self._send(ask)
        try:
            async with asyncio.timeout(self._answer_s):
                found = await answer
        except TimeoutError:
            return None
        finally:
            del self._waiting[number]
        if answers(operation, found):
            return found
        what = {"asked": type(operation).__name__, "answered": repr(found)[:500]}
        self._log("bad_answer", of="server", session=operation.session, **what)
        return None

    def take(self, message: LedgerAnswer) -> bool:
        """Hand an answer to whoever still waits for it. False: nobody does."""
        waiting = self._waiting.get(message.request)
        if waiting is None or waiting.done():
            return False
        waiting.set_result(message.answer)
        return True


def answers(operation: Operation, answer: Answer) -> bool:
    """Say whether this may be the answer to what was asked."""
    if answer.session != operation.session or not isinstance(answer, Closed | Yours | Theirs | Denied):
        return False
    if not isinstance(answer, Closed):
        return True
    return isinstance(operation, CommitAttempt | CloseAttempt) and answer.attempt == operation.attempt
