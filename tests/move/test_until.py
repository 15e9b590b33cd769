"""Work that ends when it is done, when somebody gives up, or when its time is over."""

import asyncio

import pytest

from tests.move.virtual import run
from worldmove.errors import TransportError
from worldmove.move.attempt import GaveUpError
from worldmove.move.until import given_up, until_given_up


async def forever() -> None:
    await asyncio.sleep(1e9)


async def failing(error: Exception) -> None:
    await asyncio.sleep(1.0)
    raise error


async def done() -> None:
    await asyncio.sleep(1.0)


def test_work_that_is_done_ends_its_listener() -> None:
    heard: list[str] = []

    async def listener() -> None:
        try:
            await forever()
        finally:
            heard.append("ended")

    assert run(until_given_up(done(), listener(), None)) is None
    assert heard == ["ended"]


def test_a_listener_that_gives_up_ends_the_work() -> None:
    gone: list[str] = []

    async def work() -> None:
        try:
            await forever()
        finally:
            gone.append("ended")

    error = GaveUpError("CANCEL", "cancelled", "it was cancelled")
    assert run(until_given_up(work(), failing(error), None)) is error
    assert gone == ["ended"]


def test_work_that_takes_too_long_is_ended() -> None:
    assert isinstance(run(until_given_up(forever(), forever(), 5.0)), TimeoutError)


def test_an_error_of_the_path_is_returned() -> None:
    error = TransportError("broken")
    assert run(until_given_up(failing(error), forever(), None)) is error


def test_an_error_deep_inside_groups_is_returned() -> None:
    error = TransportError("broken")

    async def nested() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(failing(error))
            await forever()

    assert run(until_given_up(nested(), forever(), None)) is error


def test_who_gave_up_says_more_than_what_broke_with_it() -> None:
    reason = GaveUpError("CANCEL", "cancelled", "it was cancelled")

    async def breaking() -> None:
        try:
            await forever()
        finally:
            raise TransportError("cut off")

    assert run(until_given_up(breaking(), failing(reason), None)) is reason


def test_a_bug_is_raised_and_not_returned() -> None:
    with pytest.raises(ExceptionGroup) as caught:
        run(until_given_up(failing(ValueError("a bug")), forever(), None))
    assert caught.group_contains(ValueError)


def test_being_cancelled_is_no_failure() -> None:
    async def story() -> None:
        task = asyncio.create_task(until_given_up(forever(), forever(), 5.0))
        await asyncio.sleep(1.0)
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        run(story())


@pytest.mark.parametrize(
    ("failure", "expected"),
    [
        (GaveUpError("PASSES_DIFFER", "engine_wrote", "window"), ("PASSES_DIFFER", "engine_wrote", "window")),
        (TimeoutError(), ("TIME_OUT", "time_out", "it took longer than it may")),
        (TransportError("the path broke"), ("CANCEL", "transport", "the path broke")),
    ],
)
def test_every_failure_has_an_event_a_word_and_a_sentence(
    failure: GaveUpError | TimeoutError | TransportError, expected: tuple[str, str, str]
) -> None:
    ended = given_up(failure, on_time_out="TIME_OUT", otherwise="CANCEL")
    assert (ended.event, ended.reason, ended.detail) == expected
