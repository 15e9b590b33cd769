"""After a restart: who asks for something that has to wait is told whom it waits for, and what to do."""

import asyncio

import pytest

from tests.simulation.course import Stage
from tests.simulation.run import directed
from tests.simulation.test_protection import SESSION, ended, kill, opened, owner, protected, shown, until
from worldmove.errors import UserError


@pytest.mark.parametrize("dies", [False, True])
def test_a_move_that_waits_for_a_player_says_so_and_is_made_once_that_one_is_there(*, dies: bool) -> None:
    async def course(stage: Stage) -> None:
        tab = await (protected(stage) if dies else opened(stage, every=0))
        await until(stage, lambda: shown(stage) > 8, "it is played")
        tab.go_away(6.0)
        before = shown(stage)
        stage.server.kill()
        if dies:
            kill(stage, "worker-1")
        await stage.server.start()
        await asyncio.sleep(1.0)
        house = await stage.server.serving()
        said = "its worker has died, and no player has" if dies else "s-1 waits: no player has"
        with pytest.raises(UserError, match=f"{said} said yet what it has seen: open /play/{SESSION}") as refused:
            await house.desk.move(SESSION, "worker-2", damage=False)
        assert refused.value.code == "resuming"
        (view,) = house.controller.sessions()
        assert view.unprotected_why.startswith("resuming: ") == dies
        await until(stage, lambda: shown(stage) > before + 4, "the player is back")
        to = next(name for name in ("worker-2", "worker-3") if name != owner(stage))
        await stage.server.ask(lambda house: house.desk.move(SESSION, to, damage=False))
        assert owner(stage) == to
        await ended(stage, tab)

    directed(course)
