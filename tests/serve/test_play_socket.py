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


class HearingSocket(GoneSocket):
    """A framework's, that keeps the reason with which it was closed."""

    def __init__(self) -> None:
        super().__init__(OSError("nobody asks"))
        self.reason = ""

    async def close(self, code: int, reason: str) -> None:
        self.reason = reason


@pytest.mark.parametrize("name", ["s-9", "x" * 400, "€" * 40, "\N{VIDEO GAME}" * 120, "\ud800" * 50, "ab€" * 40])
def test_why_a_connection_is_closed_fits_a_closes_frame_whatever_it_names(name: str) -> None:
    socket: Any = HearingSocket()
    desk: Any = EmptyDesk()
    virtual.run(play(socket, desk, name, controls=True, on_closed=lambda code: None))
    reason = socket.reason.encode()
    assert len(reason) <= 125 - 2
    assert socket.reason.startswith("There is no session ")
    whole = f"There is no session {name}.".encode("utf-8", "backslashreplace")
    assert whole.startswith(reason)
    assert reason == whole or len(reason) >= 125 - 2 - 3  # a character has four bytes at most


class SayingSocket(HearingSocket):
    """A framework's, whose client says one thing."""

    scope: dict[str, Any] = {}  # noqa: RUF012  (nobody writes it)

    async def receive(self) -> dict[str, Any]:
        return {"type": "websocket.receive", "text": "{}"}


class FaultyDesk(EmptyDesk):
    """It has a fault of ours."""

    def __init__(self) -> None:
        self.left = 0

    def join(self, session: str, *_: Any, **__: Any) -> None: ...

    def hear(self, *_: Any) -> None:
        raise ZeroDivisionError("a fault")

    def leave(self, *_: Any) -> None:
        self.left += 1


def test_a_fault_in_what_a_player_says_is_heard_of_ends_its_connection_and_is_not_silent() -> None:
    """It was: nobody heard that player any more, and nobody was told."""
    socket: Any = SayingSocket()
    desk: Any = FaultyDesk()
    with pytest.raises(ZeroDivisionError):
        virtual.run(play(socket, desk, "s-1", controls=True, on_closed=lambda code: None))
    assert socket.reason
    assert desk.left == 1
