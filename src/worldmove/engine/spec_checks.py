"""Whether an engine's spec can be served: what nobody can send, show or reckon with is said before anything begins."""

from math import isfinite

from worldmove.engine.base import EngineSpec

MAX_FRAMES, MAX_KEYS, MAX_SIDE_PX = 256, 255, 65_535
"""As far as a frame's header counts (docs/play-wire.md)."""
MAX_NAME = 64
TEXTS = ("name", "preset", "weights_sha256", "device")
COUNTS = {"height": MAX_SIDE_PX, "width": MAX_SIDE_PX, "frames_per_block": MAX_FRAMES, "num_threads": 4096}


def fault_of(spec: EngineSpec) -> str | None:
    """Say what is wrong with a spec; None where nothing is."""
    for name in TEXTS:
        if not _is_text(getattr(spec, name)):
            return f"its {name} is no text"
    for name, most in COUNTS.items():
        value = getattr(spec, name)
        if type(value) is not int or not 1 <= value <= most:
            return f"its {name} is no whole number from 1 to {most}"
    rate = spec.frames_per_s
    if type(rate) not in (int, float) or not isfinite(rate) or rate <= 0 or not isfinite(spec.period_s):
        return "its frames_per_s is no number above 0"
    return _fault_of_keys(spec.keys)


def _fault_of_keys(keys: object) -> str | None:
    if type(keys) is not tuple or not all(_is_text(key) and 0 < len(key) <= MAX_NAME for key in keys):
        return f"its keys are no tuple of names of 1 to {MAX_NAME} characters"
    if len(keys) > MAX_KEYS or len({*keys}) < len(keys):
        return f"its keys are more than {MAX_KEYS}, or one is there twice"
    return None


def _is_text(value: object) -> bool:
    """Whether it is a str that can be sent."""
    if type(value) is not str:
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True
