"""The edge at which a command is told to end that writes a file, or waits for what a server was asked to change.

It ends as by Ctrl-C, whichever signal says so, but for its exit status.
"""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = (signal.SIGTERM, signal.SIGHUP)
"""What ends a process without a word where nobody hears it: by its supervisor, or with its terminal."""


END_S = 3.0
"""For so long the end of a command may take once all is done."""


class ToldToEnd(BaseException):
    """A command has been ended by a signal that is not Ctrl-C's. Typer would make Ctrl-C's status of one of those."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def end_within(seconds: float, status: int) -> None:
    """See that this process ends, whatever an engine has left in it: a thread of its own, or work for the very end.

    Python waits for both, for ever. What is to be written has been written by then.
    """
    timer = threading.Timer(seconds, os._exit, (int(status),))
    timer.daemon = True
    timer.start()


@contextmanager
def heard_as_interrupt() -> Iterator[None]:
    """Raise KeyboardInterrupt inside at the first of these signals, and nothing at those after it.

    If nobody inside takes that up, ToldToEnd is what comes out.
    One that is ignored already stays so (``nohup``); outside the main thread nothing is heard.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    heard: list[int] = []

    def on(number: int, _frame: FrameType | None) -> None:
        if not heard:
            heard.append(number)
            raise KeyboardInterrupt

    before = {number: signal.getsignal(number) for number in SIGNALS}
    ours = [number for number, handler in before.items() if handler is signal.SIG_DFL]
    try:
        for number in ours:
            signal.signal(number, on)
        yield
    except KeyboardInterrupt:
        if heard:
            raise ToldToEnd(heard[0]) from None
        raise
    finally:
        for number in ours:
            signal.signal(number, before[number])
