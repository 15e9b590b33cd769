"""What the device kernels are asked, on whatever device: groups in every shape, and the answers of the twin."""

import warnings
from collections.abc import Sequence

import numpy as np
import torch

from worldmove.state import wmf1
from worldmove.state.dtypes import TORCH_ITEM_BYTES
from worldmove.state.kernels import Copies, Fingerprints, RowPrints
from worldmove.state.row_digests import row_digests
from worldmove.state.rows import Rows

TABLE = wmf1.Table.of(bytes(range(32)))
ROW = wmf1.ROW_BYTES

Group = list[tuple[int, int]]
"""Offset in a memory and length of each extent."""

CASES: dict[str, list[Group]] = {
    "one whole row": [[(0, ROW)]],
    "whole tiles and a rest": [[(0, 9 * ROW)], [(16 * ROW, 4 * ROW)], [(32 * ROW, 5 * ROW + 16)]],
    "less than a row": [[(0, 16)], [(64, 4080)], [(8192, 1024)]],
    "lengths that are no multiple of 16": [[(0, 8)], [(64, 7)], [(ROW, ROW + 1)], [(4 * ROW, 2 * ROW - 1)]],
    "addresses that are no multiple of 16": [[(4, ROW)], [(8200, 48)], [(4 * ROW + 3, 3 * ROW)], [(9 * ROW + 1, 1)]],
    "several extents": [
        [(0, 48), (100, 3), (200, ROW)], [(3 * ROW, ROW), (5 * ROW, ROW)], [(7 * ROW + 2, 5), (8 * ROW, 11)],
    ],
    "more groups than programs": [[(index * 64, 64)] for index in range(20)],
    "a group without bytes": [[], [(0, 64)], []],
    "no group": [],
}  # fmt: skip


STRIDES: dict[str, tuple[int, tuple[int, ...], tuple[int, ...]]] = {
    "in order": (0, (64, 24), (24, 1)),
    "turned": (3, (23, 60), (1, 24)),
    "with gaps": (1, (20, 7), (72, 3)),
    "expanded": (5, (9, 40, 4), (0, 1, 0)),
    "overlapping": (0, (1000, 5), (1, 1)),
    "single": (7, (), ()),
    "empty": (7, (3, 0), (5, 1)),
}
"""Offset, shape and strides, in elements, of views of 64 x 24 elements."""


def noise(num_bytes: int, device: torch.device, seed: int = 1) -> torch.Tensor:
    """Random bytes, the same for every device."""
    found = torch.from_numpy(np.random.default_rng(seed).integers(0, 256, num_bytes, dtype=np.uint8))
    return found.to(device)


def addressed(memory: torch.Tensor, groups: Sequence[Group]) -> list[list[tuple[int, int]]]:
    """The groups at the addresses of a memory."""
    return [[(memory.data_ptr() + begin, length) for begin, length in group] for group in groups]


def twin(memory: torch.Tensor, groups: Sequence[Group], first_index: int = 0) -> tuple[bytes, ...]:
    """What the twin says of the groups."""
    host = memory.cpu().numpy()
    parts = (b"".join(host[begin : begin + length].tobytes() for begin, length in group) for group in groups)
    return tuple(wmf1.group_digest(TABLE, part, first_index + index) for index, part in enumerate(parts))


def kernel(
    kernels: Fingerprints, memory: torch.Tensor, groups: Sequence[Group], first_index: int = 0
) -> tuple[bytes, ...]:
    """What the kernels say of the groups."""
    return kernels.launch(kernels.plan(addressed(memory, groups), first_index + np.arange(len(groups))), TABLE).result()


def check_copying(kernels: Fingerprints, memory: torch.Tensor, groups: Sequence[Group], shift: int) -> None:
    """A launch that copies gives the same digests, and writes the groups' bytes and no others."""
    host = memory.cpu()
    target, expected = noise(memory.numel() + shift, memory.device, 2), noise(memory.numel() + shift, host.device, 2)
    targets = [[target.data_ptr() + shift + begin for begin, _ in group] for group in groups]
    plan = kernels.plan(addressed(memory, groups), targets=targets)
    assert kernels.launch(plan, TABLE).result() == twin(memory, groups)
    for begin, length in (extent for group in groups for extent in group):
        expected[shift + begin : shift + begin + length] = host[begin : begin + length]
    assert torch.equal(target.cpu(), expected)


