"""A gate: what waits for it waits until another process, or this host, has opened it in this very attempt."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator

import numpy as np
import pytest
import torch

from worldmove.errors import TransportError
from worldmove.state.arena import Arena
from worldmove.state.capture import capture
from worldmove.state.digest import Pass, Xxh3Digester
from worldmove.state.gate import Gate, Latch, OwnGate, number_of, opened_gate
from worldmove.state.kit_double import DoubleKit
from worldmove.state.memory import PendingCopy, Word
from worldmove.units import PAGE_BYTES

NONCE = bytes(range(32))
OPENS = """
import mmap, sys
page = mmap.mmap(int(sys.argv[1]), 4096)
sys.stdin.readline()
number = int(sys.argv[2])
at = 4 * (number % 1024)
page[at : at + 4] = number.to_bytes(4, "little")
sys.stdin.readline()
"""
"""The other process: at the first word it does what a device does, and it lives until the second."""


@pytest.fixture
def kit() -> DoubleKit:
    return DoubleKit(least_bytes=1)


@pytest.fixture
def gate(kit: DoubleKit) -> Iterator[OwnGate]:
    gate = OwnGate(kit)
    yield gate
    gate.release()


@pytest.fixture
def other(gate: OwnGate) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        [sys.executable, "-S", "-c", OPENS, str(gate.fd), str(number_of(NONCE))],
        stdin=subprocess.PIPE, pass_fds=[gate.fd],
    )  # fmt: skip
    yield process
    process.kill()
    process.communicate()


def passed(kit: DoubleKit, tensor: torch.Tensor, behind: Latch | None) -> Pass:
    return Pass(capture({"x": tensor}, {}, kit), Xxh3Digester(), NONCE, b"layout", behind)


def test_a_pass_waits_until_another_process_opens_the_gate_and_reads_what_is_there_then(
    kit: DoubleKit, gate: OwnGate, other: subprocess.Popen[bytes]
) -> None:
    tensor, latch = torch.zeros(1 << 18), gate.for_number(number_of(NONCE))
    before = passed(kit, tensor, None).joined()
    behind, found = passed(kit, tensor, latch), list[bytes]()
    waiting = threading.Thread(target=lambda: found.append(behind.joined()))
    waiting.start()
    tensor[7] = 1.0
    assert not latch.wait(0.02)
    assert found == []
    assert other.stdin is not None
    other.stdin.write(b"open\n")
    other.stdin.flush()
    waiting.join(10.0)
    assert latch.is_open()
    assert found == [passed(kit, tensor, None).joined()] != [before]


def test_after_the_other_process_has_died_this_host_opens_the_gate(
    kit: DoubleKit, gate: OwnGate, other: subprocess.Popen[bytes]
) -> None:
    tensor, latch = torch.ones(1024), gate.for_number(number_of(NONCE))
    behind = passed(kit, tensor, latch)
    other.kill()
    other.wait()
    assert not latch.wait(0.0)
    latch.open()
    assert behind.joined() == passed(kit, tensor, None).joined()


def test_who_knew_the_number_of_an_earlier_attempt_does_not_open_the_gate_in_this_one(gate: OwnGate) -> None:
    earlier, now = (gate.for_number(number_of(bytes([number]) * 32)) for number in (1, 2))
    earlier.open()
    assert earlier.is_open()
    assert not now.is_open()
    assert 0 not in (earlier.number, now.number)


@pytest.mark.parametrize("apart", [1, 1024], ids=["their own words", "one word"])
def test_what_an_earlier_attempts_end_writes_late_shuts_nothing_again_and_nobody_waits_for_it(
    kit: DoubleKit, gate: OwnGate, apart: int
) -> None:
    earlier, now = gate.for_number(7), gate.for_number(7 + apart)
    passed(kit, torch.ones(1024), earlier)
    earlier.open()
    assert earlier.is_open()
    gate.open_after_pulls(now.number)  # by the other end's device, before the pass is begun here
    behind = passed(kit, torch.ones(1024), now)
    assert now.is_open()
    gate.open_after_pulls(earlier.number)
    taken = threading.Thread(target=lambda: (behind.joined(), kit.allocate(PAGE_BYTES)), daemon=True)
    taken.start()
    taken.join(10.0)
    assert not taken.is_alive()
    assert gate.says(now.number) is (apart == 1)
    assert not now.was_given_up


def test_a_page_that_its_owner_could_shrink_is_no_gate(kit: DoubleKit) -> None:
    arena = Arena(2 * PAGE_BYTES, "too large")
    with pytest.raises(TransportError, match="not a page that stays"):
        opened_gate(os.dup(arena.fd), kit)
    with pytest.raises(TransportError, match="not a page that stays"):
        opened_gate(plain_page(), kit)


def test_a_device_that_does_not_write_has_no_gate(kit: DoubleKit, monkeypatch: pytest.MonkeyPatch) -> None:
    done = kit.write_after_pulls(Word(int(np.zeros(1, dtype="<u4").ctypes.data), 0))

    def writes_nothing(word: Word) -> PendingCopy:
        return done

    unpinned: list[Gate] = []
    monkeypatch.setattr(kit, "write_after_pulls", writes_nothing)
    monkeypatch.setattr(kit, "pin", lambda part: lambda: unpinned.append(part))
    with pytest.raises(TransportError, match="does not write"):
        OwnGate(kit)
    assert len(unpinned) == 1


def plain_page() -> int:
    descriptor = os.memfd_create("plain")
    os.ftruncate(descriptor, PAGE_BYTES)
    return descriptor
