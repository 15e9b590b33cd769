"""Processes that a test of a GPU host starts: each finds what this one finds, wherever that was installed."""

import os
import sys


def environment() -> dict[str, str]:
    """Return this process's environment, with all of its path as Python's: a host's wheels may lie in any folder."""
    return os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
