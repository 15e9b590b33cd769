"""Two values that say what a state is. ``docs/state.md`` has both formulas in words.

The *state digest* has a fixed published seed: any two holders may compare it, at any time. The *move proof* has
the digest of every group of 1 MiB under the attempt's nonce: it shows that these bytes, of this attempt, landed.
"""

import hashlib
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Protocol

import xxhash

from worldmove.state import wmf1
from worldmove.state.by_id import ById
from worldmove.state.capture import Capture, Storage
from worldmove.state.device_digests import device_digests, prepare
from worldmove.state.gate import Latch
from worldmove.state.groups import Group, group_bytes, groups, host_groups
from worldmove.state.manifest import Manifest
from worldmove.state.memory import PendingDigests
from worldmove.state.progress import GetsOn, unheard

DIGEST_BYTES = 16
STATE_SEED = 0x574F524C444D4F56
"""The published seed of every state digest: ``WORLDMOV``."""


class Digester(Protocol):
    """Something that turns bytes of host memory into 16 bytes. Those of a device have WMF1, from the device's kit."""

    @property
    def name(self) -> str:
        """What stands before the colon of a state digest."""
        ...

    def digest(self, data: memoryview | bytes, seed: int) -> bytes:
        """Return 16 bytes that depend on every byte, on their order and number, and on the seed (64 bits)."""
        ...


class Xxh3Digester:
    """xxh3_128, for host memory. Lets other threads run while it reads."""

    name = "xxh3-128"

    def digest(self, data: memoryview | bytes, seed: int) -> bytes:
        """Return the 16 bytes of xxh3_128, most significant first."""
        return xxhash.xxh3_128_digest(data, seed)


@dataclass(frozen=True, slots=True, kw_only=True)
class StateDigest:
    """The digest of a whole state, comparable between any two holders of it."""

    text: str

    def __str__(self) -> str:
        return self.text


def group_digests(capture: Capture, digester: Digester, nonce: bytes, layout_digest: bytes) -> tuple[bytes, ...]:
    """Return the digest of every group, in order. Those on a device are read by one launch, beside the others."""
    return split(Pass(capture, digester, nonce, layout_digest).joined())


def split(joined: bytes) -> tuple[bytes, ...]:
    """Return digests one by one."""
    return tuple([joined[at : at + DIGEST_BYTES] for at in range(0, len(joined), DIGEST_BYTES)])


class Pass:
    """One pass over a state, begun: a device's groups are read beside whatever comes next, after what was started
    before. Host memory is read when the digests are asked for.
    """

    def __init__(
        self, capture: Capture, digester: Digester, nonce: bytes, layout_digest: bytes, behind: Latch | None = None
    ) -> None:
        """Begin it, under an attempt's nonce. ``behind``: what the device waits for before it reads."""
        self._capture = capture
        self._of_host: Callable[[Group], bytes] = lambda group: digester.digest(
            group_bytes(capture, group), _group_seed(group, nonce, layout_digest)
        )
        self._key = wmf1.proof_key(nonce, layout_digest)
        self._pending: PendingDigests | None = None
        self.plan: object = None
        """That of the device's digests, where there is a device."""
        if capture.kit is not None and capture.manifest.on_device:
            prepare(capture)  # once: both passes of a source read the same memory
            self.plan = capture.plans[0]
            self._pending = capture.kit.begin_fingerprints(self.plan, self._key, behind)

    @property
    def storages(self) -> tuple[Storage, ...]:
        """What is read."""
        return self._capture.storages

    def joined(self, gets_on: GetsOn = unheard) -> bytes:
        """Wait, and return the digest of every group, 16 bytes each. Once. Raises TransportError.

        ``gets_on`` hears of a device's groups together, which take little, and of each other one.
        """
        device = self._device()
        gets_on()
        mine = host_groups(ById(self._capture.manifest.storages))
        if not mine:
            return device
        found, begin = list[bytes](), 0
        for number, group in enumerate(mine):  # the device's groups lie in between, in order
            end = (group.index - number) * DIGEST_BYTES
            found += (device[begin:end], self._of_host(group))
            begin = end
            gets_on()
        return b"".join((*found, device[begin:]))

    def _device(self) -> bytes:
        if self._pending is not None:
            return self._pending.joined()
        return b"".join(device_digests(self._capture, self._key)) if self._capture.manifest.on_device else b""


BeginPass = Callable[[Capture], Pass]
"""Begins a pass over a state."""


def state_digest(capture: Capture, digester: Digester) -> StateDigest:
    """Return the digest of manifest, lengths and every used byte, under the published seed."""
    found = _all_groups(capture, lambda g: digester.digest(group_bytes(capture, g), STATE_SEED), wmf1.STATE_KEY)
    return _of_groups(capture.manifest, found, digester)


def state_digest_of_bytes(
    manifest: Manifest, read: Callable[[int], memoryview | bytes], digester: Digester
) -> StateDigest:
    """Return what ``state_digest`` does, from a state's used bytes alone. ``read``: returns the next so many."""
    table, number = wmf1.Table.of(wmf1.STATE_KEY), count()
    found = [
        wmf1.group_digest(table, read(group.num_bytes), next(number))
        if manifest.storages[group.storage].on_device
        else digester.digest(read(group.num_bytes), STATE_SEED)
        for group in groups(manifest)
    ]
    return _of_groups(manifest, found, digester)


def _all_groups(capture: Capture, of_host: Callable[[Group], bytes], key: bytes) -> tuple[bytes, ...]:
    if not capture.manifest.on_device:
        return tuple(of_host(group) for group in groups(capture.manifest))
    found = list(device_digests(capture, key))
    for group in host_groups(ById(capture.manifest.storages)):  # few, and in order
        found.insert(group.index, of_host(group))
    return tuple(found)


def _group_seed(group: Group, nonce: bytes, layout_digest: bytes) -> int:
    text = struct.pack("<QQ", group.index, group.num_bytes)
    seed = hashlib.sha256(b"worldmove group 1\0" + _sized(nonce) + _sized(layout_digest) + text).digest()
    return int.from_bytes(seed[:8], "little")


def _of_groups(manifest: Manifest, found: Sequence[bytes], digester: Digester) -> StateDigest:
    text = manifest.to_bytes()
    parts = [b"worldmove state 1\0", struct.pack("<Q", len(text)), text]
    for group, digest in zip(groups(manifest), found, strict=True):
        parts += (struct.pack("<QQQ", group.index, group.storage, group.num_bytes), digest)
    name = f"{wmf1.NAME}+{digester.name}" if manifest.on_device else digester.name
    return StateDigest(text=f"{name}:{digester.digest(b''.join(parts), STATE_SEED).hex()}")


def _sized(data: bytes) -> bytes:
    return struct.pack("<Q", len(data)) + data
