"""The bodies of the HTTP interface: see docs/http.md and /openapi.json. Times in ms, instants in UTC ISO 8601."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from worldmove.limits import MAX_COUNT, MAX_EVERY, MAX_NAME, MAX_TOLD

SessionName = Annotated[str, Field(min_length=1, max_length=MAX_NAME)]
WorkerName = Annotated[str, Field(min_length=1, max_length=MAX_NAME)]
Every = Annotated[int, Field(ge=0, le=MAX_EVERY)]
"""Blocks between two snapshots."""


class Body(BaseModel):
    """The root of what a client may send: unknown fields are refused, and so is a value of another type."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class OpenSession(Body):
    seed: Annotated[int, Field(ge=0, lt=MAX_COUNT)] | None = None
    worker: WorkerName | None = None
    protect: Every | None = Field(default=None, description="Left out: as the server was told (--protect).")


class ProtectSession(Body):
    every: Every = Field(description="After how many blocks another worker keeps a new snapshot; 0: never.")


class MoveSession(Body):
    to: WorkerName | None = Field(default=None, description="Left out: the other worker with most free slots.")
    damage: bool = Field(default=False, description="Break it: damage the bytes of every try on their way.")
    strategy: Annotated[str, Field(min_length=1, max_length=MAX_NAME)] | None = Field(
        default=None, description="By which strategy. Left out: the one that admission chooses."
    )
    link: Annotated[str, Field(min_length=1, max_length=MAX_NAME)] | None = Field(
        default=None, description="The speed that the path is slowed down to: 1gbit. Left out: as fast as it is."
    )


class Answer(BaseModel):
    """The root of what the server sends."""

    model_config = ConfigDict(frozen=True, populate_by_name=True)


class ErrorFields(Answer):
    code: str
    message: str
    fault: str
    session_runs: bool | None
    retry_after_s: float | None


class ErrorAnswer(Answer):
    error: ErrorFields


class Session(Answer):
    session: str
    state: str
    worker: str
    epoch: int
    seed: int
    next_block: int
    resting: str | None = Field(description="Why the world rests; null while it goes on.")
    stalled_ms: float | None = Field(
        description="For how long its worker, which answers, has owed a block; null: not for long, or none is owed."
    )
    num_watchers: int
    received_block: int | None = Field(description="The newest block that who controls says is there.")
    num_bytes: int | None = Field(description="Of its state, as it was opened or, newer, at its last move.")
    num_parts: int | None = Field(description="Leaves of its state, as its owner has last told them.")
    holders: list[str]
    move_attempt: str | None
    protect: int = Field(description="After how many blocks another worker keeps a new snapshot; 0: never.")
    keeper: str | None = Field(description="Who keeps its newest snapshot; null: nobody.")
    kept_block: int | None = Field(description="The block that this snapshot stands before.")
    kept_age_blocks: int | None = Field(description="How many blocks were shown since; null: none is kept.")
    unprotected_why: str | None = Field(
        description="Why the death of one worker may lose it, as `code: sentence`; null: none does, or `protect` is 0."
    )
    not_renewed_why: str | None = Field(
        description="Why a newer snapshot, which is due, is not kept; null: none is due."
    )


class Sessions(Answer):
    sessions: list[Session]


class Worker(Answer):
    worker: str
    pid: int | None = Field(description="Its process's id; null: it is starting, or gone.")
    incarnation: int
    state: str
    num_sessions: int
    slots: int
    slots_free: int
    slots_quarantined: int
    arena_bytes: int


class Workers(Answer):
    workers: list[Worker]


class Phase(Answer):
    side: str
    name: str
    start_ms: float
    end_ms: float


class Term(Answer):
    name: str
    ms: float = Field(description="Milliseconds.")
    how: str = Field(description="What of, in a few words.")


class StrategyPlan(Answer):
    strategy: str
    admitted: bool
    reason: str = Field(description="Why not; empty where it is admitted.")
    detail: str
    remedy: str = Field(description="The least change that alone would admit it; empty where none would.")
    pause_ms: float | None
    before_ms: float | None = Field(description="How long it would prepare, played on.")
    spread_ms: float = Field(description="By how much one in ten of its last moves took longer than their median.")
    slack_ms: float | None = Field(description="What is left of the horizon; below zero, what is missing.")
    pause: list[Term]
    before: list[Term] = Field(description="Also of a replay that would never catch up: until it would follow.")


