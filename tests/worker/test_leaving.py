"""How long a worker that was told to end waits: for as long as something goes, and a server is there to move it."""

import asyncio

import pytest

from tests.move import virtual
from worldmove.worker.leaving import getting_away

WITHIN_S = 30.0


def took_s(
    *, beats_from_s: float, goes_at_s: tuple[float, ...] = (), beats_until_s: float = 1e9, led_until_s: float = 0.0
) -> float:
    """Return how long it waited; a server beats twice a second from one time until another.

    ``led_until_s``: until then each beat says that the sessions are being moved away.
    """

    async def run() -> float:
        clock = asyncio.get_running_loop().time
        begun = clock()

        def heard() -> int:
            since = min(clock() - begun, beats_until_s) - beats_from_s
            return max(0, int(since / 0.5))

        def held() -> int:
            return len(goes_at_s) + 1 - sum(clock() - begun >= at for at in goes_at_s)

        await getting_away(held, heard, lambda: int(min(clock() - begun, led_until_s) / 0.5), WITHIN_S)
        return clock() - begun

    return virtual.run(run())


def test_where_nothing_goes_it_ends_after_its_time() -> None:
    assert took_s(beats_from_s=0.0) == pytest.approx(WITHIN_S, abs=1.0)


def test_each_that_goes_gives_it_all_of_its_time_again() -> None:
    assert took_s(beats_from_s=0.0, goes_at_s=(20.0, 45.0)) == pytest.approx(45.0 + WITHIN_S, abs=1.0)


@pytest.mark.parametrize("away_s", [5.0, 45.0, 300.0])
def test_time_in_which_no_server_is_there_does_not_count(away_s: float) -> None:
    """It builds its engine, say, and its workers stand at its door."""
    assert took_s(beats_from_s=away_s) == pytest.approx(away_s + WITHIN_S, abs=3.0)


@pytest.mark.parametrize("led_until_s", [20.0, 90.0, 600.0])
def test_while_a_server_is_at_it_nothing_ends_it_however_long_one_session_takes(led_until_s: float) -> None:
    """Four states of some GB over a gigabit: none has gone for minutes, and all will have."""
    took = took_s(beats_from_s=0.0, led_until_s=led_until_s)
    assert took == pytest.approx(led_until_s + WITHIN_S, abs=1.0)
