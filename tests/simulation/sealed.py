"""A seal over one run: whatever the program under simulation takes from outside, itself or by a library, raises."""

import asyncio
import datetime
import gc
import os
import random
import secrets
import socket
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.simulation.gathering import gather
from tests.simulation.loop import EscapeError

SEALED: tuple[tuple[Any, tuple[str, ...]], ...] = (
    (time, ("time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns", "sleep")),
    (random, ("random", "randrange", "randint", "choice", "choices", "sample", "shuffle", "uniform", "getrandbits")),
    (os, ("urandom", "getrandom", "fork")),
    (uuid, ("uuid1", "uuid4")),
    (secrets, ("token_bytes", "token_hex", "token_urlsafe", "randbits", "choice")),
    (threading.Thread, ("start",)),
    (socket, ("socket", "create_connection", "socketpair")),
)


@contextmanager
def sealed() -> Iterator[None]:
    """Seal clocks, randomness, threads, sockets, and the garbage collector: it runs before and after, never within."""
    kept = [(owner, name, getattr(owner, name)) for owner, names in SEALED for name in names if hasattr(owner, name)]
    kept += [(datetime, "datetime", datetime.datetime), (asyncio, "gather", asyncio.gather)]
    collects = gc.isenabled()
    gc.disable()
    try:
        for owner, name, _ in kept:
            setattr(owner, name, _raiser(f"{owner.__name__}.{name}"))
        datetime.datetime = _NoClock  # type: ignore[misc]
        asyncio.gather = gather  # type: ignore[assignment]
        yield
    finally:
        for owner, name, original in kept:
            setattr(owner, name, original)
        if collects:
            gc.enable()


@contextmanager
def collected() -> Iterator[None]:
    """Collect what is left of a run at once, when nobody has it any more: looked at before, all of it would live on."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.collect(0)
        if collects:
            gc.enable()


def _raiser(name: str) -> Any:
    def reached_for(*_arguments: object, **_options: object) -> Any:
        raise EscapeError(f"{name} inside a simulation")

    return reached_for


class _NoClock(datetime.datetime):
    """A datetime that reads no clock."""

    @classmethod
    def now(cls, tz: datetime.tzinfo | None = None) -> Any:
        raise EscapeError(f"datetime.now({tz}) inside a simulation")

    @classmethod
    def utcnow(cls) -> Any:
        raise EscapeError("datetime.utcnow() inside a simulation")
