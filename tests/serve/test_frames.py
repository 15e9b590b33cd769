"""The frame header, byte by byte."""

from dataclasses import replace

import pytest

from worldmove.errors import MessageError
from worldmove.serve.frames import HEADER_BYTES, FrameHeader, Kind, action_index, pack, unpack

HEADER = FrameHeader(
    kind=Kind.RECOVERED,
    action=2,
    index=1,
    width=3,
    height=2,
    show_after_ms=70_000,
    epoch=5,
    block=2**40,
    frame=2**41 + 1,
    number=99,
    pose=(-4, 7),
    server_life=2**50,
    sha256=bytes(range(32)),
    receipt=bytes(range(40, 48)),
)
PIXELS = bytes(range(18))


def test_a_frame_reads_back_as_it_was_packed() -> None:
    assert unpack(pack(HEADER, PIXELS)) == (HEADER, PIXELS)


def test_every_field_lies_where_the_document_says() -> None:
    message = pack(HEADER, PIXELS)
    assert message[:8] == b"WMPF\x02\x01\x02\x01"
    assert message[8:16] == bytes([3, 0, 2, 0]) + (70_000).to_bytes(4, "little")
    words = [int.from_bytes(message[at : at + 8], "little") for at in (16, 24, 32, 40, 56)]
    assert words == [5, 2**40, 2**41 + 1, 99, 2**50]
    assert [int.from_bytes(message[at : at + 4], "little", signed=True) for at in (48, 52)] == [-4, 7]
    assert message[64:96] == HEADER.sha256
    assert message[96:104] == HEADER.receipt
    assert message[104:] == PIXELS


def test_a_picture_of_another_size_than_its_header_is_not_packed() -> None:
    with pytest.raises(MessageError):
        pack(HEADER, PIXELS[:-1])
    with pytest.raises(MessageError):
        pack(replace(HEADER, sha256=b"short"), PIXELS)
    with pytest.raises(MessageError):
        pack(replace(HEADER, receipt=b"short"), PIXELS)


@pytest.mark.parametrize("damage", [lambda m: m[:-1], lambda m: m[: HEADER_BYTES - 1], lambda m: b"X" + m[1:]])
def test_a_damaged_message_is_refused(damage: object) -> None:
    assert callable(damage)
    with pytest.raises(MessageError):
        unpack(damage(pack(HEADER, PIXELS)))


def test_an_action_that_is_no_key_is_a_stay() -> None:
    assert [action_index(name, ("up", "down")) for name in ("stay", "up", "down")] == [0, 1, 2]
