"""How the speed of a link is said, and the name of a path that is slowed down to it. Pure."""

import re

BITS = {"kbit": 1e3, "mbit": 1e6, "gbit": 1e9}
LINK = re.compile(r"(?P<number>[0-9]{1,4}(\.[0-9]{1,3})?)(?P<unit>kbit|mbit|gbit)")


def rate_of_link(link: str) -> float | None:
    """Return bytes per second of a speed such as ``1gbit``; None for what is no speed, or none at all."""
    found = LINK.fullmatch(link)
    rate = float(found["number"]) * BITS[found["unit"]] / 8 if found else 0.0
    return rate or None


def throttled_name(link: str, inner: str) -> str:
    """Return the name of a path that is slowed down."""
    return f"throttled-{link}-{inner}"


def limit_of(name: str) -> tuple[float, str] | None:
    """Return the speed in bytes per second, and the path inside, of a path's name; None for one that has no limit."""
    kind, _, rest = name.partition("-")
    link, _, inner = rest.partition("-")
    rate = rate_of_link(link) if kind == "throttled" else None
    return None if rate is None or not inner else (rate, inner)
