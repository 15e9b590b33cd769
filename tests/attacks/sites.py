"""Everything that can be struck: each way at each place, so that nothing is left out."""

from collections.abc import Iterator
from types import UnionType
from typing import Annotated, Union, get_args, get_origin

import msgspec

from tests.attacks.case import Case, Where
from tests.attacks.mutate import mutators_of
from tests.attacks.payload import WAYS
from tests.attacks.strikes import ABA, DIGESTS, ENGINE, INSTALLED, KINDS, LATE, QUESTIONS, WHOLE

NUM_EXTENTS = 5
"""A pond's, once its late leaf is there."""
ASKED = ("OpenAttempt", "CommitAttempt", "CloseAttempt", "Reclaim")
"""The questions that a move asks."""
ENGINE_LEAVES = ("window", "base", "trail", "late")

_SAMPLES: dict[str, object] = {
    "int": 1, "float": 1.0, "str": "x", "bytes": b"xy", "tuple": (1, 2), "dict": {"a": "b"}, "bool": True
}  # fmt: skip


def sites() -> list[Case]:
    """Return one case for each site, with seed 0."""
    return [
        *_fields(),
        *(Case(where=Where.MESSAGE, target=kind, how=how) for kind in KINDS for how in WHOLE),
        *(Case(where=Where.PATH, target=f"extent {n}", how=how) for n in range(NUM_EXTENTS) for how in WAYS),
        *(Case(where=Where.LANDED, target=f"extent {n}", how=how) for n in range(NUM_EXTENTS) for how in WAYS),
        *(Case(where=Where.WINDOW, target=f"extent {n}", how=how) for n in range(NUM_EXTENTS) for how in LATE),
        *(Case(where=Where.INSTALLED, target=target, how="changed") for target in INSTALLED),
        *(Case(where=Where.ENGINE, target=leaf, how=how) for leaf in ENGINE_LEAVES for how in (*ENGINE, ABA)),
        *(Case(where=Where.DIGEST, target=f"group {n}", how=how) for n in range(NUM_EXTENTS) for how in DIGESTS),
        *_questions(),
    ]


def _fields() -> Iterator[Case]:
    for kind, struct in KINDS.items():
        for field in msgspec.structs.fields(struct):
            for how in mutators_of(_sample(field.type)):
                yield Case(where=Where.FIELD, target=f"{kind}.{field.name}", how=how)


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
