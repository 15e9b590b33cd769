"""What a source tells of leaves that are final: only what a message can say."""

import asyncio
from types import SimpleNamespace
from typing import Any

import msgspec

from tests.move.virtual import run
from worldmove.limits import MAX_TEXT
from worldmove.move.message import MAX_PATHS
from worldmove.move.messages import AnyMoveMessage, Final
from worldmove.move.streaming import tell_finals

HEAD: dict[str, Any] = {"to": "B", "sender": "A", "incarnation": 1, "session": "s", "attempt": "00000001-x", "epoch": 1}


class Word(str):
    """A kind of text that no encoder knows."""


def told(*finals: Any) -> list[str]:
    """What the other end hears of what an engine has called final."""
    sent: list[bytes] = []

    def send(_to: str, kind: type[Final], **fields: Any) -> None:
        sent.append(msgspec.msgpack.encode(kind(**HEAD, **fields)))

    async def main() -> None:
        copy: Any = SimpleNamespace(finals=lambda: finals, hush=lambda: None)
        attempt: Any = SimpleNamespace(peer="B", send=send)
        telling = asyncio.create_task(tell_finals(attempt, copy))
        await asyncio.sleep(0)
        telling.cancel()
        await asyncio.gather(telling, return_exceptions=True)

    run(main())
    heard: list[Any] = [msgspec.msgpack.decode(body, type=AnyMoveMessage) for body in sent]
    return [path for message in heard for path in message.paths]


def test_what_an_engine_calls_final_and_no_message_can_say_is_not_told_and_ends_nothing() -> None:
    odd = (None, 5, ("caches", 0), b"caches", Word("caches"), "\ud800", "x" * (MAX_TEXT + 1))
    assert told(*odd, "caches[0]") == ["caches[0]"]
    assert told(*odd) == []


def test_more_than_a_message_holds_is_left_to_the_boundary() -> None:
    assert len(told(*(f"caches[{number}]" for number in range(MAX_PATHS + 5)))) == MAX_PATHS
