"""The device's own order: a pass behind a gate reads nothing before it is open, whoever opens it, and nobody waits."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.gpu.children import environment
from tests.gpu.other_process import SIZE
from tests.gpu.test_peer import words_of
from tests.gpu.timing import timed
from tests.state.kernel_cases import TABLE
from worldmove.state.device_arena import DeviceArena
from worldmove.state.gate import Latch, OwnGate, number_of
from worldmove.state.kits import kit_of
from worldmove.state.memory import Part

ROOT = Path(__file__).parents[2]
MIB = 1 << 20
A_WORKERS = 8
"""Streams, beside the kit's: an engine has one."""
AT_ONCE_MS = 2000.0
"""What waits for the gate takes ten times as long."""
MANY = 400
"""Pulls of 256 MiB: 40 ms and more, on one GPU as between two."""


@pytest.fixture
def arena(kit: Any) -> Iterator[DeviceArena]:
    arena = DeviceArena(SIZE, "source", kit)
    words_of(kit, arena).copy_(torch.arange(SIZE // 8, device=kit.device))
    torch.cuda.synchronize()
    yield arena
    arena.close()


@pytest.fixture
def latch(arena: DeviceArena) -> Iterator[Latch]:
    """A gate that is opened in the end, whoever waits: what a device waits for cannot be interrupted."""
    latch = arena.make_gate().for_number(number_of(bytes(32)))
    at_last = threading.Timer(20.0, latch.open)
    at_last.start()
    yield latch
    at_last.cancel()


def planned(kit: Any, arena: DeviceArena) -> Any:
    return kit.plan([[Part(arena.address + at, MIB)] for at in range(0, SIZE, MIB)])


class Opener:
    """The other process."""

    def __init__(self, device: str, arena: DeviceArena, latch: Latch, num_pulls: int, *more: str) -> None:
        gate = latch.gate
        assert isinstance(gate, OwnGate)
        self.process = subprocess.Popen(
            [
                *(sys.executable, "-m", "tests.gpu.gate_opener", device, arena.handle.hex()),
                *(str(gate.fd), str(latch.number), str(num_pulls), *more),
            ],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=environment(), pass_fds=[gate.fd],
        )  # fmt: skip
        self.hears("ready")

    def hears(self, word: str) -> None:
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == word + "\n"

    def says(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("go\n")
        self.process.stdin.flush()

    def close(self) -> None:
        if self.process.poll() is None:
            os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            pipe.close()


def compute_on(streams: Sequence[torch.cuda.Stream]) -> None:
    """Do what a resident does, on whichever of the device's queues these have: ``gate_queues`` counts them."""
    for stream in streams:
        with torch.cuda.stream(stream):
            assert int(torch.ones(1 << 16, device="cuda").sum()) == 1 << 16


def test_a_pass_behind_a_gate_reads_what_is_there_when_it_is_opened_and_holds_up_nothing_else(
    kit: Any, arena: DeviceArena, latch: Latch
) -> None:
    plan, other = planned(kit, arena), kit.plan([[Part(arena.address, MIB)]])
    before = kit.fingerprints(plan, TABLE.key)
    small = kit.fingerprints(other, TABLE.key)
    streams = [torch.cuda.current_stream(), *(torch.cuda.Stream() for _ in range(A_WORKERS))]
    beside: dict[str, Callable[[], object]] = {
        **{f"stream {number}": partial(compute_on, [stream]) for number, stream in enumerate(streams)},
        "fingerprints": lambda: kit.fingerprints(other, TABLE.key),
        "poison": DeviceArena(MIB, "neighbour", kit).poison,
    }
    timed(**beside)  # kernels are loaded, the first time, and memory is taken: both wait for all that a device does
    pending = kit.begin_fingerprints(plan, TABLE.key, latch)
    took = timed(**beside)
    assert max(took.values()) < AT_ONCE_MS, took
    assert kit.fingerprints(other, TABLE.key) == small
    arena.poison()
    assert not latch.is_open()
    assert not pending._parts[0].ready()
    latch.open()
    joined = pending.joined()
    assert joined == b"".join(kit.fingerprints(plan, TABLE.key)) != b"".join(before)


def test_two_gates_wait_apart(kit: Any, arena: DeviceArena, latch: Latch) -> None:
    other = OwnGate(kit)
    plans = [kit.plan([[Part(arena.address + at, MIB)]]) for at in (0, MIB)]
    expected = [b"".join(kit.fingerprints(plan, TABLE.key)) for plan in plans]
    first = kit.begin_fingerprints(plans[0], TABLE.key, latch)
    second = kit.begin_fingerprints(plans[1], TABLE.key, other.for_number(7))
    other.say(7)
    assert second.joined() == expected[1]
    assert not first._parts[0].ready()
    latch.open()
    assert first.joined() == expected[0]
    other.release()


def test_a_kit_opens_a_gate_behind_its_pulls_and_not_before(kit: Any, arena: DeviceArena, latch: Latch) -> None:
    destination = DeviceArena(SIZE, "destination", kit)
    pieces = [(arena.address, destination.address, SIZE)]
    started = [kit.start_pull(pieces) for _ in range(MANY // 4)]
    latch.gate.open_after_pulls(latch.number)
    pending = kit.begin_fingerprints(planned(kit, arena), TABLE.key, latch)
    was_open, was_done = latch.is_open(), started[-1].is_done()
    assert not was_open or was_done
    joined = pending.joined()
    assert started[-1].is_done()
    assert joined == b"".join(kit.fingerprints(planned(kit, arena), TABLE.key))


DEVICES = ["cuda:0", pytest.param("cuda:1", marks=pytest.mark.two_gpus)]


@pytest.mark.parametrize("device", DEVICES)
def test_another_processs_device_opens_the_gate_behind_its_pulls(
    kit: Any, arena: DeviceArena, latch: Latch, device: str
) -> None:
    other = Opener(device, arena, latch, MANY)
    try:
        plan = planned(kit, arena)
        expected = b"".join(kit.fingerprints(plan, TABLE.key))
        pending = kit.begin_fingerprints(plan, TABLE.key, latch)
        other.says()
        other.hears("begun")
        assert not latch.is_open()  # it is asked of the device, and the pulls are still under way
        begun = time.monotonic()
        assert pending.joined() == expected
        assert latch.is_open()
        assert time.monotonic() - begun < 10.0
        other.says()
        assert other.process.wait(20.0) == 0
    finally:
        latch.open()
        other.close()


@pytest.mark.parametrize("device", DEVICES)
def test_a_destination_killed_in_mid_pull_leaves_no_work_behind_once_this_host_opens_the_gate(
    kit: Any, arena: DeviceArena, latch: Latch, device: str
) -> None:
    other = Opener(device, arena, latch, MANY, "stuck")
    neighbour = torch.arange(1 << 20, device="cuda")
    looks: dict[str, Callable[[], object]] = {
        "equal": lambda: torch.equal(neighbour, torch.arange(1 << 20, device="cuda")),
        "read": lambda: kit.read(arena.part(8, 8)),
    }
    timed(**looks)  # the kernels of a look are loaded the first time, and that waits for all that a device does
    try:
        plan = planned(kit, arena)
        expected = b"".join(kit.fingerprints(plan, TABLE.key))
        pending = kit.begin_fingerprints(plan, TABLE.key, latch)
        other.says()
        other.hears("begun")
        other.close()
        time.sleep(0.05)
        assert not latch.is_open()
        assert not pending._parts[0].ready()
        took = timed(**looks)
        assert max(took.values()) < AT_ONCE_MS, took
        assert not latch.is_open()
        assert torch.equal(neighbour, torch.arange(1 << 20, device="cuda"))
        latch.open()
        assert pending.joined() == expected
    finally:
        latch.open()
        other.close()
    assert kit.read(arena.part(8, 8)).tolist()[0] == 1


def test_a_gate_between_two_kits_of_one_process(kit: Any, arena: DeviceArena, latch: Latch) -> None:
    if torch.cuda.device_count() < 2:
        pytest.skip("only one CUDA device is here")
    other: Any = kit_of("cuda:1")
    pending = kit.begin_fingerprints(planned(kit, arena), TABLE.key, latch)
    other.write_after_pulls(latch.word).wait()
    assert pending.joined() == b"".join(kit.fingerprints(planned(kit, arena), TABLE.key))
