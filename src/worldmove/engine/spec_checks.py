"""Whether an engine's spec can be served: what nobody can send, show or reckon with is said before anything begins."""

from worldmove.engine.base import EngineSpec
from worldmove.limits import (
    LEAST_RATE,
    MAX_BLOB_BYTES,
    MAX_FRAMES,
    MAX_KEYS,
    MAX_NAME,
    MAX_SIDE_PX,
    MAX_THREADS,
    MOST_RATE,
)

MAX_TITLE = 256
"""Characters of what an engine is called by."""
TEXTS = ("name", "preset", "weights_sha256", "device")
COUNTS = {"height": MAX_SIDE_PX, "width": MAX_SIDE_PX, "frames_per_block": MAX_FRAMES, "num_threads": MAX_THREADS}


def fault_of(spec: EngineSpec) -> str | None:
    """Say what is wrong with a spec; None where nothing is."""
    for name in TEXTS:
        value = getattr(spec, name)
        if type(value) is not str or not _is_text(value) or len(value) > MAX_TITLE:
            return f"its {name} is no text of at most {MAX_TITLE} characters"
    for name, most in COUNTS.items():
        value = getattr(spec, name)
        if type(value) is not int or not 1 <= value <= most:
            return f"its {name} is no int from 1 to {most}"
    if type(spec.frames_per_s) not in (int, float) or not LEAST_RATE <= spec.frames_per_s <= MOST_RATE:
        return f"its frames_per_s is no int or float from {LEAST_RATE:g} to {MOST_RATE:,.0f}"
    num_bytes = spec.frames_per_block * spec.height * spec.width * 3
    if num_bytes > MAX_BLOB_BYTES:
        return f"its height, width and frames_per_block make {num_bytes:,} bytes a block, more than {MAX_BLOB_BYTES:,}"
    return _fault_of_keys(spec.keys)


def _fault_of_keys(keys: object) -> str | None:
    if type(keys) is not tuple or not all(_is_text(key) and 0 < len(key) <= MAX_NAME for key in keys):
        return f"its keys are no tuple of names of 1 to {MAX_NAME} characters"
    if len(keys) > MAX_KEYS or len({*keys}) < len(keys):
        return f"its keys are more than {MAX_KEYS}, or one is there twice"
    return None


def _is_text(value: object) -> bool:
    """Whether it is a str that can be sent; a member of an enumeration of such may be one."""
    if not isinstance(value, str):
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True
