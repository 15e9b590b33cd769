"""The bytes of a saved world: a header, the boundary manifest, and the used bytes of its storages.

    frame "WMSS", version, msgpack of SavedHeader | check of the frame, 8 bytes | manifest | storages' used bytes

``docs/records.md`` has it byte by byte. Whoever reads takes no more memory than the file has bytes: every length is
compared with the file's own before anything is read by it.
"""

import hashlib
from typing import Annotated, BinaryIO

import msgspec

from worldmove.errors import FileRefused, ManifestError
from worldmove.limits import MAX_COUNT, MAX_KEYS, MAX_NODES, MAX_TEXT, MAX_THREADS
from worldmove.state.checked_frame import checked, read_checked, require_short
from worldmove.state.frame import frame
from worldmove.state.manifest import MAX_MANIFEST_BYTES, Manifest
from worldmove.state.storage import MAX_STORAGE_BYTES

SAVED_MAGIC = b"WMSS"
VERSION = 1

Count = Annotated[int, msgspec.Meta(ge=0, lt=MAX_COUNT)]
Text = Annotated[str, msgspec.Meta(max_length=MAX_TEXT)]


class SavedHeader(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a saved world says of itself before its state."""

    worldmove: Text
    """The version that wrote it."""
    engine: Text
    """As a worker's configuration names it: ``reference:island``."""
    num_threads: Annotated[int, msgspec.Meta(ge=1, le=MAX_THREADS)]
    session: Text
    worker: Text
    epoch: Count
    seed: Count
    block: Annotated[int, msgspec.Meta(ge=0, lt=1 << 40)]
    """The next block: how far the input log has gone."""
    number: Count
    """Of the newest key change in the log."""
    down: Annotated[tuple[Text, ...], msgspec.Meta(max_length=MAX_KEYS)]
    """Keys that are down by the log: whoever restores the session releases them."""
    environment: Annotated[dict[Text, Text], msgspec.Meta(max_length=512)]
    state_digest: Text
    manifest_sha256: Annotated[bytes, msgspec.Meta(min_length=32, max_length=32)]
    manifest_bytes: Annotated[int, msgspec.Meta(gt=0, le=MAX_MANIFEST_BYTES)]
    num_bytes: Annotated[int, msgspec.Meta(ge=0, le=MAX_STORAGE_BYTES)]
    """Used bytes of all storages."""
    remainders: Annotated[bytes, msgspec.Meta(max_length=MAX_NODES)]
    """Each storage's address modulo 256, a byte each: libraries choose kernels by it."""

    @property
    def payload_bytes(self) -> int:
        """What follows the header."""
        return self.manifest_bytes + self.num_bytes


def pack_header(header: SavedHeader) -> bytes:
    """Return the first bytes of a saved world: all that stands before the manifest.

    Raises FileRefused where nobody could read them: it is said while the world is there yet, and not to who restores.
    """
    try:
        body = msgspec.msgpack.encode(header)
        require_short(len(body), "saved world")
        _decoded(body)
    except (FileRefused, UnicodeError) as error:
        raise FileRefused(f"This world cannot be saved, for its file could not be read: {error}") from error
    return checked(frame(SAVED_MAGIC, VERSION, body))


def read_header(stream: BinaryIO, size: int) -> SavedHeader:
    """Read the header of a file of ``size`` bytes. Raises FileRefused, in a sentence, for anything but a whole file."""
    header = parse_header(stream, size)
    expected = stream.tell() + header.payload_bytes
    if size != expected:
        how = f"cut: {size:,} of {expected:,} bytes" if size < expected else f"longer than it says: {size:,} bytes"
        raise FileRefused(f"This saved world is {how} are there.")
    return header


def parse_header(stream: BinaryIO, size: int) -> SavedHeader:
    """Read a header alone. Raises FileRefused."""
    return _decoded(read_checked(stream, size, magic=SAVED_MAGIC, version=VERSION, what="saved world"))


def _decoded(body: bytes) -> SavedHeader:
    try:
        return msgspec.msgpack.decode(body, type=SavedHeader)
    except (msgspec.MsgspecError, UnicodeError) as error:
        raise FileRefused(f"This saved world is damaged: its header does not decode ({error}).") from error


def read_manifest(stream: BinaryIO, header: SavedHeader) -> Manifest:
    """Read the manifest, which the header announces. Raises FileRefused."""
    data = stream.read(header.manifest_bytes)
    if hashlib.sha256(data).digest() != header.manifest_sha256:
        raise FileRefused("This saved world is damaged: its manifest has not the digest that it says.")
    try:
        manifest = Manifest.from_bytes(data)
    except ManifestError as error:
        raise FileRefused(f"This saved world is damaged: its manifest cannot be read ({error}).") from error
    if (manifest.num_bytes, len(manifest.storages)) != (header.num_bytes, len(header.remainders)):
        said = f"{header.num_bytes:,} bytes in {len(header.remainders)} storages are announced"
        there = f"{manifest.num_bytes:,} in {len(manifest.storages)} described"
        raise FileRefused(f"This saved world is damaged: {said} and {there}.")
    return manifest
