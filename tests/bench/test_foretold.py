"""Moves of a result reckoned again, with what its own workers measured or with what somebody names: it says which."""

import json
from pathlib import Path
from typing import Any

import pytest

from bench.foretold import foretold, options_of, rates_in, told
from bench.under_play_found import samples_of
from tests.bench.test_under_play import a_course, one
from worldmove.errors import UserError
from worldmove.move.measured import COMMIT_S

RATES = {
    "hash_bytes_per_s": 1e9,
    "freeze_s": 0.003,
    "install_s": 0.002,
    "period_s": 0.48,
    "block_s": 0.15,
    "shm_bytes_per_s": 1e9,
}


def a_result(rates: dict[str, dict[str, float]] | None = None, **changes: Any) -> dict[str, Any]:
    """One move of 10 MB by a boundary copy, as a result of moves under play has it."""
    found = a_course(one(strategy="boundary copy", transport="shm", num_bytes=10_000_000, **changes))
    found.rates = rates or {}
    return {"samples": samples_of(found)}


def both(**changes: float) -> dict[str, dict[str, float]]:
    return dict.fromkeys(("worker-1", "worker-2"), RATES | changes)


def written(folder: Path, name: str, found: dict[str, Any]) -> Path:
    path = folder / name
    path.write_text(json.dumps(found), encoding="utf-8")
    return path


def test_a_first_move_is_expected_to_take_what_the_workers_of_its_result_have_measured(tmp_path: Path) -> None:
    """Both passes of the source and the bytes over the path, 10 ms each."""
    said = told(written(tmp_path, "result.json", a_result(both())))
    document, end = json.JSONDecoder().raw_decode(said)
    assert document["rates"] == both()
    assert document["rates_of"] == document["result"] == str(tmp_path / "result.json")
    assert document["all"]["n"] == 1
    assert said[end:].split()[:3] == ["boundary", "copy", f"{3 + 10 + 10 + 2 + COMMIT_S * 1000:.1f}"]


def test_each_ends_own_rates_count() -> None:
    result = a_result({"worker-1": RATES | {"freeze_s": 0.005}, "worker-2": RATES | {"install_s": 0.004}})
    (row,) = foretold(result["samples"]["moves"], result["samples"]["rates"])
    assert (row["terms_ms"]["freeze"], row["terms_ms"]["install"]) == (5.0, 4.0)


def test_a_result_without_rates_needs_a_file_that_has_them_and_says_which(tmp_path: Path) -> None:
    result = written(tmp_path, "result.json", a_result())
    with pytest.raises(UserError, match="before their hello; name a file with --rates"):
        told(result)
    named = written(tmp_path, "rates.json", {"rates": both(freeze_s=0.009)})
    document, _ = json.JSONDecoder().raw_decode(told(result, named))
    assert document["rates_of"] == str(named)
    assert document["rates"]["worker-1"]["freeze_s"] == 0.009
    with pytest.raises(UserError):
        told(result, result)


def test_a_results_own_rates_go_before_those_that_are_named(tmp_path: Path) -> None:
    result = written(tmp_path, "result.json", a_result(both()))
    named = written(tmp_path, "rates.json", {"rates": both(freeze_s=0.009)})
    assert json.JSONDecoder().raw_decode(told(result, named))[0]["rates_of"] == str(result)


def test_rates_are_read_from_a_result_and_from_a_file_of_their_own() -> None:
    assert rates_in(a_result(both())) == rates_in({"rates": both()}) == both()
    assert rates_in(a_result()) is None
    assert options_of(["a.json", "b.json"]).rates is None
