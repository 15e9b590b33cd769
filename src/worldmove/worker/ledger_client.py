"""The ledger as a worker asks it: over its link, by numbered questions."""

import asyncio
from collections.abc import Callable

from worldmove.move.ledger_messages import Answer, Operation
from worldmove.worker.messages import LedgerAnswer, LedgerAsk


class LinkLedger:
    """A ``LedgerClient`` over the server's link."""

    def __init__(self, *, worker: str, incarnation: int, send: Callable[[LedgerAsk], None], answer_s: float) -> None:
        self._worker = worker
        self._incarnation = incarnation
        self._send = send
        self._answer_s = answer_s
        self._asked = 0
        self._waiting: dict[int, asyncio.Future[Answer]] = {}

    async def ask(self, operation: Operation) -> Answer | None:
        """Put one operation to the ledger. None is silence: it may or may not have been done."""
        self._asked += 1
        number = self._asked
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        ask = LedgerAsk(request=number, worker=self._worker, incarnation=self._incarnation, operation=operation)
        self._send(ask)
        try:
            async with asyncio.timeout(self._answer_s):
                return await answer
        except TimeoutError:
            return None
        finally:
            del self._waiting[number]

    def take(self, message: LedgerAnswer) -> bool:
        """Hand an answer to whoever still waits for it. False: nobody does."""
        waiting = self._waiting.get(message.request)
        if waiting is None or waiting.done():
            return False
        waiting.set_result(message.answer)
        return True
