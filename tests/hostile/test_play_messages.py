"""What a page may say: any text is a message of the play wire or one clear error, and costs little memory."""

import json
import tracemalloc

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.hostile.shapes import EDGES, junk, plain
from worldmove.errors import MessageError
from worldmove.serve.client_messages import MAX_CLIENT_BYTES, MAX_ERROR_CHARS, AnyFromClient, FromClient, decode
from worldmove.serve.play_messages import Pong, encode


def read(text: str) -> FromClient | None:
    """What the gateway makes of a text: a message, or None for the one error, which is short."""
    try:
        return decode(text)
    except MessageError as error:
        said = str(error)
    assert 0 < len(said) <= MAX_ERROR_CHARS
    return None


@settings(max_examples=60)
@given(message=plain(AnyFromClient) | junk())
def test_what_is_almost_a_message_is_one_or_one_error(message: object) -> None:
    text = json.dumps(message, default=str)
    found = read(text)
    assert found is None or read(msgspec.json.encode(found).decode()) == found


@settings(max_examples=60)
@given(text=st.text(max_size=200))
def test_noise_is_one_error(text: str) -> None:
    assert read(text) is None


@pytest.mark.parametrize("number", [*EDGES, 0.5, "1", None, True, 1e300], ids=str)
@pytest.mark.parametrize("field", ["number", "block", "server_life", "t"])
def test_numbers_out_of_range_are_one_error_and_in_range_are_kept(field: str, number: object) -> None:
    message = {
        "number": {"type": "keys", "changes": [[number, "up", True]]},
        "block": {"type": "received", "block": number, "server_life": 1},
        "server_life": {"type": "received", "block": 1, "server_life": number},
        "t": {"type": "ping", "t": number},
    }[field]
    counts = isinstance(number, int) and not isinstance(number, bool)
    found = read(json.dumps(message))
    if field == "t":
        assert (found is not None) == (counts or isinstance(number, float))
    else:
        assert (found is not None) == (counts and 0 <= int(str(number)) < 1 << 53)


@pytest.mark.parametrize(
    "text",
    [
        "[" * 60_000,
        '{"type":"ping","t":' + "[" * 30_000 + "]" * 30_000 + "}",
        '{"a":' * 12_000,
        '{"type":"keys","changes":[' + '[1,"up",true],' * 4_000 + '[1,"up",true]]}',
        '{"type":"ping","t":1,"' + "x" * 60_000 + '":1}',
        '{"type":"' + "x" * 60_000 + '"}',
        '{"type":"ping","t":' + "9" * 60_000 + "}",
        "\u00e9" * 40_000,
    ],
    ids=["open brackets", "depth", "open objects", "too many", "a long name", "a long type", "a long number", "bytes"],
)
def test_the_largest_texts_are_one_short_error_and_take_little_memory(text: str) -> None:
    tracemalloc.start()
    try:
        assert read(text) is None
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 12 * MAX_CLIENT_BYTES


def test_a_time_that_no_number_holds_is_answered() -> None:
    """JavaScript has no such number, and whoever sends one gets a message back all the same."""
    assert json.loads(encode(Pong(t=float("inf"), server_ms=1.0)))["t"] is None
