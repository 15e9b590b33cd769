"""One thread for blocking work."""

import asyncio
import os
import threading

import pytest

from worldmove.errors import NoMemory
from worldmove.worker.threads import OneThread


def test_a_cancelled_caller_waits_until_its_function_has_ended() -> None:
    async def play() -> bool:
        thread, begun, may_end, ended = OneThread("test"), threading.Event(), threading.Event(), threading.Event()

        def work() -> None:
            begun.set()
            may_end.wait(60)
            ended.set()

        task = asyncio.create_task(thread(work))
        while not begun.is_set():  # noqa: ASYNC110
            await asyncio.sleep(0.001)
        task.cancel()
        for _ in range(3):
            await asyncio.sleep(0.001)
            assert not task.done()
        may_end.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        thread.close()
        return ended.is_set()

    assert asyncio.run(play())


def test_a_failure_is_the_callers() -> None:
    async def play() -> None:
        thread = OneThread("test")
        try:
            await thread(lambda: 1 // 0)
        finally:
            thread.close()

    with pytest.raises(ZeroDivisionError):
        asyncio.run(play())


def test_functions_run_one_after_another_in_the_same_thread() -> None:
    async def play() -> list[int]:
        thread = OneThread("test")
        seen = await asyncio.gather(*(thread(threading.get_ident) for _ in range(20)))
        thread.close()
        return seen

    assert len(set(asyncio.run(play()))) == 1


def test_a_thread_steps_back_by_itself_alone() -> None:
    def niceness() -> int:
        return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())

    async def play() -> tuple[int, int, int]:
        plain, nice = OneThread("plain"), OneThread("nice", niceness=10)
        found = await plain(niceness), await nice(niceness), niceness()
        plain.close()
        nice.close()
        return found

    before = niceness()
    assert asyncio.run(play()) == (before, 10, before)


def test_its_thread_is_there_before_it_is_asked_for_anything() -> None:
    thread = OneThread("early-bird")
    named = [running.name for running in threading.enumerate()]
    thread.close()
    assert any(name.startswith("early-bird") for name in named)


def test_a_function_that_finds_no_memory_is_an_error_of_ours() -> None:
    def found_none() -> None:
        raise MemoryError

    async def main() -> None:
        thread = OneThread("scarce")
        try:
            with pytest.raises(NoMemory):
                await thread(found_none)
        finally:
            thread.close()

    asyncio.run(main())