def check_copies(copies: Copies, device: torch.device, lengths: Sequence[int]) -> None:
    """Pieces of every alignment of source and target arrive, and nothing beside them is touched."""
    room = max(lengths) + 64
    source, target = noise(256 * room, device), noise(256 * room, device, 2)
    host, expected = source.cpu(), target.cpu()
    pieces = []
    for number in range(256):
        begin, to = number * room + number % 16, number * room + 16 + number // 16
        length = lengths[number * 7 % len(lengths)]
        pieces.append((source.data_ptr() + begin, target.data_ptr() + to, length))
        expected[to : to + length] = host[begin : begin + length]
    copies.launch(copies.plan(pieces))
    assert torch.equal(target.cpu(), expected)


LATTICES = (
    *((0, 0, 6144, 9, 12288, 6144), (1 << 17, 1 << 17, 48, 200, 64, 48), (200_003, 200_007, 40, 30, 44, 48)),
    *((230_001, 230_000, 7, 50, 11, 9), (240_000, 240_008, 640, 1, 0, 0), (250_000, 250_000, 16, 100, 32, 16)),
)
"""Source, target, bytes, how many, and the steps of both."""


def check_strided_copies(copies: Copies, device: torch.device) -> None:
    """Pieces at equal steps, and others among them, arrive, and nothing beside them is touched."""
    source, target = noise(1 << 18, device), noise(1 << 18, device, 2)
    host, expected = source.cpu(), target.cpu()
    pieces = []
    for begin, to, length, count, step, other_step in LATTICES:
        for number in range(count):
            at, there = begin + number * step, to + number * other_step
            pieces.append((source.data_ptr() + at, target.data_ptr() + there, length))
            expected[there : there + length] = host[at : at + length]
    copies.launch(copies.plan(pieces))
    assert torch.equal(target.cpu(), expected)


def check_row_digests(prints: RowPrints, device: torch.device) -> None:
    """Rows of every alignment, alone and side by side, short and as long as they may be."""
    memory = noise(1 << 17, device)
    memory[4096:8192] = 0
    offsets: list[int] = []
    lengths: list[int] = []
    at = 0
    for begin, length, count, step in (
        *((0, 4096, 5, 4096), (20480, 3072, 4, 3072), (32768, 16, 40, 16), (33792, 24, 20, 32), (35072, 8, 9, 8)),
        *((36000, 12, 9, 12), (36500, 520, 5, 524), (40001, 1, 3, 5), (40031, 37, 20, 41), (41000, 4095, 2, 4096)),
        *((50000, 4, 7, 4), (50100, 3, 1, 0), (50104, 1000, 9, 1000), (60000, 64, 3, 640), (62000, 512, 1, 0)),
    ):
        assert begin >= at
        offsets += [begin + number * step for number in range(count)]
        lengths += [length] * count
        at = offsets[-1] + length
    rows = Rows(offsets=np.array(offsets, dtype=np.int64), lengths=np.array(lengths, dtype=np.int64))
    expected = row_digests(memory.cpu().numpy(), rows).tolist()
    for _ in range(2):
        found = prints.launch(memory.data_ptr(), rows.offsets, rows.lengths)
        assert found.cpu().numpy().view(np.uint64).tolist() == expected
    assert len(prints.launch(memory.data_ptr(), rows.offsets[:0], rows.lengths[:0])) == 0


def strided(device: torch.device) -> dict[str, torch.Tensor]:
    """A view of every carried dtype and every kind of stride."""
    found = {}
    for name, item_bytes in TORCH_ITEM_BYTES.items():
        raw = noise(64 * 24 * item_bytes, device, len(name))
        storage, dtype = raw.untyped_storage(), getattr(torch, name)
        for kind, (offset, shape, stride) in STRIDES.items():
            found[f"{name} {kind}"] = _without_elements(dtype, device).set_(storage, offset, shape, stride)
    return found


def _without_elements(dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "ComplexHalf support is experimental")
        return torch.empty(0, dtype=dtype, device=device)


def row_major(view: torch.Tensor) -> bytes:
    """The canonical bytes, element by element, from the definition of a stride."""
    size = view.element_size()
    memory = torch.empty(0, dtype=torch.uint8, device=view.device).set_(view.untyped_storage()).cpu().numpy()
    places = np.array(view.storage_offset())
    for count, stride in zip(view.shape, view.stride(), strict=True):
        places = places[..., None] + np.arange(count) * stride
    found = memory[(places.reshape(-1, 1) * size + np.arange(size)).reshape(-1)]
    return bytes(found.tobytes())
