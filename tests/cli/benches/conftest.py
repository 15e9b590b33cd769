"""Processes of a bench under test are forked: each import of torch would be most of its time."""

import multiprocessing

import pytest

from tests.forks import FORKS


@pytest.fixture(autouse=True)
def _forked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(multiprocessing, "get_context", lambda _: FORKS)
