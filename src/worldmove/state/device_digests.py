"""The digests of a device's groups, and what is worked out for them before they are needed."""

from collections.abc import Sequence
from itertools import chain, count

import numpy as np
from numpy.typing import NDArray

from worldmove.state import wmf1
from worldmove.state.by_id import ById
from worldmove.state.capture import Capture, DeviceStorage
from worldmove.state.groups import device_places, group_bytes, groups
from worldmove.state.memory import MemoryKit, Part


def prepare(capture: Capture, early: Sequence[int] = ()) -> None:
    """Work out how the device's digests are taken, before they are needed.

    ``early``: storages that are brought early, and are read for the second time by themselves.
    """
    groups(capture.manifest)
    if capture.kit is not None and capture.manifest.on_device and not capture.plans:
        places = device_places(ById(capture.manifest.storages))
        first_groups = [range(begin, end) for begin, end in places[list(early)].tolist()]
        capture.plans.append(capture.kit.plan(_device_parts(capture), [*chain.from_iterable(first_groups)]))


def carried_over(before: Capture, shifts: NDArray[np.int64]) -> list[object]:
    """Take what was prepared for an earlier capture, which is of no use any more, for one whose storages lie so many
    bytes further. Returns what its ``plans`` are.
    """
    if not before.plans or before.kit is None:
        return []
    places = device_places(ById(before.manifest.storages))
    moved = np.flatnonzero((shifts != 0) & (places[:, 1] > places[:, 0]))
    return [before.kit.replan(before.plans.pop(), np.column_stack((places[moved], shifts[moved])))]


def prepare_key(kit: MemoryKit, nonce: bytes, layout_digest: bytes) -> None:
    """Draw the coefficients of an attempt's proof, before they are needed."""
    kit.prepare_key(wmf1.proof_key(nonce, layout_digest))


def device_digests(capture: Capture, key: bytes) -> Sequence[bytes]:
    """Return WMF1 of the device's groups, numbered among themselves; of a copy in host memory, by the twin."""
    if capture.kit is not None:
        prepare(capture)  # once: both passes of a source read the same memory
        return capture.kit.fingerprints(capture.plans[0], key)
    table, number = wmf1.Table.of(key), count()
    records = capture.manifest.storages
    mine = (group for group in groups(capture.manifest) if records[group.storage].on_device)
    return [wmf1.group_digest(table, group_bytes(capture, group), next(number)) for group in mine]


def _device_parts(capture: Capture) -> list[list[Part]]:
    parts = []
    for group in groups(capture.manifest):
        storage = capture.storages[group.storage]
        if isinstance(storage, DeviceStorage):
            parts.append([storage.part(extent) for extent in group.extents])
    return parts
