"""Every message between a worker and its server, damaged as it travels: whatever is read is what was sent, or nothing.

A damaged message may well decode, to another one: another key for a block, another owner for a session. So each
frame says what it must be, and one that is not ends the link; both ends then make a new one, and ask again.
"""

import asyncio
import random
from collections.abc import Iterator
from types import UnionType
from typing import Any, Union, get_args, get_origin

import msgspec
import pytest

from worldmove.errors import MessageError
from worldmove.move import ledger_messages, messages
from worldmove.worker import messages as worker_messages
from worldmove.worker.link import Link, frame
from worldmove.worker.message import OfSession, SnapshotFacts
from worldmove.worker.messages import ToServer, ToWorker

ENCODER = msgspec.msgpack.Encoder()
UNIONS = (Union, UnionType)


def sample(annotation: Any) -> Any:
    """A value of a field's type, none of whose parts is empty."""
    if get_origin(annotation) in UNIONS:
        return sample(next(each for each in get_args(annotation) if each is not type(None)))
    if hasattr(annotation, "__metadata__"):
        return _within(sample(annotation.__origin__), annotation.__metadata__)
    if isinstance(annotation, type) and issubclass(annotation, msgspec.Struct):
        return filled(annotation)
    if get_origin(annotation) is tuple:
        inner = [each for each in get_args(annotation) if each is not Ellipsis]
        return tuple(sample(each) for each in inner)
    if get_origin(annotation) is dict:
        return {"name": sample(get_args(annotation)[1])}
    return {int: 5, float: 1.5, str: "word", bytes: b"bytes", bool: True}[annotation]


def _within(value: Any, limits: tuple[Any, ...]) -> Any:
    for limit in limits:
        if getattr(limit, "pattern", None):
            value = {"^(s": "source", "^(c": "committed"}.get(limit.pattern[:3], "00000001-x")
        if getattr(limit, "min_length", None) and len(value) < limit.min_length:
            value = bytes(range(limit.min_length))
        if getattr(limit, "max_length", None) and len(value) > limit.max_length:
            value = value[: limit.max_length]
    return value


def filled(kind: type[msgspec.Struct]) -> Any:
    return kind(**{field.name: sample(field.type) for field in msgspec.structs.fields(kind)})


def every(union: Any) -> Iterator[Any]:
    """One message of each kind; of those that carry one of several things, one for each."""
    for kind in get_args(union):
        fields = {field.name: field.type for field in msgspec.structs.fields(kind)}
        several = [name for name, kinds in fields.items() if _structs(kinds)]
        if not several:
            yield filled(kind)
        for name in several:
            for inner in _structs(fields[name]):
                yield msgspec.structs.replace(filled(kind), **{name: filled(inner)})


def _structs(annotation: Any) -> list[type]:
    inner = [each for each in get_args(annotation) if isinstance(each, type) and issubclass(each, msgspec.Struct)]
    return inner if get_origin(annotation) in UNIONS else []


DIRECTIONS = {"to the server": ToServer, "to a worker": ToWorker}
SENT = [(name, union, message) for name, union in DIRECTIONS.items() for message in every(union)]


def taken(data: bytes, union: Any) -> list[Any]:
    """What an end reads before the link ends, or nothing more comes."""

    async def main() -> list[Any]:
        reader = asyncio.StreamReader()
        reader.feed_data(data)
        reader.feed_eof()
        link: Link[Any, Any] = Link(reader, None, msgspec.msgpack.Decoder(union))  # type: ignore[arg-type]
        read: list[Any] = []
        try:
            await link.take_all(read.append)
        except MessageError:
            return read
        return read

    loop = asyncio.new_event_loop()
    try:
        return loop.run_until_complete(main())
    finally:
        loop.close()


def damaged(rng: random.Random, data: bytes) -> dict[str, bytes]:
    """The frame, damaged in each way."""
    flipped, several, zeros = bytearray(data), bytearray(data), bytearray(data)
    flipped[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    for _ in range(4):
        several[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    at = rng.randrange(len(data))
    zeros[at : at + 9] = bytes(len(zeros[at : at + 9]))
    i, j = sorted(rng.sample(range(len(data)), 2))
    return {
        "a bit flipped": bytes(flipped),
        "some bits flipped": bytes(several),
        "zeros": bytes(zeros),
        "cut short": data[: rng.randrange(len(data))],
        "a part missing": data[:i] + data[j:],
        "a part twice": data[:j] + data[i:],
        "parts swapped": data[:i] + data[j:] + data[i:j],
    }


@pytest.mark.parametrize(("direction", "union", "message"), SENT, ids=lambda each: type(each).__name__)
def test_a_message_that_is_damaged_on_its_way_is_never_read_as_another(
    direction: str, union: Any, message: Any
) -> None:
    before, rng = frame(ENCODER.encode(message)), random.Random(f"{direction} {message}")
    assert taken(before * 2, union) == [message, message]
    for _ in range(6):
        for data in damaged(rng, before).values():
            assert taken(before + data + before, union) in ([message], [message, message], [message] * 3)
            if data != before:
                assert taken(before + data, union) == [message] or data.startswith(before)


def test_a_flipped_bit_alone_would_often_be_read_as_another_message() -> None:
    """Why a frame says what it must be: without that, the decoder lets most of these pass."""
    message = worker_messages.Inputs(session="s-1", block=7, changes=(filled(worker_messages.Change),))
    body, passed = ENCODER.encode(message), 0
    for at in range(len(body) * 8):
        changed = bytearray(body)
        changed[at // 8] ^= 1 << at % 8
        try:
            passed += msgspec.msgpack.decode(bytes(changed), type=ToWorker) != message
        except msgspec.DecodeError:
            continue
    assert passed > 10


def subclasses(root: type) -> set[type]:
    found: set[type] = set(root.__subclasses__())
    return found.union(*(subclasses(kind) for kind in found))


def test_every_kind_of_message_and_every_field_of_it_is_among_them() -> None:
    sent = [message for _, _, message in SENT]
    kinds = {type(message) for message in sent}
    kinds |= {type(getattr(message, "operation", None)) for message in sent}
    kinds |= {type(getattr(message, "answer", None)) for message in sent}
    inside = {worker_messages.Change, worker_messages.Note, worker_messages.Copy, worker_messages.InTime, SnapshotFacts}
    known = {
        *subclasses(messages.MoveMessage),
        *subclasses(worker_messages.Message),
        *subclasses(ledger_messages._Tagged),
    }
    roots = {OfSession}
    assert known - inside - roots <= kinds
    assert len(known) > 40
    for message in sent:
        for name in message.__struct_fields__:
            assert getattr(message, name) not in ("", b"", (), {}, None), f"{type(message).__name__}.{name} is empty"
