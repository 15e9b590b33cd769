import gc
import weakref
from typing import Any

import numpy as np
import pytest
import torch

from tests.state.host import host_memory
from worldmove.errors import StateRefused
from worldmove.state import Extent, capture


def test_a_capture_shows_the_live_bytes_and_copies_none() -> None:
    tensor = torch.zeros(4)
    state = capture({"x": tensor})
    assert state.storages[0].address == tensor.data_ptr()
    tensor[1] = 2.5
    assert bytes(state.storages[0].view(Extent(offset=4, length=4))) == np.float32(2.5).tobytes()


def test_nobody_can_write_through_a_capture() -> None:
    state = capture({"x": torch.zeros(4)})
    assert state.storages[0].view(Extent(offset=0, length=4)).readonly
    with pytest.raises(ValueError, match="read-only"):
        host_memory(state.storages[0])[0] = 1


def test_a_capture_keeps_the_memory_that_it_shows() -> None:
    memory = np.arange(100, dtype=np.uint8)
    gone = weakref.ref(memory)
    state = capture({"x": torch.from_numpy(memory)})
    del memory
    gc.collect()
    assert gone() is not None
    assert bytes(state.storages[0].view(Extent(offset=3, length=2))) == b"\3\4"
    del state
    gc.collect()
    assert gone() is None


def test_storages_stand_in_the_order_in_which_the_paths_name_them() -> None:
    a, b = torch.zeros(10), torch.zeros(20)
    first = capture({"x": b, "y": a, "z": b[3:]})
    assert [storage.num_bytes for storage in first.storages] == [80, 40]
    assert [storage.num_bytes for storage in capture({"x": a, "y": b}).storages] == [40, 80]


def test_num_bytes_counts_every_used_byte_once() -> None:
    base = torch.zeros(100)
    state = capture({"a": base[:60], "b": base[40:80], "c": base[90:], "d": base[:1].expand(50)})
    assert state.num_bytes == 4 * 90
    assert state.storages[0].used == (Extent(offset=0, length=320), Extent(offset=360, length=40))
    assert state.storages[0].num_bytes == 400


def test_scalars_and_generators_are_copied_at_the_boundary() -> None:
    generator = torch.Generator().manual_seed(1)
    state = capture({"rng": generator, "n": 1})
    before = state.manifest.to_bytes()
    torch.rand(3, generator=generator)
    assert state.manifest.to_bytes() == before
    assert capture({"rng": generator, "n": 1}).manifest != state.manifest


def test_a_view_in_too_many_pieces_is_refused_by_path() -> None:
    base = torch.zeros(1 << 18)
    assert capture({"x": base[::2][: 1 << 15]}).num_bytes == 1 << 17
    with pytest.raises(StateRefused, match="131072 pieces") as refused:
        capture({"fine": torch.zeros(3), "x": base[::2]})
    assert refused.value.path == "x"


def test_pieces_that_other_leaves_fill_up_are_no_pieces() -> None:
    pair = torch.zeros(1 << 18, 2)
    state = capture({"k": pair[:, 0], "v": pair[:, 1]})
    assert state.storages[0].used == (Extent(offset=0, length=1 << 21),)


def test_a_scalar_beyond_the_limit_is_refused_by_path() -> None:
    with pytest.raises(StateRefused) as refused:
        capture({"log": ["short", "x" * (1 << 21)]})
    assert refused.value.path == "log[1]"


def test_a_state_whose_manifest_would_be_too_long_is_refused() -> None:
    with pytest.raises(StateRefused, match="manifest has"):
        capture(["x" * (1 << 20)] * 17)


@pytest.mark.parametrize("tree", [{}, [], None, (), {"a": None}])
def test_a_state_without_memory_is_a_state(tree: Any) -> None:
    state = capture(tree)
    assert (state.num_bytes, state.storages) == (0, ())
