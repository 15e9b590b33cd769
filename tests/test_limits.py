"""What one part of the project lets pass, every other takes; and what one refuses, none takes."""

from dataclasses import replace
from typing import Any, get_args, get_type_hints

import msgspec
import numpy as np
import pytest
import typer

from tests.worker.counting import CountingEngine
from worldmove.cli import options
from worldmove.engine.base import Block
from worldmove.engine.spec_checks import fault_of
from worldmove.limits import (
    LEAST_RATE,
    MAX_BLOB_BYTES,
    MAX_EVERY,
    MAX_FRAMES,
    MAX_KEYS,
    MAX_LIST,
    MAX_NAME,
    MAX_SIDE_PX,
    MAX_SLOTS,
    MAX_THREADS,
    MAX_WAIT_S,
    MOST_RATE,
)
from worldmove.move.controller_messages import Offer
from worldmove.serve.client_messages import KeyName
from worldmove.serve.http_models import Every
from worldmove.serve.record_entries import BlockEntry, RecordHeader
from worldmove.serve.sequencer import Sequencer
from worldmove.state.saved import SavedHeader
from worldmove.worker.block_made import frames_of
from worldmove.worker.config import WorkerConfig
from worldmove.worker.message import Change, Changes, FrameDigests, Note, Notes

SPEC = replace(CountingEngine().spec, height=1, width=1)


def hint(kind: type, field: str) -> Any:
    return get_type_hints(kind, include_extras=True)[field]


def names(number: int) -> tuple[str, ...]:
    return tuple(map(str, range(number)))


CHANGE = Change(number=1, key="up", down=True)
NOTE = Note(y=0, x=0, action="up", number=0)
OF_A_SPEC: list[tuple[str, Any, Any, list[Any]]] = [
    (
        "num_threads",
        MAX_THREADS,
        MAX_THREADS + 1,
        [hint(WorkerConfig, "num_threads"), hint(RecordHeader, "num_threads"), hint(SavedHeader, "num_threads")],
    ),
    ("frames_per_block", MAX_FRAMES, MAX_FRAMES + 1, [hint(RecordHeader, "frames_per_block")]),
    ("frames_per_s", MOST_RATE, MOST_RATE * 1.01, [hint(RecordHeader, "frames_per_s")]),
    ("frames_per_s", LEAST_RATE, LEAST_RATE * 0.99, [hint(RecordHeader, "frames_per_s")]),
    ("keys", names(MAX_KEYS), names(MAX_KEYS + 1), [hint(SavedHeader, "down")]),
]
BESIDE_IT: list[tuple[str, Any, Any, list[Any]]] = [
    ("a key's name", "x" * MAX_NAME, "x" * (MAX_NAME + 1), [KeyName, hint(Change, "key"), hint(Note, "action")]),
    ("a list", [CHANGE] * MAX_LIST, [CHANGE] * (MAX_LIST + 1), [Changes]),
    (
        "a recorded list",
        [(1, "up", True)] * MAX_LIST,
        [(1, "up", True)] * (MAX_LIST + 1),
        [hint(BlockEntry, "changes")],
    ),
    ("a block's notes", [NOTE] * MAX_FRAMES, [NOTE] * (MAX_FRAMES + 1), [Notes]),
    (
        "a block's digests",
        [bytes(32)] * MAX_FRAMES,
        [bytes(32)] * (MAX_FRAMES + 1),
        [FrameDigests, hint(BlockEntry, "frame_sha256")],
    ),
    ("blocks between snapshots", MAX_EVERY, MAX_EVERY + 1, []),
    ("a move's patience", MAX_WAIT_S, MAX_WAIT_S + 1, [hint(Offer, "patience_s")]),
    ("a worker's slots", MAX_SLOTS, MAX_SLOTS + 1, [hint(WorkerConfig, "num_slots")]),
]


@pytest.mark.parametrize(("what", "most", "beyond", "takers"), [*OF_A_SPEC, *BESIDE_IT])
def test_whoever_sends_shows_or_records_a_quantity_has_the_same_bound(
    what: str, most: Any, beyond: Any, takers: list[Any]
) -> None:
    for taker in takers:
        msgspec.convert(most, taker)
        with pytest.raises(msgspec.ValidationError):
            msgspec.convert(beyond, taker)


@pytest.mark.parametrize(("field", "most", "beyond", "takers"), OF_A_SPEC)
def test_the_check_of_a_spec_has_it_too(field: str, most: Any, beyond: Any, takers: list[Any]) -> None:
    assert fault_of(replace(SPEC, **{field: most})) is None
    assert field in (fault_of(replace(SPEC, **{field: beyond})) or "")


@pytest.mark.parametrize(
    ("option", "most"),
    [
        (options.Threads, MAX_THREADS),
        (options.Slots, MAX_SLOTS),
        (options.Protect, MAX_EVERY),
        (options.Patience, MAX_WAIT_S),
    ],
)
def test_an_option_of_the_command_line_has_it_too(option: Any, most: int) -> None:
    (told,) = [each for each in option.__metadata__ if isinstance(each, typer.models.OptionInfo)]
    assert told.max == most


def test_blocks_between_snapshots_are_bounded_alike_over_http() -> None:
    assert [each.le for each in get_args(Every)[1].metadata if hasattr(each, "le")] == [MAX_EVERY]


@pytest.mark.parametrize(
    ("height", "width", "frames", "is_served"),
    [
        (4096, 4096, 1, False),
        (2048, 2730, 1, True),
        (1024, 1024, 6, False),
        (1024, 1024, 5, True),
        (MAX_SIDE_PX, 85, 1, True),
        (MAX_SIDE_PX, 86, 1, False),
    ],
)
def test_pictures_that_no_message_holds_are_refused_with_the_spec_and_all_others_can_be_shown(
    height: int, width: int, frames: int, is_served: bool
) -> None:
    spec = replace(SPEC, height=height, width=width, frames_per_block=frames)
    fault = fault_of(spec)
    assert (fault is None) == is_served == (frames * height * width * 3 <= MAX_BLOB_BYTES)
    if is_served:
        made = np.zeros((frames, height, width, 3), dtype=np.uint8)
        assert frames_of(Block(index=0, frames=made, notes=()), spec).shape == made.shape
    else:
        assert f"more than {MAX_BLOB_BYTES:,}" in str(fault)


def test_every_list_that_is_closed_after_a_restart_can_be_sent_and_recorded() -> None:
    sequencer = Sequencer()
    sequencer.begin_again(3, names(MAX_KEYS), life=10)
    sequencer.resume(0, {})
    lists = [sequencer.close() for _ in range(1 + MAX_KEYS // MAX_LIST)]
    assert sum(map(len, lists)) == MAX_KEYS
    for closed in lists:
        sent = [Change(number=change.number, key=change.key, down=change.down) for change in closed]
        msgspec.convert(sent, Changes)
        msgspec.convert([(change.number, change.key, change.down) for change in closed], hint(BlockEntry, "changes"))
