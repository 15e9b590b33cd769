"""The edge that hears a server's signals."""

import asyncio
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def first_signal(act: Callable[[], object]) -> Iterator[None]:
    """Act on the first SIGTERM or SIGINT, once: the end that it begins is not itself cut off by the next one."""
    loop, numbers = asyncio.get_running_loop(), (signal.SIGTERM, signal.SIGINT)
    came: list[signal.Signals] = []

    def on(number: signal.Signals) -> None:
        if not came:
            act()
        came.append(number)

    for number in numbers:
        loop.add_signal_handler(number, on, number)
    try:
        yield
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)
