"""Memory that a move takes beside its slot: it is given back whatever becomes of the move, but by who dies with it."""

import pytest

from tests.simulation.case import Case
from tests.simulation.loop import NODE
from tests.simulation.run import simulate
from worldmove.state.arena import Arena
from worldmove.worker import component
from worldmove.worker.component import ShadowComponent

NUM_SEEDS = 25
ENDS = ("stop", "power_off")


def left_by_the_living(monkeypatch: pytest.MonkeyPatch) -> tuple[int, int]:
    """Return how many components had memory, and how many still have it of workers that were not told to end."""
    made: list[tuple[Arena, str]] = []

    def noted(size: int, name: str, _kit: None) -> Arena:
        made.append((Arena(size, name), NODE.get()))
        return made[-1][0]

    monkeypatch.setattr(component, "new_arena", noted)
    num_made = num_left = 0
    for seed in range(NUM_SEEDS):
        made.clear()
        lines = simulate(Case(seed=seed, decodes=True, horizon_s=4.0)).lines
        over = [node for _, node in made if any(f"{end} node={node}" in line for end in ENDS for line in lines)]
        num_left += sum(arena.fd >= 0 and node not in over for arena, node in made)
        num_made += len(made)
        for arena, _ in made:
            arena.close()
    return num_made, num_left


def test_a_component_that_was_followed_gives_its_memory_back(monkeypatch: pytest.MonkeyPatch) -> None:
    num_made, num_left = left_by_the_living(monkeypatch)
    assert num_made > NUM_SEEDS / 2
    assert num_left == 0


def test_one_that_would_keep_it_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ShadowComponent, "free", lambda self: None)
    num_made, num_left = left_by_the_living(monkeypatch)
    assert num_left > num_made / 2
