"""Everything that can be struck: each way at each place, so that nothing is left out."""

from collections.abc import Callable, Iterator, Mapping
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

import msgspec

from tests.attacks.case import Case, Where
from tests.attacks.mutate import Mutator, more_mutators_of, mutators_of
from tests.attacks.payload import WAYS
from tests.attacks.strikes import (
    ABA,
    AHEAD_KINDS,
    DIGESTS,
    ENGINE,
    FOLLOW_KINDS,
    INSTALLED,
    KINDS,
    LATE,
    QUESTIONS,
    STREAM_KINDS,
    WHOLE,
)
from worldmove.move.messages import MoveMessage

NUM_EXTENTS = 5
"""A pond's, once its late leaf is there."""
ASKED = ("OpenAttempt", "CommitAttempt", "CloseAttempt", "Reclaim")
"""The questions that a move asks."""
ADDRESS = MoveMessage.__struct_fields__
"""Of every message the same, and read by the same filter: struck once in each, wherever it is said first."""
STRUCK_BEFORE = {Where.AHEAD: ("Boundary",), Where.FOLLOW: ("Base", "Fetched")}
"""Messages whose address is struck in another kind of move."""
ENGINE_LEAVES = ("window", "base", "trail", "late")

_SAMPLES: dict[str, object] = {
    "int": 1, "float": 1.0, "str": "x", "bytes": b"xy", "tuple": (1, 2), "dict": {"a": "b"}, "bool": True
}  # fmt: skip


def sites() -> list[Case]:
    """Return one case for each site, with seed 0."""
    return [
        *_fields(Where.FIELD, KINDS, mutators_of),
        *_fields(Where.AHEAD, AHEAD_KINDS, more_mutators_of),
        *_fields(Where.STREAM, STREAM_KINDS, more_mutators_of),
        *_fields(Where.FOLLOW, FOLLOW_KINDS, more_mutators_of),
        *_wholes(Where.AHEAD, AHEAD_KINDS),
        *_wholes(Where.STREAM, STREAM_KINDS),
        *_wholes(Where.FOLLOW, FOLLOW_KINDS),
        *_wholes(Where.MESSAGE, KINDS),
        *(Case(where=Where.PATH, target=f"extent {n}", how=how) for n in range(NUM_EXTENTS) for how in WAYS),
        *(Case(where=Where.LANDED, target=f"extent {n}", how=how) for n in range(NUM_EXTENTS) for how in WAYS),
        *(Case(where=Where.WINDOW, target=f"extent {n}", how=how) for n in range(NUM_EXTENTS) for how in LATE),
        *(Case(where=Where.INSTALLED, target=target, how="changed") for target in INSTALLED),
        *(Case(where=Where.ENGINE, target=leaf, how=how) for leaf in ENGINE_LEAVES for how in (*ENGINE, ABA)),
        *(Case(where=Where.DIGEST, target=f"group {n}", how=how) for n in range(NUM_EXTENTS) for how in DIGESTS),
        *_questions(),
    ]


def _fields(where: Where, kinds: Mapping[str, type], ways: Callable[[Any], Mapping[str, Mutator]]) -> Iterator[Case]:
    for kind, struct in kinds.items():
        for field in msgspec.structs.fields(struct):
            if field.name in ADDRESS and kind in STRUCK_BEFORE.get(where, ()):
                continue
            samples = [_sample(field.type)]
            if samples == [None] and where is not Where.FIELD:
                samples += [_SAMPLES["bytes" if field.name == "changed" else "int"]]
            for how in dict.fromkeys(how for sample in samples for how in ways(sample)):
                yield Case(where=where, target=f"{kind}.{field.name}", how=how)


def _wholes(where: Where, kinds: Mapping[str, type]) -> Iterator[Case]:
    return (Case(where=where, target=kind, how=how) for kind in kinds for how in WHOLE)


def _questions() -> Iterator[Case]:
    for kind in ASKED:
        for field in msgspec.structs.fields(QUESTIONS[kind]):
            for how in mutators_of(_sample(field.type)):
                yield Case(where=Where.QUESTION, target=f"{kind}.{field.name}", how=how)


def _sample(annotation: object) -> object:
    """A value of a field's type: what it can be turned into depends on nothing else."""
    kind = annotation
    while (inner := get_origin(kind)) is not None:
        if inner in (Union, UnionType):
            return None  # what may be absent is absent in a boundary copy
        kind = get_args(kind)[0] if inner is Annotated else inner
    return _SAMPLES[str(getattr(kind, "__name__", kind))]
