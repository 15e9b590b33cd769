"""The frame around encoded records: a magic word, a version and a length, readable without the rest."""

import struct

from worldmove.errors import ManifestError

_HEADER = struct.Struct("<4sHQ")
HEADER_BYTES = _HEADER.size


def frame(magic: bytes, version: int, body: bytes) -> bytes:
    """Put a body into its frame."""
    return _HEADER.pack(magic, version, len(body)) + body


def peek(data: bytes) -> tuple[bytes, int]:
    """Return magic word and version of framed bytes. Raises ManifestError if there are too few."""
    if len(data) < _HEADER.size:
        raise ManifestError(f"{len(data)} bytes are too few for a header of {_HEADER.size}")
    magic, version, _ = _HEADER.unpack_from(data)
    return magic, version


def unframe(magic: bytes, version: int, data: bytes, limit: int) -> bytes:
    """Return the body. Raises ManifestError for another magic, another version, or any other length."""
    found = peek(data)
    if found[0] != magic:
        raise ManifestError(f"it begins with {found[0]!r}, not {magic!r}")
    if found[1] != version:
        raise ManifestError(f"it is of version {found[1]}, and this is version {version}")
    length = _HEADER.unpack_from(data)[2]
    if length > limit:
        raise ManifestError(f"{length} bytes are more than {limit}")
    if len(data) != _HEADER.size + length:
        raise ManifestError(f"it says {length} bytes and has {len(data) - _HEADER.size}")
    return data[_HEADER.size :]
