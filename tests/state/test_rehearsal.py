"""A state that was rehearsed before it came is the very state that comes, or is built anew."""

from enum import Enum
from typing import Any

import pytest
import torch

from tests.state.test_recapture import MUTATIONS, REFUSED, TYPES, is_same, tree
from worldmove.errors import ManifestError, StateRefused
from worldmove.state import Arena, Layout, Manifest, Xxh3Digester, capture, gather, materialise
from worldmove.state.amended import amended
from worldmove.state.arena import AnyArena, new_arena
from worldmove.state.digest import state_digest
from worldmove.state.extent import Extent
from worldmove.state.kit_double import DoubleKit
from worldmove.state.leaf import EnumLeaf
from worldmove.state.placement import foreseen
from worldmove.state.recapture import recapture
from worldmove.state.rehearsal import rehearse

DIGESTER = Xxh3Digester()
KIT = DoubleKit(least_bytes=256)
SIZE = 1 << 20


def carried(source: AnyArena, target: AnyArena) -> None:
    """Bring every byte of one slot to another."""
    if isinstance(source, Arena) and isinstance(target, Arena):
        target.buffer[:] = source.buffer
    elif not isinstance(source, Arena) and not isinstance(target, Arena):
        window = target.lend()
        window.start_copy(source.address, [Extent(offset=0, length=SIZE)]).wait()
        window.close()


@pytest.mark.parametrize("kit", [None, KIT], ids=["host", "device"])
@pytest.mark.parametrize("name", MUTATIONS)
def test_whatever_changed_since_the_offer_what_is_installed_is_what_was_frozen(name: str, kit: Any) -> None:
    here, there = new_arena(SIZE, "here", kit), new_arena(SIZE, "there", kit)
    first = capture(tree(), TYPES, kit)
    live = materialise(first.manifest, gather(first, here), here, TYPES)
    offered = capture(live, TYPES, kit)
    layout = Layout.of(offered.manifest, arena_bytes=SIZE, places=foreseen(offered, here))
    there.poison()
    preview = Manifest.from_bytes(Layout.from_bytes(layout.to_bytes()).preview)
    rehearsal = rehearse(preview, layout.places, there, TYPES)
    if name not in ("a storage resized in place", "a tensor resized beyond its storage"):  # none of a slot can be
        MUTATIONS[name](live)
    frozen = capture(live, TYPES, kit)
    placement = gather(frozen, here)
    manifest = Manifest.from_bytes(frozen.manifest.to_bytes(), preview)
    assert manifest == frozen.manifest
    assert manifest.leaves == frozen.manifest.leaves
    carried(here, there)
    built = rehearsal.tree(manifest, placement, TYPES)
    if built is None:
        built = materialise(manifest, placement, there, TYPES)
        installed = capture(built, TYPES, kit)
    else:
        rehearsal.landing.settle()
        installed = recapture(rehearsal.known, built).capture
    assert installed.manifest == frozen.manifest
    assert state_digest(installed, DIGESTER) == state_digest(frozen, DIGESTER)
    assert state_digest(capture(built, TYPES, kit), DIGESTER) == state_digest(frozen, DIGESTER)


def test_a_cursor_a_generator_and_an_enum_are_exchanged_and_nothing_is_built_anew() -> None:
    arena = Arena(SIZE, "there")
    state = {"cache": torch.zeros(9), "cursor": 5, "noise": torch.Generator().manual_seed(1)}
    offered = capture(state)
    rehearsal = rehearse(offered.manifest, gather(offered, Arena(SIZE, "here")), arena, {})
    state["cursor"] = 6
    frozen = capture(state)
    tree = rehearsal.tree(frozen.manifest, rehearsal.placement, {})
    assert tree is rehearsal.built
    assert tree["cursor"] == 6
    assert rehearsal.tree(frozen.manifest, (256,), {}) is None


