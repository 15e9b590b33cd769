"""A state of which some lies on a device: the double stands in for a GPU."""

from typing import Any

import numpy as np
import pytest
import torch

from worldmove.errors import ArenaFull, ManifestError, StateRefused, TransportError
from worldmove.state import Arena, Extent, Manifest, Xxh3Digester, capture, extents, gather, group_digests, materialise
from worldmove.state.capture import DeviceStorage, HostStorage
from worldmove.state.device_arena import DeviceArena
from worldmove.state.device_window import joined
from worldmove.state.digest import state_digest, state_digest_of_bytes
from worldmove.state.groups import group_paths, groups
from worldmove.state.kit_double import DoubleKit
from worldmove.state.leaf import DEVICE_KIND, DeviceTensorLeaf
from worldmove.state.saved_state import copy_aside, payload

DIGESTER = Xxh3Digester()
KIT = DoubleKit(generators=True)
SIZE = 4 << 20


def tree(seed: int = 3) -> dict[str, Any]:
    """Large tensors that count as the device's, with a view and a strided window, and small ones that do not."""
    numbers = torch.Generator().manual_seed(seed)
    base = torch.randn(700, 600, generator=numbers)
    return {
        "base": base,
        "corner": base[100:300, 50:90],
        "cache": torch.randn(3, 1000, generator=numbers).to(torch.bfloat16),
        "cursor": torch.tensor([seed]),
        "late": None,
        "array": np.arange(900, dtype=np.int64),
        "noise": torch.Generator().manual_seed(seed),
        "block": 7,
    }


def test_each_storage_is_of_the_kind_of_its_memory_and_the_manifest_says_so() -> None:
    state = capture(tree(), {}, KIT)
    kinds = {leaf.path: type(leaf.content) is DeviceTensorLeaf for leaf in state.manifest.leaves}
    assert [path for path, on_device in kinds.items() if on_device] == ["base", "corner", "cache"]
    assert [type(storage) for storage in state.storages] == [DeviceStorage, DeviceStorage, HostStorage, HostStorage]
    assert [record.kind for record in state.manifest.generators] == [DEVICE_KIND]
    assert Manifest.from_bytes(state.manifest.to_bytes()) == state.manifest


def test_a_state_in_host_memory_has_the_bytes_that_it_always_had_and_a_device_state_a_later_version() -> None:
    host, device = capture(tree()).manifest.to_bytes(), capture(tree(), {}, KIT).manifest.to_bytes()
    assert (host[4:6], device[4:6]) == (b"\1\0", b"\2\0")
    for data, version in ((host, 2), (device, 1), (device, 3)):
        with pytest.raises(ManifestError):
            Manifest.from_bytes(data[:4] + bytes([version]) + data[5:])


def test_what_went_through_a_device_slot_is_the_same_state_and_host_memory_is_host_memory_again() -> None:
    before = tree()
    state = capture(before, {}, KIT)
    arena = DeviceArena(SIZE, "one", KIT)
    arena.poison()
    placement = gather(state, arena)
    again = materialise(state.manifest, placement, arena)
    there = capture(again, {}, KIT)
    assert there.manifest == state.manifest
    assert state_digest(there, DIGESTER) == state_digest(state, DIGESTER)
    assert group_digests(there, DIGESTER, b"n", b"l") == group_digests(state, DIGESTER, b"n", b"l")
    assert [s.address % 256 for s in there.storages] == [s.address % 256 for s in state.storages]
    inside = [arena.address <= s.address < arena.address + arena.size for s in there.storages]
    assert inside == [True, True, False, False]
    assert torch.equal(again["base"], before["base"])
    assert again["corner"].data_ptr() - again["base"].data_ptr() == 4 * (100 * 600 + 50)


def test_a_second_gather_copies_what_was_bound_anew_and_stages_host_memory_again() -> None:
    arena = DeviceArena(SIZE, "one", KIT)
    first = capture(tree(), {}, KIT)
    live = materialise(first.manifest, gather(first, arena), arena)
    live["cache"] = live["cache"] + 1
    live["cursor"] += 1
    frozen = capture(live, {}, KIT)
    placement = gather(frozen, arena)
    again = materialise(frozen.manifest, placement, arena)
    assert torch.equal(again["cache"], live["cache"])
    assert int(again["cursor"]) == 4
    assert state_digest(capture(again, {}, KIT), DIGESTER) == state_digest(frozen, DIGESTER)


