"""A boundary tells what differs from its offer: whoever reads it has the very manifest, or refuses."""

import random
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.state.test_recapture import MUTATIONS, TYPES, tree
from worldmove.errors import ManifestError
from worldmove.state import Layout, Manifest, capture
from worldmove.state.difference import DIFFERENCE_MAGIC, VERSION, is_difference
from worldmove.state.extent import Extent
from worldmove.state.frame import frame, unframe
from worldmove.state.kit_double import DoubleKit
from worldmove.state.placement import early_of
from worldmove.state.preview import Preview, hear, tell
from worldmove.state.recapture import recapture, remember

VALUES = ("nothing", "a cursor", "an equal float of other bits", "another season", "another number", "data set")


def offered(state: Any) -> tuple[Preview, Preview]:
    """Return what both ends have of an offer."""
    known = remember(state, TYPES)
    places = tuple(range(0, 4096 * len(known.capture.storages), 4096))
    layout = Layout.of(known.capture.manifest, places=places)
    here, there = Preview.of(layout), Preview.of(Layout.from_bytes(layout.to_bytes()))
    assert here is not None
    assert there is not None
    return here, there


@pytest.mark.parametrize("name", MUTATIONS)
def test_what_is_heard_is_what_is_there_whatever_has_changed_since_the_offer(name: str) -> None:
    state = tree()
    known = remember(state, TYPES)
    here, there = offered(state)
    MUTATIONS[name](state)
    again = recapture(known, state).capture.manifest
    manifest, placement = hear(there, *tell(here, again, here.places))
    expected = capture(state, TYPES).manifest
    assert manifest == expected
    assert (manifest.leaves, manifest.storages, manifest.generators) == (
        expected.leaves,
        expected.storages,
        expected.generators,
    )
    assert placement == here.places


@pytest.mark.parametrize("name", VALUES)
def test_changed_values_are_told_alone(name: str) -> None:
    state = tree()
    here, _ = offered(state)
    MUTATIONS[name](state)
    told, placement = tell(here, capture(state, TYPES).manifest, here.places)
    assert is_difference(told)
    assert len(told) < 200
    assert placement == ()


def test_a_placement_that_was_not_foreseen_is_told() -> None:
    here, there = offered(tree())
    elsewhere = tuple(place + 4096 for place in here.places)
    assert hear(there, *tell(here, here.manifest, elsewhere)) == (here.manifest, elsewhere)


def test_another_offers_difference_is_refused() -> None:
    here, _ = offered(tree())
    _, other = offered({**tree(), "late": 5})
    with pytest.raises(ManifestError, match="another manifest"):
        hear(other, *tell(here, here.manifest, here.places))


def test_a_difference_without_an_offer_is_refused() -> None:
    here, _ = offered(tree())
    with pytest.raises(ManifestError, match="nothing ahead"):
        hear(None, *tell(here, here.manifest, here.places))


def _told(change: Callable[[list[Any]], Any]) -> tuple[Preview, bytes]:
    """Return an honest difference of two values with something done to it."""
    state = tree()
    here, there = offered(state)
    state["late"], state["caches"][0].end = 7, 3
    state["noise"].manual_seed(4)
    told, _ = tell(here, capture(state, TYPES).manifest, here.places)
    body = msgspec.msgpack.decode(unframe(DIFFERENCE_MAGIC, VERSION, told, 1 << 20))
    change(body)
    return there, frame(DIFFERENCE_MAGIC, VERSION, msgspec.msgpack.encode(body))


TENSOR = ["tensor", "float32", [1], [1], 0, 0, 0, 4, False, False]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda body: body[2].reverse(), "out of its order"),
        (lambda body: body[2].append(body[2][-1]), "out of its order"),
        (lambda body: body[2].append([10_000, body[2][0][1]]), "of no leaf"),
        (lambda body: body[2][0].__setitem__(0, -1), "out of its order"),
        (lambda body: body[2][-1].__setitem__(1, TENSOR), "lies in memory"),
        (lambda body: body[2].insert(0, [0, body[2][0][1]]), "lies in memory"),
        (lambda body: body[2][0].__setitem__(1, ["scalar", "int", b"\1\0"]), "canonical"),
        (lambda body: body[2].pop(), "not what it says"),
        (lambda body: body[3].pop(), "another kind"),
        (lambda body: body[3][0].__setitem__(0, "random"), "another kind"),
        (lambda body: body.__setitem__(3, None), "not what it says"),
        (lambda body: body.__setitem__(1, bytes(32)), "not what it says"),
        (lambda body: body.__setitem__(0, bytes(32)), "another manifest"),
        (lambda body: body.__setitem__(0, bytes(31)), "does not decode"),
        (lambda body: body.append(None), "does not decode"),
    ],
)
def test_a_difference_that_nobody_honest_wrote_is_refused(change: Callable[[list[Any]], Any], why: str) -> None:
    there, told = _told(change)
    with pytest.raises(ManifestError, match=why):
        hear(there, told, ())


