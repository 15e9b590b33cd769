import hashlib
import random
import struct
import threading
from typing import Any

import numpy as np
import pytest
import torch
import xxhash

from tests.state.host import host_memory
from worldmove.state import (
    GROUP_BYTES,
    Arena,
    Capture,
    Layout,
    Xxh3Digester,
    adopt,
    capture,
    group_digests,
    group_paths,
    groups,
    landed,
    materialise,
    state_digest,
)

DIGESTER = Xxh3Digester()
NONCE, LAYOUT = b"n" * 32, b"l" * 32


def _tree() -> dict[str, Any]:
    noise = torch.Generator().manual_seed(3)
    wide = torch.randint(0, 256, (1000, 3000), generator=noise, dtype=torch.uint8)
    long = torch.randint(0, 256, (5 * GROUP_BYTES // 2,), generator=noise, dtype=torch.uint8)
    return {"wide": wide[:, :2500], "long": long, "small": torch.ones(5), "none": torch.empty(0), "n": 3}


def _landed() -> Capture:
    """A state in an arena, where it may be damaged."""
    state = capture(_tree())
    arena = Arena(Layout.of(state.manifest).arena_bytes, "damaged")
    return landed(state.manifest, adopt(state, arena), arena)


def _digests(state: Capture) -> tuple[bytes, ...]:
    return group_digests(state, DIGESTER, NONCE, LAYOUT)


def test_groups_have_every_used_byte_once_and_each_storage_begins_one() -> None:
    manifest = capture(_tree()).manifest
    found = groups(manifest)
    assert [group.index for group in found] == list(range(len(found)))
    assert [group.storage for group in found] == [0, 0, 0, 1, 1, 1, 2]
    full = [GROUP_BYTES, GROUP_BYTES]
    assert [g.num_bytes for g in found] == [*full, 2_500_000 - sum(full), *full, GROUP_BYTES // 2, 20]
    for number, storage in enumerate(manifest.storages):
        cut = [extent for group in found if group.storage == number for extent in group.extents]
        seen = np.zeros(storage.num_bytes, dtype=np.uint8)
        for extent in cut:
            seen[extent.offset : extent.end] += 1
        wanted = np.zeros(storage.num_bytes, dtype=np.uint8)
        for extent in storage.used:
            wanted[extent.offset : extent.end] = 1
        assert (seen == wanted).all()


def test_every_flipped_bit_changes_its_own_group_and_the_state_digest() -> None:
    state, chance = _landed(), random.Random(5)
    before, whole = _digests(state), state_digest(state, DIGESTER)
    for _ in range(25):
        group = chance.choice(groups(state.manifest))
        extent = chance.choice(group.extents)
        byte, bit = extent.offset + chance.randrange(extent.length), 1 << chance.randrange(8)
        memory = host_memory(state.storages[group.storage])
        memory[byte] ^= bit
        changed = [i for i, (a, b) in enumerate(zip(before, _digests(state), strict=True)) if a != b]
        assert changed == [group.index]
        assert state_digest(state, DIGESTER) != whole
        memory[byte] ^= bit
    assert (_digests(state), state_digest(state, DIGESTER)) == (before, whole)


def test_bytes_that_no_leaf_uses_are_not_in_the_digest() -> None:
    state = _landed()
    before = _digests(state), state_digest(state, DIGESTER)
    host_memory(state.storages[0])[2500] ^= 255
    assert (_digests(state), state_digest(state, DIGESTER)) == before


def test_first_and_last_byte_of_every_group_count() -> None:
    state = _landed()
    for group in groups(state.manifest):
        before = group_digests(state, DIGESTER, NONCE, LAYOUT)[group.index]
        for byte in (group.extents[0].offset, group.extents[-1].end - 1):
            host_memory(state.storages[group.storage])[byte] ^= 1
            assert group_digests(state, DIGESTER, NONCE, LAYOUT)[group.index] != before
            host_memory(state.storages[group.storage])[byte] ^= 1


def test_groups_that_changed_places_are_seen() -> None:
    tree = {"long": torch.randint(0, 256, (2 * GROUP_BYTES,), dtype=torch.uint8)}
    one = _digests(capture(tree))
    tree["long"] = torch.cat([tree["long"][GROUP_BYTES:], tree["long"][:GROUP_BYTES]])
    other = _digests(capture(tree))
    assert one[0] not in other
    assert one[1] not in other


def test_equal_groups_at_two_places_have_different_digests() -> None:
    digests = _digests(capture({"zero": torch.zeros(4 * GROUP_BYTES, dtype=torch.uint8)}))
    assert len(set(digests)) == 4


def test_a_digest_of_another_attempt_or_layout_is_not_this_ones() -> None:
    state = capture(_tree())
    here = _digests(state)
    for other in (
        group_digests(state, DIGESTER, b"m" * 32, LAYOUT),
        group_digests(state, DIGESTER, NONCE, b"k" * 32),
        group_digests(state, DIGESTER, NONCE + LAYOUT[:1], LAYOUT[1:]),
    ):
        assert not set(here) & set(other)


def test_a_dropped_tail_of_zeros_is_seen() -> None:
    long, short = torch.zeros(5000, dtype=torch.uint8), torch.zeros(4999, dtype=torch.uint8)
    assert _digests(capture([long])) != _digests(capture([short]))
    assert state_digest(capture([long]), DIGESTER) != state_digest(capture([short]), DIGESTER)


def test_the_state_digest_is_over_the_manifest_too() -> None:
    data = torch.arange(8, dtype=torch.uint8)
    states = [
        [data],
        (data,),
        {"x": data},
        [data.view(2, 4)],
        [data.view(torch.int8)],
        [data, 1],
        [data, True],
        [data, None],
    ]
    assert len({state_digest(capture(state), DIGESTER).text for state in states}) == len(states)


def test_the_state_digest_does_not_depend_on_the_holder() -> None:
    state = capture(_tree())
    arena = Arena(Layout.of(state.manifest).arena_bytes, "holder")
    arena.poison()
    placement = adopt(state, arena)
    copy = capture(materialise(state.manifest, placement, arena))
    assert state_digest(copy, DIGESTER) == state_digest(state, DIGESTER)
    assert state_digest(landed(state.manifest, placement, arena), DIGESTER) == state_digest(state, DIGESTER)


def test_the_formulas_are_the_published_ones() -> None:
    """If this fails, digests of two versions are not comparable any more: the number in the formula must change."""
    tensor = torch.arange(6, dtype=torch.int32).view(2, 3)[:, 1:]
    state = capture({"x": tensor, "n": 7})
    used = tensor.contiguous().numpy().tobytes()

    seed = int.from_bytes(b"WORLDMOV", "big")
    manifest = state.manifest.to_bytes()
    group = struct.pack("<QQQ", 0, 0, len(used)) + xxhash.xxh3_128_digest(used, seed)
    whole = b"worldmove state 1\0" + struct.pack("<Q", len(manifest)) + manifest + group
    assert str(state_digest(state, DIGESTER)) == f"xxh3-128:{xxhash.xxh3_128_hexdigest(whole, seed)}"

    text = b"worldmove group 1\0" + struct.pack("<Q", 32) + NONCE + struct.pack("<Q", 32) + LAYOUT
    own = hashlib.sha256(text + struct.pack("<QQ", 0, len(used))).digest()
    assert _digests(state) == (xxhash.xxh3_128_digest(used, int.from_bytes(own[:8], "little")),)


def test_a_known_state_has_its_known_digest() -> None:
    state = capture({"x": torch.arange(6, dtype=torch.int32).view(2, 3)[:, 1:], "n": 7})
    assert str(state_digest(state, DIGESTER)) == "xxh3-128:0e45c1104b3624a4e928b9daab3317aa"


def test_the_digester_is_plain_xxh3_128() -> None:
    assert DIGESTER.digest(memoryview(b"abc"), 5) == xxhash.xxh3_128_digest(b"abc", seed=5)


def test_other_threads_run_while_a_large_buffer_is_read() -> None:
    data = np.zeros(400 << 20, dtype=np.uint8).data
    reader = threading.Thread(target=DIGESTER.digest, args=(data, 0))
    reader.start()
    ticks = 0
    while reader.is_alive():
        ticks += 1
    assert ticks > 100


def test_a_group_names_the_leaves_that_use_its_bytes_and_no_other() -> None:
    base = torch.zeros(3 * GROUP_BYTES, dtype=torch.uint8)
    tree = {"head": base[:10], "middle": base[GROUP_BYTES - 1 : GROUP_BYTES + 1], "all": base, "gone": base[:0], "n": 1}
    manifest = capture(tree).manifest
    assert [group_paths(manifest, group) for group in groups(manifest)] == [
        ("head", "middle", "all"),
        ("middle", "all"),
        ("all",),
    ]


@pytest.mark.parametrize("tree", [{}, {"n": 1}, [torch.empty(0, 4)]])
def test_a_state_without_bytes_has_no_group_and_a_state_digest(tree: Any) -> None:
    state = capture(tree)
    assert groups(state.manifest) == ()
    assert state_digest(state, DIGESTER).text.startswith("xxh3-128:")