class Plan(Answer):
    session: str
    source: str = Field(serialization_alias="from")
    to: str
    transport: str
    num_bytes: int
    horizon_ms: float | None = Field(description="Until the next block is due; null: not known, or nobody waits.")
    waited_for: bool = Field(description="Whether a block is due at all.")
    strategy: str = Field(description="The one that the move would get.")
    admitted: bool
    strategies: list[StrategyPlan]
    measured: dict[str, float | None] = Field(
        description="What it was reckoned with: bytes, seconds, bytes per second; null: not measured, or endless."
    )


class Expectation(Answer):
    strategy: str
    pause_ms: float
    before_ms: float
    terms: dict[str, float] = Field(description="Of the pause, in ms.")


class Move(Answer):
    session: str
    attempt: str
    outcome: str
    reason: str
    detail: str
    sentence: str
    source: str = Field(serialization_alias="from")
    to: str
    epoch: int
    runs_at: str | None = Field(description="Who owns it by the ledger's row; null: nobody that lives.")
    tries: int
    transport: str
    strategy: str
    started_at: str
    took_ms: float
    pause_ms: float | None
    expected: Expectation | None = Field(description="What admission expected; null where it was not asked.")
    gap_ms: float | None
    missed_frames: int | None
    phases: list[Phase]
    num_bytes: int | None
    num_parts: int | None
    num_groups: int | None
    in_place_bytes: int = Field(description="At the destination already when the session was frozen.")
    moved_bytes: int = Field(description="There already, and moved to another place.")
    pulled_bytes: int = Field(description="Pulled while nobody played.")
    followed_bytes: int = Field(description="Of these, computed at the destination, and equal to what was frozen.")
    plain: str = Field(description="Why all of it was pulled, though the strategy knows better; else empty.")
    source_digest: str
    destination_digest: str
    proof: str


class Failover(Answer):
    session: str
    outcome: str = Field(description="replays, while it is under way; then resumed, diverged or ended.")
    sentence: str
    source: str = Field(serialization_alias="gone", description="The worker that was gone, or did not answer.")
    worker: str = Field(description="Whose copy took over.")
    epoch: int
    started_at: str
    took_ms: float | None = Field(description="From when that was known to the first block after it.")
    kept_block: int = Field(description="The block that the copy stood before.")
    next_block: int
    num_replayed: int
    num_compared: int
    differs_at: int | None = Field(description="The first replayed block that is not what was shown.")
    why: str = Field(description="Why it ended before it had shown a block; else empty.")


class Failovers(Answer):
    failovers: list[Failover]


class RefusedMove(Answer):
    error: ErrorFields
    move: Move


class Moves(Answer):
    moves: list[Move]


class Leaf(Answer):
    path: str
    kind: str = Field(description="What it is: tensor float32, int, generator.")
    shape: list[int]
    num_bytes: int = Field(description="That it uses; memory that two leaves share is counted at each.")


class Leaves(Answer):
    session: str
    block: int = Field(description="The next block.")
    num_bytes: int = Field(description="Of all its leaves.")
    num_parts: int = Field(description="Leaves of its state.")
    num_others: int = Field(description="Leaves that are not in `leaves`: each is smaller than any there, or equal.")
    others_bytes: int = Field(description="Of these.")
    leaves: list[Leaf] = Field(description=f"All, or the {MAX_TOLD:,} with most bytes; in the order of the state.")


class Recovered(Answer):
    name: str


class Difference(Answer):
    field: str
    values: dict[str, str | None] = Field(description="By worker; a field of an engine also by the name 'server'.")


class Environment(Answer):
    server: dict[str, str] = Field(description="What this server's engine is: the fields that it must have in common.")
    workers: dict[str, dict[str, str]]
    differences: list[Difference]


class Health(Answer):
    status: str
    ledger: str = Field(description="'ok', or why it cannot be written; no move starts meanwhile.")
    version: str
    server_life: int
    engine: str
    preset: str
    weights_sha256: str
    num_sessions: int
