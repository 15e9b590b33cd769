"""What words of any length and of any signs become, for a message to carry them.

What an engine raises may have such words: sent as they are, they would end the link of every world of their worker.
"""

from collections.abc import Mapping
from typing import Any

from worldmove.limits import MAX_NAME, MAX_TEXT


def sayable(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return a message's fields with its reason and its detail as a message can carry them."""
    told = dict(fields)
    if "reason" in told:
        told["reason"] = word(told["reason"])
    if "detail" in told:
        told["detail"] = said(told["detail"])
    return told


def word(text: str) -> str:
    """Return a reason, or an error's code, as a message can carry it."""
    return _cut(text, MAX_NAME) or "error"


def said(text: str) -> str:
    """Return a sentence as a message can carry it."""
    return _cut(text, MAX_TEXT)


def _cut(text: str, most: int) -> str:
    return text.encode("utf-8", "backslashreplace").decode()[:most]
