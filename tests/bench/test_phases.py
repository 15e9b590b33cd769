import pytest

from bench.phases import STEPS, steps

PHASES = {
    "source.freeze": (0.0, 1.0),
    "source.boundary": (1.0, 6.5),
    "destination.land": (1.5, 6.0),
    "source.second_digest": (6.5, 9.0),
    "source.doubt": (9.25, 14.0),
    "destination.wait_proof": (9.0, 10.0),
    "destination.commit": (10.5, 12.0),
    "destination.promote": (12.25, 12.5),
}


def test_the_steps_add_up_to_the_pause() -> None:
    found = steps(PHASES)
    assert found is not None
    assert list(found) == list(STEPS)
    assert sum(found.values()) == pytest.approx(12.5)
    assert (found["land"], found["word of the proof"], found["commit"]) == (4.5, 0.75, 1.5)


@pytest.mark.parametrize("missing", sorted(set(PHASES) - {"source.boundary"}))
def test_a_move_that_lacks_a_phase_is_not_cut(missing: str) -> None:
    assert steps({name: span for name, span in PHASES.items() if name != missing}) is None
