"""What a probe of this host's paths between devices has found, kept for a while in a file of the host.

A worker goes by it before its hello: a path of its device that has brought other bytes than were sent is none that it
has, and a path is as fast as the slowest that was measured. Notes are of devices by their own identity, never by a name
that another may have after a restart, and count until their time is over.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated

import msgspec

from worldmove.small_file import read_small

MAX_FILE_BYTES = 1 << 20
VERSION = 1


class PathNote(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One path in one direction. ``why``: what was wrong with it, or empty. Instants are seconds of the wall clock."""

    transport: str
    source: str
    destination: str
    """The devices' identities."""
    source_name: str
    destination_name: str
    measured_at: float
    until: float
    rates: dict[str, Annotated[float, msgspec.Meta(gt=0)]]
    """Bytes per second, by size in bytes."""
    why: str = ""


class _File(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    version: int
    paths: tuple[PathNote, ...]


def read_notes(file: Path, now: float) -> tuple[PathNote, ...]:
    """Return what still counts; nothing where there is no such file, or it is none of ours."""
    try:
        found = msgspec.json.decode(read_small(file, MAX_FILE_BYTES), type=_File)
    except (OSError, msgspec.MsgspecError, RecursionError):
        return ()
    return tuple(note for note in found.paths if _counts(note, now)) if found.version == VERSION else ()


def write_notes(file: Path, notes: Iterable[PathNote], now: float) -> None:
    """Put notes in the place of those of the same paths; others stay as long as they count. Raises OSError."""
    known = {_path_of(note): note for note in (*read_notes(file, now), *notes)}
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_name(f".{file.name}.part")
    part.write_bytes(msgspec.json.encode(_File(version=VERSION, paths=tuple(known.values()))) + b"\n")
    part.replace(file)


def trusted(rates: Mapping[str, float], notes: Sequence[PathNote], device_id: str) -> dict[str, float]:
    """Return a worker's own rates by what is noted of its device's paths: slower ones count, a bad one is left out."""
    found = dict(rates)
    for note in notes:
        name = f"{note.transport}_bytes_per_s"
        if device_id in (note.source, note.destination) and name in found:
            if note.why:
                del found[name]
            elif note.rates:
                found[name] = min(found[name], max(note.rates.values()))
    return found


def _counts(note: PathNote, now: float) -> bool:
    """Whether its time is not over. One of a time to come by more than that counts no more: a clock was set back."""
    kept_s = note.until - note.measured_at
    return now < note.until and note.measured_at - now <= kept_s


def _path_of(note: PathNote) -> tuple[str, str, str]:
    return note.transport, note.source, note.destination
