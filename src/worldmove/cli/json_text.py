"""JSON as others read it: a number that is none (NaN, infinite) is ``null``, for JSON has no word for it."""

import json
from collections.abc import Mapping
from math import isfinite
from typing import Any


def json_text(value: Any, *, indent: int | None = None) -> str:
    """Return a value as JSON."""
    try:
        return json.dumps(value, allow_nan=False, indent=indent)
    except ValueError:
        return json.dumps(_finite(value), allow_nan=False, indent=indent)


def _finite(value: Any) -> Any:
    match value:
        case float():
            return value if isfinite(value) else None
        case Mapping():
            return {key: _finite(each) for key, each in value.items()}
        case list() | tuple():
            return [_finite(each) for each in value]
    return value
