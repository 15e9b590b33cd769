from typing import Any

import numpy as np
import pytest
import torch

from tests.state.trees import TYPES, state_of_every_kind
from worldmove.errors import ManifestError
from worldmove.state import Arena, Layout, adopt, capture, materialise

MANIFEST = capture(state_of_every_kind(), TYPES).manifest


def test_a_layout_says_what_is_known_before_the_freeze_and_nothing_of_values() -> None:
    layout = Layout.of(MANIFEST)
    later = state_of_every_kind()
    later["rng"].random()
    later[3] = (False, 70, -3.5, 2j, "other", b"b", np.float32(4))
    assert Layout.of(capture(later, TYPES).manifest) == layout
    assert Layout.from_bytes(layout.to_bytes()) == layout
    assert [leaf.kind for leaf in layout.leaves[:5]] == [
        "tensor float32",
        "tensor float32",
        "tensor complex64",
        "none",
        "enum Season",
    ]


def test_the_layouts_digest_changes_with_each_of_its_parts() -> None:
    digests = {
        Layout.of(capture(tree).manifest, arena_bytes=size).digest
        for tree in (
            {"a": torch.zeros(2)},
            {"b": torch.zeros(2)},
            {"a": torch.zeros(1, 2)},
            {"a": torch.zeros(2).int()},
        )
        for size in (1 << 20, 1 << 21)
    }
    assert len(digests) == 8


def test_the_arena_that_a_layout_asks_for_holds_the_state_at_any_alignment() -> None:
    for shift in range(0, 256, 36):
        tree = [torch.zeros(400, dtype=torch.uint8)[0:] for _ in range(5)]
        views = [torch.from_numpy(np.zeros(1000, dtype=np.uint8)[shift + i : shift + i + 300]) for i in range(5)]
        state = capture([*tree, *views])
        arena = Arena(Layout.of(state.manifest).arena_bytes, "layout")
        assert len(materialise(state.manifest, adopt(state, arena), arena)) == 10


@pytest.mark.parametrize("change", [lambda d: d[:-1], lambda d: d + b"\0", lambda d: b"WMMF" + d[4:], lambda d: d[:20]])
def test_bytes_that_are_no_layout_are_refused(change: Any) -> None:
    with pytest.raises(ManifestError):
        Layout.from_bytes(change(Layout.of(MANIFEST).to_bytes()))
