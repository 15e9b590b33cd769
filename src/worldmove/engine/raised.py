"""What foreign code raises, which may be anything, in words: its own, or those of its kind where it has none to give.

An interrupt in the main thread is nobody's but the person's who ends the process: Python raises it there when the
signal comes. In any other thread it is the code's that runs there, as everything else is in any thread.
"""

import threading
from collections.abc import Callable

_NAME = vars(type)["__name__"]


def is_a_persons(error: BaseException) -> bool:
    """Whether it is the interrupt of who ends this process, and not of the engine that was called."""
    return issubclass(type(error), KeyboardInterrupt) and threading.current_thread() is threading.main_thread()


def shown(error: BaseException) -> str:
    """Return an exception as Python shows it."""
    return _worded(error, repr)


def said(error: BaseException) -> str:
    """Return an exception as a part of a sentence."""
    kind = _kind(error)
    text = _worded(error, lambda raised: " ".join(str(raised).split()).rstrip("."), otherwise="")
    return f"{kind}: {text}" if text else kind


def _worded(error: BaseException, say: Callable[[BaseException], str], otherwise: str | None = None) -> str:
    try:
        return "".join((say(error),))  # a str of its own kind would go on running its code wherever it is read
    except BaseException as again:
        if is_a_persons(again):
            raise
        return _kind(error) if otherwise is None else otherwise


def _kind(error: BaseException) -> str:
    return str(_NAME.__get__(type(error)))
