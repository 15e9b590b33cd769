"""The ledger as a worker asks it: what is no answer to its question counts as none, and is blamed on who gave it."""

import asyncio
from typing import Any

import pytest

from worldmove.move.ledger_messages import (
    Answer,
    CloseAttempt,
    Closed,
    CommitAttempt,
    Denied,
    Done,
    Opened,
    Operation,
    Reclaim,
    Theirs,
    Yours,
)
from worldmove.worker.ledger_client import LinkLedger
from worldmove.worker.messages import LedgerAnswer, LedgerAsk

A1, A2 = "00000001-x", "00000002-x"
OF = {"session": "s", "epoch": 1, "worker": "w", "incarnation": 1}
COMMIT = CommitAttempt(attempt=A1, boundary=3, **OF)  # type: ignore[arg-type]
CLOSE = CloseAttempt(attempt=A1, boundary=3, **OF)  # type: ignore[arg-type]
RECLAIM = Reclaim(acknowledged=3, computed=3, **OF)  # type: ignore[arg-type]
YOURS, THEIRS = Yours(session="s", epoch=2), Theirs(session="s", epoch=2, passed=False)
DENIED, CLOSED = Denied(session="s", reason="shown"), Closed(session="s", attempt=A1)


def asked(operation: Operation, answer: Answer) -> tuple[Answer | None, list[dict[str, Any]]]:
    """Ask, and return what came of it, and what was logged."""
    logged: list[dict[str, Any]] = []

    async def main() -> Answer | None:
        def send(ask: LedgerAsk) -> None:
            asyncio.get_running_loop().call_soon(ledger.take, LedgerAnswer(request=ask.request, answer=answer))

        ledger = LinkLedger(
            worker="w",
            incarnation=1,
            send=send,
            answer_s=5.0,
            log=lambda event, **f: logged.append({"event": event, **f}),
        )
        return await ledger.ask(operation)

    return asyncio.run(main()), logged


@pytest.mark.parametrize(
    ("operation", "answer"),
    [
        *((operation, answer) for operation in (COMMIT, CLOSE) for answer in (YOURS, THEIRS, DENIED, CLOSED)),
        *((RECLAIM, answer) for answer in (YOURS, THEIRS, DENIED)),
    ],
)
def test_an_answer_is_handed_on(operation: Operation, answer: Answer) -> None:
    assert asked(operation, answer) == (answer, [])


@pytest.mark.parametrize(
    ("operation", "answer"),
    [
        (COMMIT, Opened(session="s", attempt=A1)),
        (COMMIT, Done(session="s", epoch=2)),
        (COMMIT, Closed(session="s", attempt=A2)),
        (COMMIT, Yours(session="another", epoch=2)),
        (CLOSE, Opened(session="s", attempt=A1)),
        (CLOSE, Theirs(session="another", epoch=2, passed=True)),
        (RECLAIM, CLOSED),
        (RECLAIM, Done(session="s", epoch=2)),
    ],
)
def test_what_is_no_answer_counts_as_none_and_is_blamed(operation: Operation, answer: Answer) -> None:
    found, logged = asked(operation, answer)
    assert found is None
    (line,) = logged
    assert (line["event"], line["of"], line["asked"]) == ("bad_answer", "server", type(operation).__name__)
    assert type(answer).__name__ in line["answered"]
