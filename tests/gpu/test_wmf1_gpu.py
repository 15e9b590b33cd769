"""WMF1 and the fused copies on a real device, against the twin."""

from collections.abc import Iterator
from importlib.util import find_spec

import pytest
import torch

from tests.state.kernel_cases import (
    CASES,
    ROW,
    TABLE,
    addressed,
    check_copies,
    check_copying,
    check_row_digests,
    check_strided_copies,
    kernel,
    noise,
    strided,
    twin,
)
from worldmove.state.kernels import Copies, Fingerprints, RowPrints, leaf_bytes
from worldmove.state.wmf1 import GROUP_ROWS, Table, bytes_digest

GROUP = GROUP_ROWS * ROW

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device"),
    pytest.mark.skipif(not find_spec("cuda"), reason="cuda-bindings is not installed"),
]


@pytest.fixture(scope="module")
def device() -> torch.device:
    return torch.device("cuda", torch.cuda.current_device())


@pytest.fixture(scope="module")
def kernels(device: torch.device) -> Iterator[Fingerprints]:
    yield Fingerprints(device)
    torch.cuda.synchronize(device)


@pytest.mark.parametrize("case", CASES)
def test_digests_are_the_twins(kernels: Fingerprints, device: torch.device, case: str) -> None:
    memory = noise(64 * ROW, device)
    for first_index in (0, 1, 77):
        assert kernel(kernels, memory, CASES[case], first_index) == twin(memory, CASES[case], first_index)


def test_digests_of_many_groups_are_the_twins(kernels: Fingerprints, device: torch.device) -> None:
    memory = noise(24 * GROUP, device)
    groups = [[(begin, min(GROUP, 24 * GROUP - begin))] for begin in range(0, 24 * GROUP, GROUP)]
    groups += [[(16 * number, GROUP - 4096 * number - 16)] for number in range(20)]
    groups += [[(number, GROUP - number)] for number in range(1, 5)]
    assert kernel(kernels, memory, groups, 3) == twin(memory, groups, 3)


def test_digests_of_leaves_of_every_dtype_and_stride_are_the_twins(kernels: Fingerprints, device: torch.device) -> None:
    host = strided(torch.device("cpu"))
    held = {name: leaf_bytes(view) for name, view in strided(device).items()}
    plan = kernels.plan_leaves([(leaf.data_ptr(), leaf.numel()) for leaf in held.values()])
    found = dict(zip(held, kernels.launch(plan, TABLE).result(), strict=True))
    for name, view in host.items():
        assert found[name] == bytes_digest(TABLE, leaf_bytes(view).numpy().tobytes()), name


def test_digest_of_a_leaf_of_many_groups_is_the_twins(kernels: Fingerprints, device: torch.device) -> None:
    leaf = noise(5 * GROUP + 1000, device)
    plan = kernels.plan_leaves([(leaf.data_ptr(), leaf.numel())])
    assert kernels.launch(plan, TABLE).result() == (bytes_digest(TABLE, leaf.cpu().numpy().tobytes()),)


@pytest.mark.parametrize("shift", [0, 16, 4, 1])
@pytest.mark.parametrize("case", ["whole tiles and a rest", "several extents", "lengths that are no multiple of 16"])
def test_a_launch_that_copies_writes_what_it_digests(
    kernels: Fingerprints, device: torch.device, case: str, shift: int
) -> None:
    check_copying(kernels, noise(64 * ROW, device), CASES[case], shift)


def test_copies_of_every_alignment_arrive(device: torch.device) -> None:
    copies = Copies(device)
    for lengths in ([0, 1, 2, 15, 16, 17, 31, 33, 64, 200, 333], [70_001, 5, 40_000]):
        check_copies(copies, device, lengths)


