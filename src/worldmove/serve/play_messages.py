"""The JSON half of the play wire: see docs/play-wire.md. Typed both ways; what a client sends is bounded."""

from typing import Annotated

import msgspec

from worldmove.errors import MessageError

MAX_CLIENT_BYTES = 64 << 10
MAX_ERROR_CHARS = 200
"""Of what a message was not understood for: it may name what the client sent."""

Number = Annotated[int, msgspec.Meta(ge=0, lt=1 << 53)]
"""What JavaScript counts exactly."""
KeyName = Annotated[str, msgspec.Meta(min_length=1, max_length=64)]


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


class ToClient(msgspec.Struct, frozen=True, kw_only=True, tag_field="type"):
    """The root of what the gateway says."""


class EngineInfo(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    preset: str
    width: int
    height: int
    frames_per_block: int
    frames_per_s: float
    keys: tuple[str, ...]
    memory_blocks: int | None
    weights_sha256: str


class OwnerInfo(msgspec.Struct, frozen=True, kw_only=True):
    worker: str
    pid: int | None
    epoch: int


class Hello(ToClient, frozen=True, kw_only=True, tag="hello"):
    session: str
    engine: EngineInfo
    next_number: int
    next_block: int
    server_life: int
    owner: OwnerInfo | None
    num_parts: int | None
    num_bytes: int | None
    controls: bool


class OwnerNow(ToClient, frozen=True, kw_only=True, tag="owner"):
    worker: str
    pid: int | None
    epoch: int


class WorkerInfo(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    pid: int
    state: str
    sessions: int
    slots_free: int
    slots: int
    owner: bool


class Workers(ToClient, frozen=True, kw_only=True, tag="workers"):
    workers: tuple[WorkerInfo, ...]


class MovePhase(ToClient, frozen=True, kw_only=True, tag="move"):
    event: str = "phase"
    attempt: str
    phase: str
    to: str


class PhaseInfo(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    ms: float


class MoveResult(ToClient, frozen=True, kw_only=True, tag="move"):
    event: str = "result"
    attempt: str
    outcome: str
    reason: str
    sentence: str
    phases: tuple[PhaseInfo, ...]
    pause_ms: float | None
    gap_ms: float | None
    missed_frames: int | None
    num_bytes: int | None
    num_parts: int | None
    source: str = msgspec.field(name="from")
    to: str
    epoch: int
    state_digest: str
    proof: str
    tries: int


class Digests(msgspec.Struct, frozen=True, kw_only=True):
    """Of one block: the state after it, and its frames (hex)."""

    state_digest: str
    frames: tuple[str, ...]


class Check(ToClient, frozen=True, kw_only=True, tag="check"):
    block: int
    attempt: str
    owner: Digests
    retired: Digests
    equal: bool


class Counts(ToClient, frozen=True, kw_only=True, tag="counts"):
    moved: int
    refused: int
    aborted: int
    lost: int
    blocks_late: int


class KeysTaken(ToClient, frozen=True, kw_only=True, tag="keys"):
    number: int


class Resting(ToClient, frozen=True, kw_only=True, tag="rest"):
    resting: bool
    why: str


class Recover(ToClient, frozen=True, kw_only=True, tag="recover"):
    name: str
    state: str
    seconds: float


class Lost(ToClient, frozen=True, kw_only=True, tag="lost"):
    sentence: str


class Error(ToClient, frozen=True, kw_only=True, tag="error"):
    code: str
    message: str


class TakenOver(ToClient, frozen=True, kw_only=True, tag="taken_over"):
    """Another connection has the controls."""


class Pong(ToClient, frozen=True, kw_only=True, tag="pong"):
    t: float
    server_ms: float


_ENCODER = msgspec.json.Encoder()


def encode(message: ToClient) -> str:
    """Return one text message."""
    return _ENCODER.encode(message).decode()