def test_the_one_that_was_not_changed_is_heard() -> None:
    there, told = _told(lambda body: None)
    leaves = {leaf.path: leaf.content for leaf in hear(there, told, ())[0].leaves}
    assert leaves["late"] == capture({"late": 7}).manifest.leaves[0].content


@given(st.integers(0, 1 << 30))
def test_no_damaged_difference_is_taken_for_another_manifest(seed: int) -> None:
    rng = random.Random(seed)
    there, told = _told(lambda body: None)
    damaged = bytearray(told)
    for _ in range(rng.randrange(1, 4)):
        damaged[rng.randrange(len(damaged))] ^= 1 << rng.randrange(8)
    if bytes(damaged) == told:
        return
    with pytest.raises(ManifestError):
        hear(there, bytes(damaged), ())


def test_a_manifest_that_is_told_whole_is_heard_as_before() -> None:
    state = {"a": torch.zeros(9)}
    whole = capture(state).manifest
    assert hear(None, *tell(None, whole, (0,))) == (Manifest.from_bytes(whole.to_bytes()), (0,))


def states() -> tuple[Preview, Manifest]:
    """Return an offer of four storages on a device and one in host memory, and the state at its boundary."""
    kit = DoubleKit()
    state = {"big": torch.zeros(4096), "count": torch.zeros(3), **{name: torch.zeros(1024) for name in "xyz"}}
    first = capture(state, {}, kit)
    layout = Layout.of(first.manifest, places=tuple(range(0, 5 << 16, 1 << 16)))
    preview = Preview.of(layout)
    assert preview is not None
    return preview, first.manifest


def pulled(extents: Sequence[Extent]) -> list[int]:
    return [extent.offset >> 16 for extent in extents]


def test_the_last_of_a_state_and_its_host_memory_do_not_come_early() -> None:
    preview, manifest = states()
    assert [storage.num_bytes for storage in manifest.storages] == [16384, 12, 4096, 4096, 4096]
    assert preview.early == (0, 2, 3)
    assert pulled(preview.early_extents) == [0, 2, 3]
    assert pulled(preview.rest(manifest, preview.places, ())) == [1, 4]


def test_what_has_come_there_since_or_lies_otherwise_comes_with_the_rest() -> None:
    preview, manifest = states()
    assert preview.keeps_early(manifest, preview.places, (1, 4))
    assert not preview.keeps_early(manifest, preview.places, (1, 2))
    assert pulled(preview.rest(manifest, preview.places, (1, 2))) == [1, 2, 4]
    elsewhere = (0, 1 << 16, 2 << 16, 7 << 16, 4 << 16)
    assert preview.kept(manifest, elsewhere) == {0, 2}
    assert not preview.keeps_early(manifest, elsewhere, ())
    assert pulled(preview.rest(manifest, elsewhere, ())) == [1, 4, 7]
    grown = capture({"big": torch.zeros(4096), "a": torch.zeros(1024)}, {}, DoubleKit()).manifest
    assert preview.kept(grown, (0, 1 << 16)) == frozenset()
    assert pulled(preview.rest(grown, (0, 1 << 16), ())) == [0, 1]
    with pytest.raises(ManifestError, match="that there is not"):
        preview.rest(manifest, preview.places, (5,))


def test_where_the_rest_would_be_the_greater_part_nothing_comes_early() -> None:
    state = {"small": torch.zeros(2048), **{name: np.zeros(3000, dtype=np.uint8) for name in "abcd"}}
    manifest = capture(state, {}, DoubleKit()).manifest
    assert early_of(manifest, range(5)) == ()
    assert early_of(capture({"all": torch.zeros(2048)}, {}, DoubleKit()).manifest, [0]) == (0,)
