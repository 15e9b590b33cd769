"""What holds only for a time after a beat has come: how old a word may be, however long it was on its way."""

import asyncio

from tests.move import virtual
from worldmove.worker.beats import NUM_BEATS, Beats
from worldmove.worker.messages import InTime


def test_a_word_is_in_time_until_its_time_after_its_beat_is_over() -> None:
    async def run() -> list[bool]:
        beats, only = Beats(), InTime(beat=7, within_s=0.5)
        found = [beats.is_in_time(only)]
        beats.came(7)
        await asyncio.sleep(0.4)
        beats.came(8)  # another beat makes it no younger
        found.append(beats.is_in_time(only))
        await asyncio.sleep(0.2)
        return [*found, beats.is_in_time(only), beats.is_in_time(None)]

    assert virtual.run(run()) == [False, True, False, True]


def test_a_beat_of_an_earlier_link_or_of_long_ago_is_not_known() -> None:
    async def run() -> list[bool]:
        beats, only = Beats(), InTime(beat=1, within_s=60.0)
        beats.came(1)
        found = [beats.is_in_time(only)]
        beats.begin_anew()
        found.append(beats.is_in_time(only))
        for number in range(1, NUM_BEATS + 2):
            beats.came(number)
        return [*found, beats.is_in_time(only)]

    assert virtual.run(run()) == [True, False, False]
