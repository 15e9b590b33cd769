"""One pair of processes for all audits here: each order is carried out in a fork, so none meets another's."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from worldmove.audit.workplace import Workplace

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="package")
def workplace() -> Iterator[Workplace]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(ROOT))
        with Workplace() as both:
            yield both
