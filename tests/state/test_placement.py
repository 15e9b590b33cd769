"""Where storages lie in an arena: what travels of them, and what is refused."""

import pytest
import torch

from tests.state.trees import overlapping_views
from worldmove.errors import ManifestError
from worldmove.state import (
    Arena,
    Extent,
    adopt,
    capture,
    check_placement,
    extents,
    materialise,
)


def test_what_travels_is_every_used_byte_once_and_no_other() -> None:
    state = capture(overlapping_views())
    arena = Arena(16384, "extents")
    at, other = adopt(state, arena)
    assert extents(state.manifest, (at, other)) == tuple(
        sorted(
            [
                Extent(offset=at + 400, length=800),
                Extent(offset=at + 3600, length=400),
                Extent(offset=other, length=12),
            ],
            key=lambda extent: extent.offset,
        )
    )


def test_extents_that_touch_in_the_arena_are_one() -> None:
    state = capture([torch.zeros(64, dtype=torch.uint8), torch.zeros(64, dtype=torch.uint8)])
    assert extents(state.manifest, (256, 320)) == (Extent(offset=256, length=128),)
    assert extents(state.manifest, (256, 321)) == (Extent(offset=256, length=64), Extent(offset=321, length=64))
    assert extents(capture({"n": 1}).manifest, ()) == ()


@pytest.mark.parametrize(
    ("placement", "why"),
    [
        ((0,), "1 places for 2"),
        ((0, 4000, 8000), "3 places for 2"),
        ((0, 3999), "overlaps"),
        ((11, 0), "overlaps"),
        ((5, 5), "overlaps"),
        ((-1, 5000), "overlaps"),
        ((0, 16384 - 11), "ends at 16385"),
        ((1 << 80, 0), "ends at"),
    ],
)
def test_a_hostile_placement_is_refused(placement: tuple[int, ...], why: str) -> None:
    manifest = capture(overlapping_views()).manifest
    with pytest.raises(ManifestError, match=why):
        check_placement(manifest, placement, 16384)
    with pytest.raises(ManifestError, match=why):
        materialise(manifest, placement, Arena(16384, "hostile"))
