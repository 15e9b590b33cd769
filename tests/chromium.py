"""The browser that the browser tests drive."""

import os
import shutil
from collections.abc import Mapping

import pytest

HOW = "no chromium: install Debian's, or name one with CHROMIUM=/path/to/chromium"


def find_chromium(environment: Mapping[str, str] = os.environ) -> str:
    """The path of ``$CHROMIUM``, else of a chromium on the path. Without one: fails in CI, skips elsewhere."""
    search = environment.get("PATH")
    for name in filter(None, (environment.get("CHROMIUM"), "chromium", "chromium-browser")):
        found = shutil.which(name, path=search)
        if found:
            return found
    if environment.get("CI") == "true":
        pytest.fail(HOW)
    pytest.skip(HOW)
