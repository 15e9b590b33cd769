"""What answers on a port, at its end."""

import asyncio
import logging
from typing import Any

import httpx
import pytest
from starlette.types import Receive, Scope, Send

from worldmove.serve import listen
from worldmove.serve.listen import answering, bound, url_of


def test_who_waits_when_the_server_ends_is_told_so_and_nothing_is_logged_as_a_failure(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(listen, "GRACE_S", 0.1)
    asked = asyncio.Event()

    async def never(scope: Scope, receive: Receive, send: Send) -> None:
        asked.set()
        await asyncio.get_running_loop().create_future()

    async def farewell() -> None:
        """Nobody plays."""

    async def work() -> httpx.Response:
        with bound("127.0.0.1", 0) as listening:
            async with httpx.AsyncClient(base_url=url_of(listening), trust_env=False, timeout=10) as http:
                async with answering(never, listening, farewell=farewell):
                    asking = asyncio.create_task(http.post("/api/sessions/s-1/move"))
                    await asked.wait()
                return await asking

    with caplog.at_level(logging.ERROR):
        answer = asyncio.run(work())
    said: dict[str, Any] = answer.json()["error"]
    assert (answer.status_code, said["code"], said["session_runs"]) == (503, "server_ends", None)
    assert not [record for record in caplog.records if record.exc_info]
