"""The written list of what a tensor or an array may hold. Data only; ``docs/state.md`` says it in words."""

import re
from collections.abc import Mapping
from types import MappingProxyType

TORCH_ITEM_BYTES: Mapping[str, int] = MappingProxyType(
    {
        **dict.fromkeys(("bool", "uint8", "int8"), 1),
        **dict.fromkeys(("uint16", "int16", "float16", "bfloat16"), 2),
        **dict.fromkeys(("uint32", "int32", "float32", "complex32"), 4),
        **dict.fromkeys(("uint64", "int64", "float64", "complex64"), 8),
        "complex128": 16,
        **dict.fromkeys(("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu"), 1),
        "float4_e2m1fn_x2": 1,
        # Dtypes without arithmetic. Their bytes are as good as any others.
        **dict.fromkeys((f"{sign}int{bits}" for sign in ("", "u") for bits in range(1, 8)), 1),
        **dict.fromkeys(("bits8", "bits1x8", "bits2x4", "bits4x2"), 1),
        "bits16": 2,
    }
)
"""Bytes of one element of each carried torch dtype, by the name after ``torch.``."""

TORCH_REFUSED: Mapping[str, str] = MappingProxyType(
    dict.fromkeys(
        ("qint8", "quint8", "qint32", "quint4x2", "quint2x4"),
        "a quantised tensor's scale and zero point are not in its bytes",
    )
)
"""The torch dtypes that are not carried, and why."""

TORCH_COMPLEX = frozenset({"complex32", "complex64", "complex128"})
"""The dtypes whose tensors may have the conjugate bit."""

_NUMPY_NUMBER = re.compile(r"\|[?bB]|[<>][hHiIlLqQefdFD]")
_NUMPY_TEXT = re.compile(r"([<>]U|\|S|\|V)([1-9][0-9]{0,8})")
_NUMPY_TIME = re.compile(r"[<>][mM]8(\[([1-9][0-9]{0,8})?(Y|M|W|D|h|m|s|ms|us|ns|ps|fs|as)\])?")
_NUMPY_ITEM_BYTES = {"?": 1, "b": 1, "B": 1, "h": 2, "H": 2, "e": 2, "i": 4, "I": 4, "f": 4, "l": 8, "L": 8} | {
    **dict.fromkeys("qQdF", 8),
    "D": 16,
}

NUMPY_REFUSED: Mapping[str, str] = MappingProxyType(
    {
        "O": "an object array holds references, not values",
        "g": "a long double has padding bytes and differs between machines",
        "G": "a long double has padding bytes and differs between machines",
        "T": "a variable-length string array holds references, not values",
    }
)
"""The numpy dtype characters that are not carried, and why."""


def numpy_item_bytes(text: str) -> int | None:
    """Return the bytes of one element of the numpy dtype that ``text`` names, or None if it is not carried."""
    if _NUMPY_NUMBER.fullmatch(text):
        return _NUMPY_ITEM_BYTES[text[1]]
    if _NUMPY_TIME.fullmatch(text):
        return 8
    match = _NUMPY_TEXT.fullmatch(text)
    return int(match[2]) * (4 if match[1][1] == "U" else 1) if match else None
