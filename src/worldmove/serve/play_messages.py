"""What the gateway says on the play wire, as JSON: see docs/play-wire.md."""

import msgspec


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


class OwnerNow(ToClient, OwnerInfo, frozen=True, kw_only=True, tag="owner"):
    """Who plays the world from now on."""


class WorkerInfo(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    pid: int | None
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


class Expected(msgspec.Struct, frozen=True, kw_only=True):
    """What admission expected of a move."""

    strategy: str
    pause_ms: float
    terms: tuple[PhaseInfo, ...]


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
    expected: Expected | None = None
    """None where admission was not asked, or did not know."""


class Digests(msgspec.Struct, frozen=True, kw_only=True):
    """Of one block: the state after it, and its frames (hex)."""

    state_digest: str
    frames: tuple[str, ...]


class Check(ToClient, frozen=True, kw_only=True, tag="check"):
    block: int
    attempt: str
    owner: Digests
    retired: Digests
    equal: bool | None
    """None: the frames are, and one side could give no digest of its state."""


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


class FailedOver(ToClient, frozen=True, kw_only=True, tag="failover"):
    """The world's worker was gone, and a copy elsewhere took over: said when it does, and when that has ended."""

    outcome: str
    sentence: str
    gone: str
    worker: str
    epoch: int
    block: int
    """The first that the copy shows."""
    replayed: int
    compared: int
    ms: float | None
    """From when the worker was known to be gone to the first block after it; null before that."""


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
