"""Looking at what has a value of its own: scalars, tensors, arrays, generators, buffers, files."""

import array
import contextlib
import ctypes
import datetime
import decimal
import enum
import fractions
import io
import logging
import mmap
import random
import re
import uuid
from collections.abc import Callable
from pathlib import PurePath
from typing import Any

import numpy as np
import torch

from worldmove.audit.looks import Look, Part, attributes, digest, short, text_of
from worldmove.state.structure import field_path, item_path

SCALARS = (bool, int, float, complex, str, bytes)
WRITTEN = (
    *(type(None), type(...), type(NotImplemented), range, slice, enum.Enum, PurePath, re.Pattern, uuid.UUID),
    *(decimal.Decimal, fractions.Fraction, datetime.date, datetime.time, datetime.timedelta, datetime.tzinfo),
    *(torch.dtype, torch.device, torch.layout, torch.memory_format, torch.Size, np.dtype, np.generic),
)
"""What its repr says in full."""
BUFFERS = (bytearray, array.array, memoryview, mmap.mmap, ctypes.Array, ctypes.Structure)
GENERATORS = (torch.Generator, random.Random, np.random.Generator, np.random.RandomState, np.random.BitGenerator)


def look_at_value(value: Any, path: str) -> Look | None:
    """Look at an object that has a value of its own, or return None."""
    for kinds, look in _LOOKS:
        if isinstance(value, kinds):
            return look(value, path)
    return None


def _scalar(value: Any, path: str) -> Look:
    base = next(kind for kind in SCALARS if isinstance(value, kind))
    if base is int and abs(value) >> 256:
        text = f"int #{digest(int.to_bytes(value, value.bit_length() // 8 + 1, 'little', signed=True))}"
    else:
        text = short(base.__repr__(value))
    size = len(value) if base in (str, bytes) else 8
    parts = attributes(value, path) if type(value) is not base else ()
    return Look(kind=type(value).__name__, value=text, num_bytes=size, parts=parts, has_identity=bool(parts))


def _written(value: Any, path: str) -> Look:
    return Look(kind=type(value).__name__, value=text_of(value), num_bytes=8 * (value is not None), has_identity=False)


def _tensor(value: torch.Tensor, path: str) -> Look:
    own = [Part(f".{name}", field_path(path, name), item) for name, item in value.__dict__.items()]
    parts = own if value.grad is None else [*own, Part(".grad", f"{path}.grad", value.grad)]
    about = f"{str(value.dtype).removeprefix('torch.')} {list(value.shape)}"
    kind = "tensor" if type(value) is torch.Tensor else type(value).__name__
    if value.layout is not torch.strided or value.is_meta or value.is_quantized:
        return Look(kind=kind, value=f"{about}, unread", parts=parts)
    with torch.inference_mode(mode=False), torch.no_grad():
        flat = value.detach().cpu().resolve_conj().resolve_neg().contiguous().reshape(-1)
        data = flat.view(torch.uint8).numpy().data if flat.numel() else b""
    return Look(kind=kind, value=f"{about} #{digest(data)}", num_bytes=len(data), parts=parts)


def _array(value: np.ndarray[Any, Any], path: str) -> Look:
    about = f"{value.dtype} {list(value.shape)}"
    if value.dtype.hasobject:
        items = enumerate(value.reshape(-1).tolist()) if value.dtype == object else ()
        parts = [Part(f"[{i}]", item_path(path, i), item) for i, item in items]
        return Look(kind="array", value=about, parts=parts, whole=True)
    return Look(kind="array", value=f"{about} #{digest(value.tobytes())}", num_bytes=value.nbytes)


def _generator(value: Any, path: str) -> Look:
    state = digest(_generator_state(value))
    own = attributes(value, path) if hasattr(value, "__dict__") else ()
    return Look(kind="generator", value=f"{type(value).__name__} #{state}", num_bytes=2500, parts=own)


def _generator_state(value: Any) -> bytes:
    match value:
        case torch.Generator():
            return value.get_state().numpy().tobytes()
        case random.SystemRandom():
            return b""
        case random.Random():
            return repr(value.getstate()).encode()
        case np.random.Generator():
            return _bits(value.bit_generator)
        case np.random.RandomState():
            return _legacy(value)
    return _bits(value)


def _legacy(value: np.random.RandomState) -> bytes:
    state = value.get_state(legacy=False)
    return b"".join(part.tobytes() if isinstance(part, np.ndarray) else repr(part).encode() for part in _flat(state))


def _bits(value: np.random.BitGenerator) -> bytes:
    parts = [part.tobytes() if isinstance(part, np.ndarray) else repr(part).encode() for part in _flat(value.state)]
    return b"".join([*parts, repr(getattr(value.seed_seq, "n_children_spawned", None)).encode()])


def _flat(state: Any) -> list[Any]:
    """The values of nested dictionaries, in order of their names."""
    if not isinstance(state, dict):
        return [state]
    return [part for _, item in sorted(state.items()) for part in _flat(item)]


def _buffer(value: Any, path: str) -> Look:
    try:
        data = bytes(memoryview(value).cast("B")) if isinstance(value, memoryview) else bytes(value)
    except (TypeError, ValueError) as error:
        return Look(kind=type(value).__name__, value=f"unread ({error})")
    return Look(kind=type(value).__name__, value=f"{len(data)} bytes #{digest(data)}", num_bytes=len(data))


def _file(value: io.IOBase, path: str) -> Look:
    """How far a file was read is state of whoever reads it."""
    where = "closed"
    with contextlib.suppress(OSError, ValueError):
        where = f"at {value.tell()}" if not value.closed and value.seekable() else "open"
    return Look(kind=type(value).__name__, value=where, num_bytes=8)


def _named(value: Any, path: str) -> Look:
    return Look(kind=type(value).__name__, value=str(getattr(value, "name", "")))


_LOOKS: tuple[tuple[Any, Callable[[Any, str], Look]], ...] = (
    (WRITTEN, _written),
    (SCALARS, _scalar),
    (torch.Tensor, _tensor),
    (np.ndarray, _array),
    (GENERATORS, _generator),
    (BUFFERS, _buffer),
    (io.IOBase, _file),
    ((logging.Logger, logging.Handler), _named),
)
