"""A nursery that lives from test to test: two imports of torch for each server would be most of a test's time."""

import asyncio
from collections.abc import Coroutine, Iterator
from contextlib import AsyncExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import pytest

from tests.faults.nursery import Nursery, NurseryHosts, nursery_in
from worldmove.serve import house

T = TypeVar("T")


class Nursed:
    """A nursery in a loop of its own, which runs while a test runs in it."""

    def __init__(self, runner: asyncio.Runner, nursery: Nursery) -> None:
        self.runner = runner
        self.nursery = nursery

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(work)

    def serve(self, work: Coroutine[Any, Any, T]) -> T:
        """Run what begins whole servers: their workers come from the nursery."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(house, "LocalHosts", partial(NurseryHosts, nursery=self.nursery))
            return self.run(work)


@contextmanager
def nursed_in(folder: Path) -> Iterator[Nursed]:
    """Have one while inside."""
    with asyncio.Runner() as runner:
        stack = AsyncExitStack()
        nursery = runner.run(stack.enter_async_context(nursery_in(folder)))
        try:
            yield Nursed(runner, nursery)
        finally:
            runner.run(stack.aclose())
