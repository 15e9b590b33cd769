"""What a command says of a server that does not answer: none is there, or one takes its time."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import pytest

from worldmove.cli import client as client_file
from worldmove.cli.client import MOVE_TIMEOUT_S, Ask, Client
from worldmove.cli.no_answer import Unanswered, Unreachable


@contextmanager
def silent_server() -> Iterator[str]:
    """Give the address of something that takes connections, reads, and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        taken: list[socket.socket] = []

        def take() -> None:
            while True:
                try:
                    taken.append(listening.accept()[0])
                except OSError:
                    return

        thread = threading.Thread(target=take, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        listening.shutdown(socket.SHUT_RDWR)
        thread.join()
        for each in taken:
            each.close()


@pytest.mark.parametrize("verb", ["get", "post", "delete"])
def test_a_server_that_was_reached_and_has_not_answered_may_still_be_at_it(
    verb: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_file, "TIMEOUT_S", 0.2)
    with silent_server() as url:
        client = Client(url)
        asks: dict[str, Callable[[str], object]] = {
            "get": client.get,
            "post": partial(client.post, body={}),
            "delete": client.delete,
        }
        with pytest.raises(Unanswered, match="may still be at it") as said:
            asks[verb]("sessions")
    assert said.value.code == "unanswered"


def test_where_no_server_is_there_that_is_said() -> None:
    with silent_server() as url:
        pass
    with pytest.raises(Unreachable):
        Client(url).get("sessions")


def test_a_move_is_waited_for_as_long_as_it_may_prepare(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float | None] = []

    def opened(self: Client, ask: Ask) -> object:
        waits.append(ask.timeout_s)
        raise Unreachable("http://x", "none")

    monkeypatch.setattr(Client, "_open", opened)
    for path in (("sessions", "s-1", "move"), ("sessions", "s-1", "cancel")):
        with pytest.raises(Unreachable):
            Client("http://x").post(*path, body={})
    assert waits == [MOVE_TIMEOUT_S, client_file.TIMEOUT_S]
