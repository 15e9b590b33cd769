"""A state that was rehearsed before it came is the very state that comes, or is built anew."""

from typing import Any

import pytest
import torch

from tests.state.test_recapture import MUTATIONS, TYPES, tree
from worldmove.errors import ManifestError
from worldmove.state import Arena, Layout, Manifest, Xxh3Digester, capture, gather, materialise
from worldmove.state.arena import AnyArena, foreseen, new_arena
from worldmove.state.digest import state_digest
from worldmove.state.extent import Extent
from worldmove.state.kit_double import DoubleKit
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
