from typing import Any

from hypothesis import given, settings

from tests.state.equality import plain
from tests.state.trees import TYPES, trees
from worldmove.state import (
    Arena,
    Layout,
    Manifest,
    Xxh3Digester,
    adopt,
    capture,
    extents,
    gather,
    group_digests,
    landed,
    materialise,
    state_digest,
)

DIGESTER = Xxh3Digester()


@settings(max_examples=60)
@given(trees())
def test_any_state_comes_back_the_same(tree: Any) -> None:
    source = capture(tree, TYPES)
    arena = Arena(Layout.of(source.manifest).arena_bytes, "round trip")
    arena.poison()
    placement = adopt(source, arena)
    again = materialise(Manifest.from_bytes(source.manifest.to_bytes()), placement, arena, TYPES)
    copy = capture(again, TYPES)

    assert plain(again) == plain(tree)
    assert copy.manifest.difference(source.manifest) == ()
    assert copy.manifest == source.manifest
    assert state_digest(copy, DIGESTER) == state_digest(source, DIGESTER)
    assert gather(copy, arena) == placement
    inside = landed(source.manifest, placement, arena)
    assert group_digests(inside, DIGESTER, b"n", b"l") == group_digests(source, DIGESTER, b"n", b"l")
    assert [s.address % 256 for s in inside.storages] == [s.address % 256 for s in source.storages]
    assert sum(extent.length for extent in extents(source.manifest, placement)) == source.num_bytes


@settings(max_examples=20)
@given(trees())
def test_the_manifest_does_not_depend_on_addresses(tree: Any) -> None:
    source = capture(tree, TYPES)
    first, second = (Arena(Layout.of(source.manifest).arena_bytes + 8192, "address") for _ in range(2))
    for arena in (first, second):
        again = capture(materialise(source.manifest, adopt(source, arena), arena, TYPES), TYPES)
        assert again.manifest.to_bytes() == source.manifest.to_bytes()
