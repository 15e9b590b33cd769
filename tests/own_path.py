"""The environment of an interpreter that is to find every package that this one finds."""

import os
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def own_path() -> str:
    """Return what PYTHONPATH has to be for that: a wheelhouse's packages are found by it alone."""
    paths = (str(ROOT / "src"), str(ROOT), *(os.path.abspath(path) for path in sys.path if path))
    return os.pathsep.join(dict.fromkeys(paths))


def with_own_path() -> dict[str, str]:
    """Return this process's environment, with its import path."""
    return os.environ | {"PYTHONPATH": own_path()}
