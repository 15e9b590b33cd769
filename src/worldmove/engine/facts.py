"""What an engine is, as fields of an environment: where they differ, two processes play different worlds."""

import hashlib
import json
from collections.abc import Sequence

from worldmove.engine.base import EngineSpec

MAX_SAID = 256
"""Characters of a field: what is longer is said by its digest."""


def facts_of(spec: EngineSpec) -> dict[str, str]:
    """Return the fields of a spec, all of it; an environment has each as ``engine.<name>``.

    Of its device only the kind: the number is this machine's, and says nothing of what is computed.
    """
    return {
        "name": spec.name,
        "preset": spec.preset,
        "weights_sha256": spec.weights_sha256,
        "geometry": f"{spec.height}x{spec.width}, {spec.frames_per_block} frames a block",
        "frames_per_s": f"{float(spec.frames_per_s)!r}",
        "keys": _said(spec.keys),
        "num_threads": str(spec.num_threads),
        "device": spec.device.partition(":")[0],
    }


def fields_of(spec: EngineSpec) -> dict[str, str]:
    """Return the same by the names that an environment has for them."""
    return {f"engine.{name}": value for name, value in facts_of(spec).items()}


def _said(keys: Sequence[str]) -> str:
    """Say the keys in their order, so that no two lists read alike."""
    text = json.dumps(keys, allow_nan=False)
    if len(text) <= MAX_SAID:
        return text
    return f"{len(keys)} keys, SHA-256 {hashlib.sha256(text.encode()).hexdigest()}"
