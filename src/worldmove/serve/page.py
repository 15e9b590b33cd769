"""The page's files, read once when the server starts. An edge: it reads the package's own folder."""

import mimetypes
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

VIEWER = Path(__file__).with_name("viewer")
TYPES = {".js": "text/javascript", ".css": "text/css", ".html": "text/html", ".svg": "image/svg+xml"}


@dataclass(frozen=True, slots=True, kw_only=True)
class PageFile:
    """One file: its bytes and its media type."""

    content: bytes
    media_type: str


def read_page(folder: Path = VIEWER) -> Mapping[str, PageFile]:
    """Return every file of the viewer by its path below the folder, with ``/`` between names."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): _read(path) for path in paths}


def _read(path: Path) -> PageFile:
    media_type = TYPES.get(path.suffix) or mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    return PageFile(content=path.read_bytes(), media_type=media_type)
