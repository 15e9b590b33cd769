"""The table of least bandwidths: what is filed is what its inputs say, and its edges are where it says."""

import json
from dataclasses import replace

import pytest

from bench.least_bandwidth import GBIT, OUT, PAGE, ROWS, changed, measured_of, page, result
from worldmove.move.admission import admit
from worldmove.move.strategy import Strategy


def test_what_is_filed_is_what_the_inputs_say() -> None:
    found = result()
    assert json.loads(OUT.read_text(encoding="utf-8")) == json.loads(json.dumps(found))
    assert PAGE.read_text(encoding="utf-8") == page(found)


@pytest.mark.parametrize("scope", ["latents", "complete"])
def test_a_ten_thousandth_less_is_rejected_and_as_much_as_it_says_is_not(scope: str) -> None:
    least = {row["strategy"]: row["least_gbit"] for row in result()["rows"] if row["scope"] == scope}
    for name, strategy, how in ROWS:
        if least.get(name) is not None:
            it = changed(measured_of(scope), how)
            edge = least[name] * GBIT
            assert admit(replace(it, path_rate=edge * 1.0001), strategy).admitted
            assert not admit(replace(it, path_rate=edge * 0.9999), strategy).admitted


def test_each_idea_needs_less_than_a_copy_of_the_caches_and_a_replay_less_than_a_gigabit() -> None:
    found = result()["summary"]
    copied = found["latents: boundary copy"]
    assert found["latents: streaming"] <= found["latents: difference (pre-copy)"] < copied
    assert found["complete: streaming, decoder followed"] < found["complete: streaming"]
    assert found["latents: replay, nobody else there"] < found["complete: replay, nobody else there"] < 1.0
    assert found["complete: replay beside one other world"] < 1.0


def test_every_strategy_is_in_the_table() -> None:
    assert {strategy for _, strategy, _ in ROWS} == set(Strategy)
