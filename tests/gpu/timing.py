"""What each of some operations takes, so that a test says which of them has waited."""

import sys
import time
from collections.abc import Callable


def timed(**operations: Callable[[], object]) -> dict[str, float]:
    """Do them one after the other; return what each took, in ms, and print that: a line each."""
    took: dict[str, float] = {}
    for name, operation in operations.items():
        begun = time.monotonic()
        operation()
        took[name] = round(1000 * (time.monotonic() - begun), 3)
        sys.stdout.write(f"{name:24}{took[name]:12.3f} ms\n")
    return took
