"""One nursery for the tests here whose workers die: two imports of torch for each test would be most of their time."""

import asyncio
from collections.abc import Coroutine, Iterator
from contextlib import AsyncExitStack
from typing import Any, TypeVar

import pytest

from tests.faults.nursery import Nursery, nursery_in

T = TypeVar("T")


class Nursed:
    """A nursery that lives from test to test, in a loop of its own: it runs while a test runs in it."""

    def __init__(self, runner: asyncio.Runner, nursery: Nursery) -> None:
        self.nursery = nursery
        self._runner = runner

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(work)


@pytest.fixture(scope="session")
def nursed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nursed]:
    with asyncio.Runner() as runner:
        stack = AsyncExitStack()
        nursery = runner.run(stack.enter_async_context(nursery_in(tmp_path_factory.mktemp("nursery"))))
        try:
            yield Nursed(runner, nursery)
        finally:
            runner.run(stack.aclose())
