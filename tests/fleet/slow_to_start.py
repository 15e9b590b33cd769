"""Engines that take their time before they are there: one computes, or has somebody compute, and one does nothing."""

import os
import subprocess
import sys
import time
from typing import Any

from worldmove.worker.engines import build_engine

COMPUTES_S = 2.5
_COMPUTE = f"import time; end = time.monotonic() + {COMPUTES_S}\nwhile time.monotonic() < end: pass"


def computing(num_threads: int) -> Any:
    """Compute for longer than a worker may do nothing."""
    exec(_COMPUTE, {})
    return build_engine("reference:tiny", num_threads)


def compiling(num_threads: int) -> Any:
    """Wait for a process that computes for longer than a worker may do nothing."""
    subprocess.run([sys.executable, "-c", _COMPUTE], check=True, env=os.environ)
    return build_engine("reference:tiny", num_threads)


def hanging(num_threads: int) -> Any:
    """Wait for what never comes."""
    time.sleep(600.0)
    raise AssertionError(num_threads)
