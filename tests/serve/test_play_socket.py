"""One WebSocket of the play wire, whose client may be gone at any moment."""

from typing import Any

import pytest
from starlette.websockets import WebSocketDisconnect

from tests.move import virtual
from worldmove.errors import UserError
from worldmove.serve.limits import PlayLimits
from worldmove.serve.play_socket import play


class GoneSocket:
    """A framework's, of a client that has left: whatever is sent to it fails."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    async def accept(self) -> None: ...

    async def close(self, code: int, reason: str) -> None:
        raise self._error


class EmptyDesk:
    """There is no session."""

    limits = PlayLimits()

    def join(self, session: str, *_: Any, **__: Any) -> None:
        raise UserError(f"There is no session {session}.", code="unknown_session", status=404)


@pytest.mark.parametrize("error", [RuntimeError("sent after its close"), WebSocketDisconnect(1006), OSError("gone")])
def test_who_asks_for_no_session_and_is_gone_before_the_answer_is_no_failure_of_the_server(error: Exception) -> None:
    socket: Any = GoneSocket(error)
    desk: Any = EmptyDesk()
    virtual.run(play(socket, desk, "s-9", controls=True, on_closed=lambda code: None))
