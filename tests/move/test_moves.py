"""Whole moves of a toy world over loopback, with the shipped drivers and the ledger's rules."""

from tests.move.harness import SEED, Fleet, inputs_of
from tests.move.toy import frames_of_a_world_that_never_moved
from tests.move.virtual import run


def reference(fleet: Fleet) -> list[str]:
    return frames_of_a_world_that_never_moved(SEED, [inputs_of(b) for b in range(len(fleet.gateway.shown))])


def test_a_moved_world_shows_what_it_would_have_shown() -> None:
    async def story() -> None:
        fleet = Fleet()
        await fleet.play(4)
        outcome = await fleet.move("B")
        assert outcome.outcomes == ("committed", "committed")
        assert fleet.owner.worker.name == "B"
        await fleet.play(4)
        assert len(fleet.gateway.shown) == 8
        assert fleet.gateway.shown == reference(fleet)

    run(story())