@pytest.mark.parametrize("kit", [None, KIT], ids=["host", "device"])
@pytest.mark.parametrize("name", [*MUTATIONS, *REFUSED])
def test_what_an_engine_did_to_its_tree_when_it_installed_it_is_seen(name: str, kit: Any) -> None:
    there, state = new_arena(SIZE, "there", kit), tree()
    offered = capture(state, TYPES, kit)
    rehearsal = rehearse(offered.manifest, gather(offered, new_arena(SIZE, "here", kit)), there, TYPES)
    state["caches"][0].end, state["pair"] = 5, (2, {"x": 3.0, 7: b"others"})
    torch.rand(3, generator=state["noise"])
    told = capture(state, TYPES, kit).manifest
    built = rehearsal.tree(told, rehearsal.placement, TYPES)
    assert built is not None
    if name in ("a storage resized in place", "a tensor resized beyond its storage"):  # none of a slot can be
        return
    {**MUTATIONS, **REFUSED}[name](built)
    if name in REFUSED:
        with pytest.raises(StateRefused):
            recapture(rehearsal.known, built)
        return
    found = recapture(rehearsal.known, built).capture
    assert is_same(found, capture(built, TYPES, kit))
    assert name != "nothing" or found.manifest is told


def test_a_tuple_with_another_item_is_exchanged_and_nothing_around_it() -> None:
    state: dict[str, Any] = {"deep": [{"pose": (1, (2, 3))}], "cache": torch.zeros(9)}
    offered = capture(state)
    rehearsal = rehearse(offered.manifest, gather(offered, Arena(SIZE, "here")), Arena(SIZE, "there"), {})
    before = rehearsal.built, rehearsal.built["deep"][0], rehearsal.built["cache"]
    state["deep"][0]["pose"] = (1, (2, 4))
    now: Any = rehearsal.tree(capture(state).manifest, rehearsal.placement, {})
    assert all(a is b for a, b in zip(before, (now, now["deep"][0], now["cache"]), strict=True))
    assert now["deep"][0]["pose"] == (1, (2, 4))


def test_a_state_that_is_a_tuple_is_built_anew_of_the_same_leaves() -> None:
    state = (1, torch.zeros(9))
    offered = capture(state)
    rehearsal = rehearse(offered.manifest, gather(offered, Arena(SIZE, "here")), Arena(SIZE, "there"), {})
    cache = rehearsal.built[1]
    now: Any = rehearsal.tree(capture((2, state[1])).manifest, rehearsal.placement, {})
    assert now[0] == 2
    assert now[1] is cache


def test_a_name_that_reads_as_another_is_not_taken_for_what_was_told() -> None:
    colour = Enum("colour", {"RED": 1, "BLUE": 2, "AZURE": 2})  # one member with two names
    types, arena = {"colour": colour}, Arena(SIZE, "there")
    offered = capture({"a": colour["RED"]}, types)
    rehearsal = rehearse(offered.manifest, (), arena, types)
    told = amended(offered.manifest, {0: EnumLeaf(type="colour", member="AZURE")}, ())
    assert told is not None
    built = rehearsal.tree(told, (), types)
    assert recapture(rehearsal.known, built).capture.manifest != told


def test_a_manifest_that_resembles_another_is_read_as_strictly_as_alone() -> None:
    state = {"a": 1, "b": torch.zeros(4), "c": "x"}
    like = capture(state).manifest
    state["a"] = 2
    data = capture(state).manifest.to_bytes()
    assert Manifest.from_bytes(data, like) == Manifest.from_bytes(data)
    for at in range(len(data)):
        for bit in (1, 128):
            changed = data[:at] + bytes([data[at] ^ bit]) + data[at + 1 :]
            assert _read(changed, like) == _read(changed, None)


def _read(data: bytes, like: Manifest | None) -> Any:
    try:
        return Manifest.from_bytes(data, like)
    except ManifestError as error:
        return type(error)
