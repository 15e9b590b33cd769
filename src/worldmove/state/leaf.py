"""The kinds of leaf, as they stand in a manifest; and scalars, to and from canonical bytes.

A leaf is one of: a scalar (None, bool, int, float, complex, str, bytes), a member of a registered enum, a
numpy scalar, a tensor, a numpy array, a generator. Types are matched exactly: a subclass is another type.
"""

import struct
from collections.abc import Callable, Mapping
from types import MappingProxyType

import msgspec

from worldmove.errors import ManifestError

MAX_SCALAR_BYTES = 1 << 20
LEAF_DIGEST_BYTES = 8
"""Of one leaf's digest: it names a leaf where the state's own digest has found a difference."""

Scalar = None | bool | int | float | complex | str | bytes


class ScalarLeaf(
    msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag_field="leaf", tag="scalar"
):
    """A Python scalar. ``kind`` names its type, ``value`` holds its canonical bytes."""

    kind: str
    value: bytes


class EnumLeaf(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag_field="leaf", tag="enum"):
    """A member of a registered enum, by name."""

    type: str
    member: str


class NumpyScalarLeaf(
    msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag_field="leaf", tag="number"
):
    """A numpy scalar: its dtype and its bytes."""

    dtype: str
    value: bytes


class TensorLeaf(
    msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag_field="leaf", tag="tensor"
):
    """A view of a window of a storage. ``window_*`` in bytes, ``offset`` and ``stride`` in elements, as torch has them.

    The window is the tensor's own torch storage; several may share one storage of the manifest, because
    what is shared is memory. ``storage`` is None where the window has no bytes.
    """

    dtype: str
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int
    storage: int | None
    window_offset: int
    window_length: int
    conjugate: bool
    negative: bool


class DeviceTensorLeaf(
    TensorLeaf, frozen=True, array_like=True, forbid_unknown_fields=True, tag_field="leaf", tag="device-tensor"
):
    """A tensor in the memory of the session's device. Which device that is stands nowhere: elsewhere it is another."""


class ArrayLeaf(
    msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag_field="leaf", tag="array"
):
    """A numpy view of a storage. ``offset`` (of its first element) and ``strides`` in bytes."""

    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    storage: int | None
    writeable: bool


class GeneratorLeaf(
    msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag_field="leaf", tag="generator"
):
    """A reference to one of the manifest's generators: the same object at two paths is one generator."""

    generator: int


DEVICE_KIND = "torch-device"
"""The kind of a generator of the session's device."""


class GeneratorRecord(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """One generator of a state: which library's, and its whole state."""

    kind: str
    state: bytes


Leaf = ScalarLeaf | EnumLeaf | NumpyScalarLeaf | TensorLeaf | DeviceTensorLeaf | ArrayLeaf | GeneratorLeaf


def encode_scalar(value: Scalar) -> ScalarLeaf:
    """Return the scalar's kind and canonical bytes. Raises KeyError if its type is not exactly a scalar type."""
    kind = KINDS[type(value)]
    return ScalarLeaf(kind, _ENCODE[kind](value))


def decode_scalar(leaf: ScalarLeaf) -> Scalar:
    """Return the scalar, bit for bit. Raises ManifestError where the bytes are not canonical."""
    try:
        value = _DECODE[leaf.kind](leaf.value)
    except (KeyError, ValueError, struct.error) as error:
        raise ManifestError(f"{leaf.value[:16]!r} is no {leaf.kind[:16]!r}") from error
    if _ENCODE[leaf.kind](value) != leaf.value:
        raise ManifestError(f"{leaf.value[:16]!r} is no canonical {leaf.kind}")
    return value


KINDS: Mapping[type, str] = MappingProxyType(
    {
        type(None): "none",
        bool: "bool",
        int: "int",
        float: "float",
        complex: "complex",
        str: "str",
        bytes: "bytes",
    }
)
"""The scalar types and the word each is carried under."""

# "surrogatepass" because a Python string may hold a lone surrogate, and that too must come back.
_ENCODE: Mapping[str, Callable[..., bytes]] = {
    "none": lambda _: b"",
    "bool": lambda value: b"\1" if value else b"\0",
    "int": lambda value: value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True),
    "float": lambda value: struct.pack("<d", value),
    "complex": lambda value: struct.pack("<dd", value.real, value.imag),
    "str": lambda value: value.encode("utf-8", "surrogatepass"),
    "bytes": bytes,
}
_DECODE: Mapping[str, Callable[[bytes], Scalar]] = {
    "none": lambda _: None,
    "bool": lambda data: data == b"\1",
    "int": lambda data: int.from_bytes(data, "little", signed=True),
    "float": lambda data: struct.unpack("<d", data)[0],
    "complex": lambda data: complex(*struct.unpack("<dd", data)),
    "str": lambda data: data.decode("utf-8", "surrogatepass"),
    "bytes": bytes,
}
