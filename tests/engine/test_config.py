from dataclasses import replace

import pytest

from worldmove.engine.reference.config import LayerShape, RotaryBand
from worldmove.engine.reference.presets import island, tiny


@pytest.mark.parametrize(
    "change",
    [
        {"head_dim": 62},
        {"layers": ()},
        {"layers": (LayerShape(window=3, num_heads=2),)},
        {"layers": (LayerShape(window=2, num_heads=2),)},
        {"levels": ()},
        {"levels": (0.9, 0.5)},
        {"levels": (1.0, 0.5, 0.6)},
        {"levels": (1.0, 0.0)},
        {"bands": tuple(RotaryBand(num_pairs=5, fastest=1.0, slowest=0.1) for _ in range(3))},
    ],
)
def test_numbers_that_do_not_fit_together_are_refused(change: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"\w+ \w+"):
        replace(island().config, **change)  # type: ignore[arg-type]


def test_the_island_remembers_48_frames_in_12_6_megabytes() -> None:
    config = island().config
    rows = [config.cache_rows(index) * layer.num_heads for index, layer in enumerate(config.layers)]
    assert max(layer.window for layer in config.layers) == 48
    assert 2 * 4 * config.head_dim * sum(rows) == 12_582_912


def test_the_tiny_windows_roll_within_a_few_blocks() -> None:
    config = tiny().config
    assert max(layer.window for layer in config.layers) // config.frames_per_block <= 4
