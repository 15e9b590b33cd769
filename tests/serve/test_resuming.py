"""How long a restarted server waits for who was there: its own absences are nobody's."""

import asyncio
import time
from typing import Any

from worldmove.serve.resuming import LOOK_S, Resuming
from worldmove.serve.resumption import ResumptionConfig

CLIENT_S = 1.0


def test_a_client_that_could_not_come_while_the_server_did_not_run_is_still_waited_for() -> None:
    """The owner is dead, so what that client has received decides which block is next."""

    async def main() -> tuple[bool, int, float]:
        clock = asyncio.get_running_loop().time
        resuming = Resuming(ResumptionConfig(client_s=CLIENT_S, recall_s=0.0))
        resuming.owner_known(lives=False)
        resuming.log_known()
        first: Any = object()
        second: Any = object()
        resuming.join(first, 5, lambda: None)
        showable = asyncio.create_task(resuming.showable())
        await asyncio.sleep(LOOK_S / 2)
        time.sleep(CLIENT_S + 2 * LOOK_S)  # it is stopped
        wakes_at = clock()
        await asyncio.sleep(LOOK_S / 2)
        was_over = showable.done()
        resuming.join(second, 7, lambda: None)
        return was_over, await showable, clock() - wakes_at

    was_over, next_block, took_s = asyncio.run(main())
    assert (was_over, next_block) == (False, 8)
    assert took_s < CLIENT_S + LOOK_S  # and then no longer than anybody
