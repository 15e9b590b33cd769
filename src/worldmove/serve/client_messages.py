"""What a client may say on the play wire, as JSON: see docs/play-wire.md. Typed, and every part of it bounded."""

from typing import Annotated

import msgspec

from worldmove.errors import MessageError
from worldmove.limits import MAX_NAME

MAX_CLIENT_BYTES = 64 << 10
MAX_ERROR_CHARS = 200
"""Of what a message was not understood for: it may name what the client sent."""

Number = Annotated[int, msgspec.Meta(ge=0, lt=1 << 53)]
"""What JavaScript counts exactly."""
KeyName = Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_NAME)]


class FromClient(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="type"):
    """The root of what a client may say."""


class Keys(FromClient, frozen=True, kw_only=True, tag="keys"):
    """Key changes: (number, key, down)."""

    changes: Annotated[tuple[tuple[Number, KeyName, bool], ...], msgspec.Meta(max_length=64)]


class Received(FromClient, frozen=True, kw_only=True, tag="received"):
    """Every frame of this block is at the client."""

    block: Number
    server_life: Number


class Keep(FromClient, frozen=True, kw_only=True, tag="keep"):
    """Go on although no key is down, or stop doing so."""

    keep: bool


class Ping(FromClient, frozen=True, kw_only=True, tag="ping"):
    t: float


AnyFromClient = Keys | Received | Keep | Ping

_DECODER = msgspec.json.Decoder(AnyFromClient)


def decode(text: str) -> AnyFromClient:
    """Read one message of a client's. Raises MessageError."""
    try:
        data = text.encode()
        if len(data) > MAX_CLIENT_BYTES:
            raise MessageError(f"a message has at most {MAX_CLIENT_BYTES:,} bytes")
        return _DECODER.decode(data)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise MessageError(f"not a message of this wire: {error}"[:MAX_ERROR_CHARS]) from error
