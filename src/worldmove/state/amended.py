"""A manifest of which some values were read anew: scalars, members of enums, generators' states. Its containers and its
memory are as they were, so that neither is encoded, nor checked, again.
"""

from collections.abc import Mapping
from dataclasses import replace
from itertools import compress, count
from operator import is_not

import msgspec

from worldmove.state.frame import HEADER_BYTES, frame, peek
from worldmove.state.leaf import GeneratorRecord, Leaf
from worldmove.state.leaf_record import LeafRecord
from worldmove.state.manifest import MANIFEST_MAGIC, MAX_MANIFEST_BYTES, Manifest


def amended(before: Manifest, changed: Mapping[int, Leaf], records: tuple[GeneratorRecord, ...]) -> Manifest | None:
    """Return the same with other values: the very object if all are as they were, None if it is too large for one.

    The caller has checked them, that none has a place in memory, and that the generators' kinds are the same.
    """
    if not changed and records == before.generators:
        return before
    leaves, encode = list(before.leaves), msgspec.msgpack.Encoder().encode
    data, begins = memoryview(before.encoded), before.leaf_begins
    parts: list[bytes | memoryview] = []
    done = HEADER_BYTES
    for i, leaf in sorted(changed.items()):
        leaves[i] = LeafRecord(path=leaves[i].path, content=leaf)
        parts += data[done : begins[i]], encode(leaf)
        done = begins[i + 1]
    parts += data[done : begins[-1]], encode(records)
    whole = frame(MANIFEST_MAGIC, peek(before.encoded)[1], b"".join(parts))
    if len(whole) > MAX_MANIFEST_BYTES:
        return None
    return replace(before, leaves=tuple(leaves), generators=records, encoded=whole)


def changed_leaves(before: Manifest, now: Manifest) -> dict[int, Leaf]:
    """Return the leaves that are not as they were, of two manifests with the same containers."""
    which = compress(count(), map(is_not, now.leaves, before.leaves))
    return {i: now.leaves[i].content for i in which if now.leaves[i].content != before.leaves[i].content}