@pytest.mark.parametrize("bit", [0, 31, 8 * ROW - 1, 8 * GROUP - 1, 8 * (2 * GROUP + 4097) + 5])
def test_one_flipped_bit_changes_its_group_and_no_other(kernels: Fingerprints, device: torch.device, bit: int) -> None:
    memory = noise(3 * GROUP, device)
    groups = [[(begin, GROUP)] for begin in range(0, 3 * GROUP, GROUP)]
    plan = kernels.plan(addressed(memory, groups))
    before = kernels.launch(plan, TABLE).result()
    memory[bit // 8] ^= 1 << bit % 8
    after = kernels.launch(plan, TABLE).result()
    assert [one != other for one, other in zip(before, after, strict=True)] == [
        index == bit // (8 * GROUP) for index in range(3)
    ]


def test_a_store_that_was_lost_is_seen(kernels: Fingerprints, device: torch.device) -> None:
    """The target is read again, so 16 bytes that never arrived show, though their source was digested rightly."""
    source, target = noise(2 * GROUP, device), torch.zeros(2 * GROUP, dtype=torch.uint8, device=device)
    groups = [[(0, GROUP)], [(GROUP, GROUP)]]
    plan = kernels.plan(addressed(source, groups), targets=[[address] for ((address, _),) in addressed(target, groups)])
    sent = kernels.launch(plan, TABLE).result()
    assert kernel(kernels, target, groups) == sent
    target[GROUP + 4096 : GROUP + 4096 + 16] = 0
    landed = kernel(kernels, target, groups)
    assert landed[0] == sent[0]
    assert landed[1] != sent[1]


def test_a_launch_follows_what_its_stream_wrote(kernels: Fingerprints, device: torch.device) -> None:
    memory = noise(64 * GROUP, device)
    groups = [[(begin, GROUP)] for begin in range(0, 64 * GROUP, GROUP)]
    plan = kernels.plan(addressed(memory, groups))
    stream = torch.cuda.Stream(device)
    stream.wait_stream(torch.cuda.current_stream(device))
    with torch.cuda.stream(stream):
        memory.bitwise_xor_(0x5A)
    pending = kernels.launch(plan, TABLE, stream=stream)
    assert pending.result() == twin(memory, groups)
    assert pending.ready()


def test_launches_of_one_plan_on_two_streams_do_not_mix(kernels: Fingerprints, device: torch.device) -> None:
    memory = noise(64 * GROUP, device)
    groups = [[(begin, GROUP)] for begin in range(0, 64 * GROUP, GROUP)]
    plan = kernels.plan(addressed(memory, groups))
    torch.cuda.synchronize(device)
    found = []
    tables = [Table.of(bytes([number]) * 32) for number in range(20)]
    streams = [torch.cuda.Stream(device) for _ in range(2)]
    for number, table in enumerate(tables):
        kernels.launch(plan, tables[number - 1], stream=streams[number % 2])
        found.append(kernels.launch(plan, table, stream=streams[1 - number % 2]).result())
    assert found == [kernels.launch(plan, table).result() for table in tables]
    assert len({digests[0] for digests in found}) == len(tables)


def test_a_launch_allocates_nothing(kernels: Fingerprints, device: torch.device) -> None:
    memory = noise(8 * GROUP, device)
    groups = [[(begin + 1, GROUP - 5)] for begin in range(0, 8 * GROUP, GROUP)]
    plan = kernels.plan(addressed(memory, groups))
    kernels.launch(plan, TABLE).result()
    torch.cuda.synchronize(device)
    before = torch.cuda.memory_stats(device)["allocation.all.allocated"]
    kernels.launch(plan, Table.of(b"z" * 32)).result()
    assert torch.cuda.memory_stats(device)["allocation.all.allocated"] == before


def test_a_launch_reads_another_address_once_it_is_shifted_there(kernels: Fingerprints, device: torch.device) -> None:
    memory = noise(8 * GROUP, device)
    groups = [[(0, GROUP)], [(GROUP, 4000), (2 * GROUP + 16, 1000)]]
    plan = kernels.plan(addressed(memory, groups))
    for first, end, by in ((0, 1, 3 * GROUP), (1, 2, 4 * GROUP + 3), (0, 2, -GROUP)):
        pending = kernels.launch(plan, TABLE)  # still reading its old table when the new one is written
        plan.shift([(first, end, by)])
        assert pending.result() == twin(memory, groups)
        groups[first:end] = [[(at + by, length) for at, length in group] for group in groups[first:end]]
        assert kernels.launch(plan, TABLE).result() == twin(memory, groups)


def test_a_plan_of_a_copy_is_pointed_at_other_pieces_while_its_last_copy_runs(device: torch.device) -> None:
    copies, memory = Copies(device), noise(64 * GROUP, device)
    target = torch.zeros_like(memory)
    plan = None
    for number in range(8):
        pieces = [
            (memory.data_ptr() + at, target.data_ptr() + at, GROUP // 2 + number)
            for at in range(number * 8 * GROUP, (number + 1) * 8 * GROUP, GROUP)
        ]
        before, plan = plan, copies.pointed(plan, pieces)
        assert plan is before or number == 0
        done = copies.launch(plan)
    assert done is not None
    done.synchronize()
    for number in range(8):
        for at in range(number * 8 * GROUP, (number + 1) * 8 * GROUP, GROUP):
            end = at + GROUP // 2 + number
            assert torch.equal(target[at:end], memory[at:end])
            assert not target[end : at + GROUP].any()


def test_copies_of_pieces_at_equal_steps_arrive(device: torch.device) -> None:
    check_strided_copies(Copies(device), device)
    torch.cuda.synchronize(device)


def test_rows_of_every_alignment_have_the_digests_of_their_twins(device: torch.device) -> None:
    check_row_digests(RowPrints(Copies(device)), device)
    torch.cuda.synchronize(device)
