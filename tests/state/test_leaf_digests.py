"""Each leaf's digest: equal for equal leaves wherever they lie, and another for any change of that leaf alone."""

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from tests.state.trees import TYPES, Cache, state_of_every_kind
from worldmove.state import Arena, Layout, Xxh3Digester, adopt, capture, materialise
from worldmove.state.kit_double import DoubleKit
from worldmove.state.leaf_digests import first_difference, leaf_digests
from worldmove.state.leaf_sizes import leaf_sizes
from worldmove.state.memory import HostBytes, Part

DIGESTER = Xxh3Digester()


def digests(tree: Any) -> tuple[tuple[str, ...], bytes]:
    state = capture(tree, TYPES)
    return state.manifest.paths(), leaf_digests(state, DIGESTER)


def test_a_state_has_the_same_leaf_digests_in_another_place() -> None:
    state = capture(state_of_every_kind(), TYPES)
    arena = Arena(Layout.of(state.manifest).arena_bytes, "elsewhere")
    again = capture(materialise(state.manifest, adopt(state, arena), arena, TYPES), TYPES)
    assert leaf_digests(again, DIGESTER) == leaf_digests(state, DIGESTER)
    assert len(leaf_digests(state, DIGESTER)) == 8 * len(state.manifest.leaves)


def test_a_change_of_one_leaf_is_named_and_no_other_leaf_differs() -> None:
    before = digests(state_of_every_kind())
    changes: dict[str, Callable[[Any], object]] = {
        "caches[0].k": lambda tree: tree["caches"][0].k.fill_(9),
        "['odd key'].right": lambda tree: tree["odd key"].right.__setitem__(0, 9),
        "[3][2]": lambda tree: tree.__setitem__(3, (*tree[3][:2], 2.5, *tree[3][3:])),
        "rng": lambda tree: tree["rng"].random(),
        "numpy": lambda tree: tree["numpy"].random(),
    }
    for path, change in changes.items():
        tree = state_of_every_kind()
        change(tree)
        after = digests(tree)
        assert first_difference(*before, *after) == path
        different = [
            name for at, name in enumerate(before[0]) if before[1][8 * at : 8 * at + 8] != after[1][8 * at : 8 * at + 8]
        ]
        # caches[0].v views the same memory as caches[0].k.
        assert different in ([path], ["caches[0].k", "caches[0].v"])


def test_a_leaf_that_has_gone_or_come_is_named_and_does_not_change_the_others() -> None:
    rng = random.Random(3)
    first = {"a": torch.zeros(4), "b": Cache(k=torch.ones(3), v=None), "rng": rng}
    without = {name: value for name, value in first.items() if name != "a"}
    assert first_difference(*digests(first), *digests(without)) == "a"
    assert first_difference(*digests(without), *digests(first)) == "a"
    assert first_difference(*digests(first), *digests(first)) is None


def test_sizes_are_the_bytes_that_each_leaf_uses() -> None:
    base = torch.zeros(6, 10)
    state = capture({"row": base[1], "column": base[:, 1], "n": 3, "text": "héé", "array": np.zeros(5), "none": None})
    sizes = {leaf.path: leaf.num_bytes for leaf in leaf_sizes(state.manifest)}
    assert sizes == {"row": 40, "column": 24, "n": 1, "text": 5, "array": 40, "none": 0}


def test_leaves_on_a_device_are_never_brought_to_the_host_and_a_change_of_one_is_named() -> None:
    class Kit(DoubleKit):
        def read(self, part: Part) -> HostBytes:
            raise AssertionError("a leaf was read")

    tree: dict[str, Any] = {"large": torch.arange(400_000.0), "small": torch.arange(3.0), "row": None, "n": 3}
    tree["row"] = tree["large"][:2000]
    kit = Kit()
    before = capture(tree, {}, kit), leaf_digests(capture(tree, {}, kit), DIGESTER)
    assert before[0].manifest.on_device
    tree["large"][-1] += 1
    after = leaf_digests(capture(tree, {}, kit), DIGESTER)
    assert first_difference(before[0].manifest.paths(), before[1], before[0].manifest.paths(), after) == "large"
    assert after[8:] == before[1][8:]
