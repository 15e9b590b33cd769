"""One server with two workers, for all tests that hurt its workers: the loop runs while a test runs in it."""

import asyncio
from collections.abc import Coroutine, Iterator
from contextlib import AsyncExitStack
from typing import Any, TypeVar

import pytest
import structlog

from tests.faults.house import House, house_of, quiet
from tests.faults.nursery import Nursery
from tests.nursed import Nursed

T = TypeVar("T")


class Ground:
    """A nursery and a server that live from test to test, in a loop of their own."""

    def __init__(self, runner: asyncio.Runner, nursery: Nursery, house: House) -> None:
        self.nursery = nursery
        self.house = house
        self._runner = runner

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(work)


@pytest.fixture(scope="session")
def ground(nursed: Nursed) -> Iterator[Ground]:
    quiet()
    stack = AsyncExitStack()
    try:
        house = nursed.run(stack.enter_async_context(house_of(nursed.nursery)))
        yield Ground(nursed.runner, nursed.nursery, house)
    finally:
        nursed.run(stack.aclose())
        structlog.reset_defaults()
