"""Sizes and times: the few constants that layers share, and how a reader sees them."""

KIB = 1 << 10
MIB = 1 << 20
GIB = 1 << 30
PAGE_BYTES = 4096
ALIGNMENT_BYTES = 256
"""Libraries choose kernels by an address modulo this, so a move keeps the remainder."""


def round_up(number: int, multiple: int) -> int:
    """Return the smallest multiple of ``multiple`` that is not below ``number``."""
    return -(-number // multiple) * multiple


def bytes_text(num_bytes: int) -> str:
    """Say a size with three significant digits, in powers of 1000: ``22.1 MB``."""
    value = float(num_bytes)
    for unit in ("B", "kB", "MB", "GB"):
        if value < 999.5 or unit == "GB":
            return f"{num_bytes} B" if unit == "B" else f"{_three_digits(value)} {unit}"
        value /= 1000
    raise AssertionError("unreachable")


def seconds_text(seconds: float) -> str:
    """Say a time with three significant digits: ``18.8 ms``."""
    for unit, scale in (("s", 1.0), ("ms", 1e3), ("\N{MICRO SIGN}s", 1e6)):
        if abs(seconds) * scale >= 0.9995 or unit == "\N{MICRO SIGN}s":
            return f"{_three_digits(seconds * scale)} {unit}"
    raise AssertionError("unreachable")


def _three_digits(value: float) -> str:
    size = abs(value)
    return f"{value:.{0 if size >= 99.95 else 1 if size >= 9.995 else 2}f}"
