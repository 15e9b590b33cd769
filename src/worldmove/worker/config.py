"""One worker's configuration, as one value that travels to its process."""

from typing import Annotated

import msgspec

from worldmove.limits import MAX_ARENA_BYTES, MAX_SLOTS, MAX_THREADS

Seconds = Annotated[float, msgspec.Meta(gt=0)]
LARGE_FRAME_BYTES = 1 << 17
"""A frame of so many bytes is worth another thread: it takes 0.1 ms to hash, a thread a tenth of that to wake."""


class WorkerConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All that a worker's process is told. The host fills in ``worker``, ``incarnation`` and ``socket_path``."""

    worker: str = ""
    incarnation: Annotated[int, msgspec.Meta(ge=0)] = 0
    socket_path: str = ""
    engine: str
    """``reference:PRESET``, or ``python:package.module:factory`` for an engine of your own."""
    num_threads: Annotated[int, msgspec.Meta(ge=1, le=MAX_THREADS)] = 1
    """Threads of one block's arithmetic."""
    num_slots: Annotated[int, msgspec.Meta(ge=1, le=MAX_SLOTS)] = 3
    arena_bytes: Annotated[int, msgspec.Meta(ge=0, le=MAX_ARENA_BYTES)] = 0
    """Size of one slot's arena, where that is more than a young session's state needs and a quarter."""
    check_blocks: Annotated[int, msgspec.Meta(ge=0, le=64)] = 2
    """Blocks that a retired copy steps after a move; as many of the new owner's carry a state digest."""
    keep_s: Seconds = 20.0
    """How long sessions are kept while the server's link is gone. Then the process ends."""
    leave_s: Seconds = 30.0
    """How long the server may take to move the next of its sessions away at SIGTERM. Then the process ends."""
    silence_s: Seconds = 10.0
    """How long an open link may bring nothing, not even a beat. Then it is cut and made again."""
    ledger_answer_s: Seconds = 1.0
    """Silence after which a question to the ledger counts as unanswered."""
    num_picture_threads: Annotated[int, msgspec.Meta(ge=0, le=64)] = 0
    """Threads that copy and hash a block's pictures. 0: as many as its cores allow."""
    large_frame_bytes: Annotated[int, msgspec.Meta(ge=0)] = LARGE_FRAME_BYTES
    """Frames of so many bytes are hashed beside the next block, where there are such threads."""
    tcp_host: str = "127.0.0.1"
    """The address of this machine at which other workers reach its arenas over TCP."""
    path_notes: str = ""
    """The file of what a probe of this host's paths has found (``worker.path_notes``). Empty: none."""
    profile: str = ""
    """The folder in which each worker leaves what a bench wants to see of its threads. Empty: nobody looks."""
    log_level: str = "info"
