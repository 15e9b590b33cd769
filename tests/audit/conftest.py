"""One pair of processes for all audits here: each order is carried out in a fork, so none meets another's."""

from collections.abc import Iterator

import pytest

from tests.own_path import own_path
from worldmove.audit.workplace import Workplace


@pytest.fixture(scope="package")
def workplace() -> Iterator[Workplace]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", own_path())
        with Workplace() as both:
            yield both
