"""The device programs themselves, compiled for the CPU: a thread for each lane. Only the fetches are replaced."""

import ctypes
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.state.kernel_cases import (
    CASES,
    ROW,
    TABLE,
    check_copies,
    check_copying,
    check_row_digests,
    check_strided_copies,
    kernel,
    noise,
    twin,
)
from worldmove.state import kernels as package
from worldmove.state.kernels import Fingerprints, RowPrints, Tuning
from worldmove.state.wmf1 import GROUP_ROWS, bytes_digest

CPU = torch.device("cpu")
HERE = Path(__file__).parent / "emulated"
PROGRAMS = Path(package.__file__).with_name("programs.cu")
NAMES = ("fingerprint", "fingerprint_and_copy", "copy_pieces", "digest_rows")
TUNING = Tuning(stages=3, warps=1, copy_threads=32, copy_blocks=2)
FETCHES = ("__device__ __forceinline__ void fetch(", "// Rows on their way")

pytestmark = pytest.mark.skipif(not shutil.which("g++"), reason="there is no g++ to compile the programs for the CPU")


class EmulatedCall:
    def __init__(self, library: ctypes.CDLL, program: str, blocks: int, arguments: Sequence[int]) -> None:
        self._library = library
        self._program = NAMES.index(program)
        self._blocks = blocks
        self._arguments = (ctypes.c_int64 * len(arguments))(*arguments)

    def start(self, stream: int) -> None:
        assert stream == 0
        self._library.start(self._program, self._blocks, self._arguments)


class EmulatedLauncher:
    num_processors = 2

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library

    def call(
        self, program: str, *, blocks: int, threads: int, shared_bytes: int, arguments: Sequence[int]
    ) -> EmulatedCall:
        assert threads == 32
        assert shared_bytes in {0, TUNING.stages * ROW}
        return EmulatedCall(self._library, program, blocks, arguments)


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> Fingerprints:
    folder = tmp_path_factory.mktemp("programs")
    text = PROGRAMS.read_text()
    begin, end = (text.index(mark) for mark in FETCHES)
    shared = "extern __shared__ __align__(128) uint4 rings[];"
    assert shared in text
    whole = (text[:begin] + text[end:]).replace(shared, "")
    source = folder / "programs.cpp"
    source.write_text('#include "warp.h"\n' + whole + '#include "start.h"\n')
    constants = [f"-D{name}={value}" for name, value in TUNING.constants.items()]
    command = ["g++", "-std=c++20", "-O1", "-shared", "-fPIC", "-pthread", "-w", f"-I{HERE}", *constants]
    subprocess.run([*command, "-o", str(folder / "programs.so"), str(source)], check=True)
    return Fingerprints(CPU, tuning=TUNING, launcher_=EmulatedLauncher(ctypes.CDLL(str(folder / "programs.so"))))


@pytest.mark.parametrize("case", CASES)
def test_digests_are_the_twins(kernels: Fingerprints, case: str) -> None:
    memory = noise(64 * ROW, CPU)
    assert kernel(kernels, memory, CASES[case], 5) == twin(memory, CASES[case], 5)


def test_digests_of_words_that_are_all_ones_are_the_twins(kernels: Fingerprints) -> None:
    memory = torch.full((2 * ROW,), 255, dtype=torch.uint8)
    assert kernel(kernels, memory, [[(0, 2 * ROW)]]) == twin(memory, [[(0, 2 * ROW)]])


def test_digest_of_a_whole_group_is_the_twins(kernels: Fingerprints) -> None:
    memory = noise(GROUP_ROWS * ROW, CPU)
    assert kernel(kernels, memory, [[(0, GROUP_ROWS * ROW)]]) == twin(memory, [[(0, GROUP_ROWS * ROW)]])


def test_digest_of_a_leaf_longer_than_a_group_is_the_twins(kernels: Fingerprints) -> None:
    leaf = noise(260 * ROW + 9, CPU)
    plan = kernels.plan_leaves([(leaf.data_ptr(), leaf.numel())])
    assert kernels.launch(plan, TABLE).result() == (bytes_digest(TABLE, leaf.numpy().tobytes()),)


def test_a_second_launch_gives_the_same_digests(kernels: Fingerprints) -> None:
    """Each launch leaves the sums as it found them: zero."""
    memory = noise(20 * ROW, CPU)
    plan = kernels.plan([[(memory.data_ptr(), 20 * ROW)]])
    assert len({kernels.launch(plan, TABLE).result() for _ in range(3)}) == 1
    memory[77] ^= 4
    assert kernels.launch(plan, TABLE).result() == twin(memory, [[(0, 20 * ROW)]])


@pytest.mark.parametrize("shift", [0, 16, 3])
def test_a_launch_that_copies_writes_what_it_digests(kernels: Fingerprints, shift: int) -> None:
    for case in ("whole tiles and a rest", "several extents", "lengths that are no multiple of 16"):
        check_copying(kernels, noise(64 * ROW, CPU), CASES[case], shift)


def test_copies_of_every_alignment_arrive(kernels: Fingerprints) -> None:
    check_copies(kernels.copies, CPU, [0, 1, 2, 15, 16, 17, 31, 33, 64, 200, 333, 5000])


def test_copies_of_pieces_at_equal_steps_arrive(kernels: Fingerprints) -> None:
    check_strided_copies(kernels.copies, CPU)


def test_rows_of_every_alignment_have_the_digests_of_their_twins(kernels: Fingerprints) -> None:
    check_row_digests(RowPrints(kernels.copies), CPU)


def test_the_emulation_would_show_a_wrong_program(kernels: Fingerprints) -> None:
    """A row's place in its group counts, so a program that lost it could not pass."""
    row = noise(ROW, CPU)
    twice = torch.cat((row, row))
    found = kernel(kernels, twice, [[(0, ROW)], [(ROW, ROW)]])
    assert found[0] != found[1]
    assert np.unique(np.frombuffer(b"".join(found), dtype=np.uint64)).size == 4
