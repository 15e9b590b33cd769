"""Explains the files of ours that others could have made: weights, a bench's result."""

import hashlib
import json
import struct
from math import isfinite
from pathlib import Path
from typing import Any

from worldmove.cli.files import open_file
from worldmove.cli.found import Found, facts
from worldmove.cli.json_text import json_text
from worldmove.cli.shares import leaf_rows
from worldmove.engine.reference.presets import ISLAND_SHA256
from worldmove.errors import FileRefused
from worldmove.units import bytes_text

MAX_WEIGHTS_HEADER_BYTES = 16 << 20
MAX_RESULT_BYTES = 64 << 20
PIECE_BYTES = 1 << 20


def weights(path: Path, size: int) -> Found:
    """Explain weights (safetensors). Raises FileRefused."""
    with open_file(path) as (file, _):
        (length,) = struct.unpack("<Q", file.read(8))
        if length > min(size - 8, MAX_WEIGHTS_HEADER_BYTES):
            raise FileRefused(f"These weights end inside their header: it says {length:,} bytes.")
        tensors = _tensors(file.read(length), size - 8 - length)
        file.seek(0)
        digest = hashlib.sha256()
        while piece := file.read(PIECE_BYTES):
            digest.update(piece)
    sha256 = digest.hexdigest()
    pinned = "the ones that reference:island pins" if sha256 == ISLAND_SHA256 else "not pinned by any engine of ours"
    total = sum(num_bytes for *_, num_bytes in tensors)
    return Found(
        kind="weights",
        sentence=f"weights, {len(tensors)} tensors, {bytes_text(total)}, {pinned}",
        fields={
            "sha256": sha256,
            "pinned": sha256 == ISLAND_SHA256,
            "tensors": [{"path": p, "dtype": d, "shape": list(s), "num_bytes": n} for p, d, s, n in tensors],
        },
        tables=(facts([("sha256", sha256)]), leaf_rows(tensors)),
    )


def _tensors(header: bytes, num_bytes: int) -> list[tuple[str, str, list[int], int]]:
    """Return name, dtype, shape and bytes of each tensor. Raises FileRefused where the header says anything else."""
    try:
        found = json.loads(header)
        found.pop("__metadata__", None)
        rows = [(name, str(t["dtype"]), [int(n) for n in t["shape"]], _span(t, num_bytes)) for name, t in found.items()]
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError) as error:
        raise FileRefused(f"These weights are damaged: their header cannot be read ({error!r}).") from error
    if sum(size for *_, size in rows) != num_bytes:
        raise FileRefused(f"These weights are damaged: {num_bytes:,} bytes follow their header, and others are named.")
    return rows


def _span(tensor: dict[str, Any], num_bytes: int) -> int:
    begin, end = (int(at) for at in tensor["data_offsets"])
    if not 0 <= begin <= end <= num_bytes:
        raise ValueError(f"{begin} to {end} of {num_bytes}")
    return end - begin


def bench_result(path: Path, size: int) -> Found:
    """Explain a bench's result. Raises FileRefused."""
    if size > MAX_RESULT_BYTES:
        raise FileRefused(f"{path} has {size:,} bytes, and a bench's result has at most {MAX_RESULT_BYTES:,}.")
    try:
        # What is no number, as JSON has them, was not measured.
        found = json.loads(path.read_bytes(), parse_constant=_number, parse_float=_number)
        name, summary = found["name"], found["summary"]
        rows = [(key, _short(value)) for key, value in summary.items()]
        commit = found.get("commit", {}).get("sha")
        head = [("command", found["command"]), ("begun at", found["begun_at"]), ("commit", commit)]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise FileRefused(f"{path} is JSON, and no bench's result ({error!r}).") from error
    return Found(
        kind="bench",
        sentence=f"what the bench {name} found",
        fields={"result": found},
        tables=(facts(head), facts(rows)),
    )


def _number(text: str) -> float | None:
    number = float(text)
    return number if isfinite(number) else None


def _short(value: object) -> object:
    text = json_text(value)
    return value if isinstance(value, int | float | str) else text if len(text) <= 80 else f"{text[:77]}..."
