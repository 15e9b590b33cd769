"""The environment of an interpreter that is to find every package that this one finds."""

import os
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def with_own_path() -> dict[str, str]:
    """Return this process's environment, with its import path: installed packages may be found by that alone."""
    paths = (str(ROOT / "src"), str(ROOT), *(os.path.abspath(path) for path in sys.path if path))
    return os.environ | {"PYTHONPATH": os.pathsep.join(dict.fromkeys(paths))}
