"""Whether an engine's spec can be served: what nobody can send, show or reckon with is said before anything begins."""

from worldmove.engine.base import EngineSpec

MAX_FRAMES, MAX_KEYS, MAX_SIDE_PX = 256, 255, 65_535
"""As far as a frame's header counts (docs/play-wire.md)."""
MAX_NAME, MAX_TEXT = 64, 256
RATES = 1e-3, 1e4
"""Frames a second that can be played, recorded and reckoned with."""
TEXTS = ("name", "preset", "weights_sha256", "device")
COUNTS = {"height": MAX_SIDE_PX, "width": MAX_SIDE_PX, "frames_per_block": MAX_FRAMES, "num_threads": 4096}


def fault_of(spec: EngineSpec) -> str | None:
    """Say what is wrong with a spec; None where nothing is."""
    for name in TEXTS:
        value = getattr(spec, name)
        if type(value) is not str or not _is_text(value) or len(value) > MAX_TEXT:
            return f"its {name} is no text of at most {MAX_TEXT} characters"
    for name, most in COUNTS.items():
        value = getattr(spec, name)
        if type(value) is not int or not 1 <= value <= most:
            return f"its {name} is no int from 1 to {most}"
    least, most_rate = RATES
    if type(spec.frames_per_s) not in (int, float) or not least <= spec.frames_per_s <= most_rate:
        return f"its frames_per_s is no int or float from {least:g} to {most_rate:,.0f}"
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
