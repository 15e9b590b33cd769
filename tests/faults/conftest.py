"""One server with two workers, for all tests that hurt its workers: the loop runs while a test runs in it."""

import asyncio
from collections.abc import Coroutine, Iterator
from contextlib import AsyncExitStack
from typing import Any, TypeVar

import pytest
import structlog

from tests.faults.house import House, house_of, quiet
from tests.faults.nursery import Nursery, nursery_in

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
def ground(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    quiet()
    with asyncio.Runner() as runner:
        stack = AsyncExitStack()
        try:
            nursery = runner.run(stack.enter_async_context(nursery_in(tmp_path_factory.mktemp("nursery"))))
            house = runner.run(stack.enter_async_context(house_of(nursery)))
            yield Ground(runner, nursery, house)
        finally:
            runner.run(stack.aclose())
            structlog.reset_defaults()
