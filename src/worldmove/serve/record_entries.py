"""What a record holds: its header, and an entry for each block, account of a state, move, and its end. Pure.

A block's entry is written when the block has been shown; accounts and moves follow the blocks that they speak of.
"""

from typing import Annotated

import msgspec

from worldmove.fleet.reports import MoveReport
from worldmove.limits import LEAST_RATE, MAX_COUNT, MAX_FRAMES, MAX_LIST, MAX_TEXT, MAX_THREADS, MOST_RATE

Count = Annotated[int, msgspec.Meta(ge=0, lt=MAX_COUNT)]
Text = Annotated[str, msgspec.Meta(max_length=MAX_TEXT)]
Threads = Annotated[int, msgspec.Meta(ge=1, le=MAX_THREADS)]
Sha256 = Annotated[bytes, msgspec.Meta(min_length=32, max_length=32)]
Change = tuple[Count, Text, bool]
"""Number, key, whether it went down: ``engine.base.KeyChange``."""


class RecordHeader(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the recorded session began, and what it was computed by."""

    worldmove: Text
    """The version that wrote it."""
    engine: Text
    """As a worker's configuration names it: ``reference:island``."""
    num_threads: Threads
    frames_per_block: Annotated[int, msgspec.Meta(ge=1, le=MAX_FRAMES)]
    frames_per_s: Annotated[float, msgspec.Meta(ge=LEAST_RATE, le=MOST_RATE)]
    session: Text
    seed: Count
    first_block: Count
    """0 for a session that began from its seed; else it went on from a saved one."""
    state_digest: Text
    """Of the state before ``first_block``."""
    environment: Annotated[dict[Text, Text], msgspec.Meta(max_length=512)]


class _Entry(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """The root of the entries."""


class BlockEntry(_Entry, frozen=True, tag="block"):
    """One block that was shown: who computed it, in which epoch, from which list, and its frames' digests."""

    block: Count
    epoch: Count
    worker: Text
    changes: Annotated[tuple[Change, ...], msgspec.Meta(max_length=MAX_LIST)]
    frame_sha256: Annotated[tuple[Sha256, ...], msgspec.Meta(max_length=MAX_FRAMES)]


class LeavesEntry(_Entry, frozen=True, tag="leaves"):
    """The paths of the leaves, for the states that follow. Written where they have changed."""

    paths: tuple[str, ...]


class StateEntry(_Entry, frozen=True, tag="state"):
    """The state after ``block``, which is the block before this entry."""

    block: Count
    state_digest: Text
    leaf_digests: bytes
    """8 bytes for each path of the last LeavesEntry."""


class MoveEntry(_Entry, frozen=True, tag="move"):
    """A move that has ended. ``block``: the next to be shown when it was told."""

    block: Count
    report: MoveReport


class EndEntry(_Entry, frozen=True, tag="end"):
    """The last entry: why the record ends, and what stands before it."""

    why: Text
    num_blocks: Count
    num_moves: Count


Entry = BlockEntry | LeavesEntry | StateEntry | MoveEntry | EndEntry
