"""The JSON of an answer: bytes in, an object out that says what it lacks. Pure."""

import json
from math import isfinite
from typing import Any

from worldmove.cli.no_answer import NoServer

MAX_ANSWER_BYTES = 64 << 20
"""Of what comes as JSON."""
MAX_DIGITS = 20


class Said(dict[str, Any]):
    """An object of an answer. Raises NoServer where it is asked for what it does not say."""

    def __missing__(self, name: str) -> Any:
        raise NoServer("there", f", or one of another version: it does not say {name!r}")


def object_of(content: bytes, url: str) -> Said:
    """Read an answer. Raises NoServer where it is no whole JSON, or more than an answer of ours would be."""
    if len(content) > MAX_ANSWER_BYTES:
        raise NoServer(f"at {url}")
    try:
        found = json.loads(content, object_hook=Said, parse_constant=_number, parse_float=_number, parse_int=_whole)
    except (ValueError, RecursionError) as error:
        raise NoServer(f"at {url}") from error
    return found if isinstance(found, Said) else Said()


def _number(text: str) -> float:
    """Raises ValueError for what is none: nothing is reckoned with it."""
    number = float(text)
    if not isfinite(number):
        raise ValueError(f"{text} is no number")
    return number


def _whole(text: str) -> int:
    if len(text) > MAX_DIGITS:
        raise ValueError(f"a number of {len(text)} digits")
    return int(text)