def test_a_flipped_bit_of_device_memory_changes_its_own_group_and_names_its_leaves() -> None:
    state = capture(tree(), {}, KIT)
    arena = DeviceArena(SIZE, "one", KIT)
    there = capture(materialise(state.manifest, gather(state, arena), arena), {}, KIT)
    before = group_digests(there, DIGESTER, b"n", b"l")
    for group in groups(there.manifest):
        storage = there.storages[group.storage]
        if isinstance(storage, DeviceStorage):
            at = storage.address + group.extents[0].offset + 11
            KIT.write(at, np.bitwise_xor(KIT.read(storage.part(group.extents[0]))[11:12], np.uint8(1)))
            after = group_digests(there, DIGESTER, b"n", b"l")
            assert [i for i, pair in enumerate(zip(before, after, strict=True)) if pair[0] != pair[1]] == [group.index]
            before = after
    assert group_paths(there.manifest, groups(there.manifest)[0]) == ("base", "corner")


def test_the_state_digest_names_both_digesters_and_is_the_same_from_bytes_in_a_file() -> None:
    state = capture(tree(), {}, KIT)
    digest = state_digest(state, DIGESTER)
    assert digest.text.startswith("wmf1+xxh3-128:")
    assert state_digest(capture(tree()), DIGESTER).text.startswith("xxh3-128:")
    aside = copy_aside(state)
    assert state_digest(aside.capture, DIGESTER) == digest
    data = b"".join(bytes(part) for part in payload(aside))
    at = len(state.manifest.to_bytes())

    def read(length: int) -> bytes:
        nonlocal at
        at += length
        return data[at - length : at]

    assert state_digest_of_bytes(state.manifest, read, DIGESTER) == digest


def test_memory_that_is_seen_from_the_host_and_from_the_device_is_refused() -> None:
    base = torch.zeros(1000)
    with pytest.raises(StateRefused, match="kind"):
        capture({"there": base, "here": base.numpy()}, {}, KIT)


def test_a_device_state_does_not_go_into_a_slot_in_host_memory() -> None:
    state = capture(tree(), {}, KIT)
    arena = Arena(SIZE, "host")
    with pytest.raises(StateRefused, match="slot lies in host memory"):
        gather(state, arena)
    placement = gather(state, DeviceArena(SIZE, "device", KIT))
    with pytest.raises(ManifestError, match="slot lies in host memory"):
        materialise(state.manifest, placement, arena)


def test_a_device_without_room_says_so_and_room_that_is_given_back_is_there_again() -> None:
    kit = DoubleKit(capacity=SIZE)
    arena = DeviceArena(SIZE, "one", kit)
    with pytest.raises(ArenaFull):
        DeviceArena(4096, "two", kit)
    arena.close()
    DeviceArena(4096, "two", kit)


def test_poison_is_nowhere_zero_and_what_travels_is_a_few_extents() -> None:
    arena = DeviceArena(SIZE, "one", KIT)
    arena.poison()
    assert arena.read(0, SIZE).all()
    state = capture(tree(), {}, KIT)
    runs = extents(state.manifest, gather(state, arena))
    assert sum(run.length for run in runs) == state.num_bytes


def test_runs_that_lie_near_to_each_other_are_copied_as_one_and_far_ones_are_not() -> None:
    runs = [
        Extent(offset=0, length=8),
        Extent(offset=256, length=8),
        Extent(offset=9000, length=1),
        Extent(offset=9001, length=0),
    ]
    assert joined(runs) == (Extent(offset=0, length=264), Extent(offset=9000, length=1))


def test_a_closed_window_takes_nothing_and_one_that_is_open_nothing_outside() -> None:
    source, target = DeviceArena(SIZE, "source", KIT), DeviceArena(8192, "target", KIT)
    window = target.lend()
    with pytest.raises(TransportError, match="not all in the slot"):
        window.start_copy(source.address, [Extent(offset=8000, length=500)])
    window.close()
    for late in (
        lambda: window.start_copy(source.address, [Extent(offset=0, length=1)]),
        lambda: window.write(0, np.zeros(1, dtype=np.uint8)),
    ):
        with pytest.raises(TransportError, match="closed"):
            late()
