"""What leaves as JSON is JSON, and a document's name is its own."""

import ast
import io
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.cli.command import no_number, worldmove
from tests.serve.test_record_file import HEADER, encoded
from worldmove.cli.exits import ExitCode
from worldmove.cli.json_text import json_text
from worldmove.cli.output import Output, Verbosity

ROOT = Path(__file__).parents[2]
WRITERS = sorted([*(ROOT / "src").rglob("*.py"), *(ROOT / "bench").rglob("*.py")])
NO_NUMBERS = (math.nan, math.inf, -math.inf)


def read(text: str) -> Any:
    return json.loads(text, parse_constant=no_number)


@pytest.mark.parametrize("value", NO_NUMBERS)
def test_what_is_no_number_is_null_wherever_it_stands(value: float) -> None:
    said = {"a": value, "b": [1.5, (value, {"c": value})], "d": "NaN", "e": True, "f": 10**40}
    assert read(json_text(said)) == {"a": None, "b": [1.5, [None, {"c": None}]], "d": "NaN", "e": True, "f": 10**40}
    assert read(json_text(said, indent=2)) == read(json_text(said))


def test_a_field_cannot_take_the_place_of_a_documents_name_or_version() -> None:
    out = io.StringIO()
    Output(Verbosity(), as_json=True, out=out).document("move", {"schema": 2, "version": 7, "url": "x"})
    found = read(out.getvalue())
    assert found == {"schema": "worldmove.move", "version": 1, "url": "x"}
    assert list(found) == ["schema", "version", "url"]


def _calls(path: Path) -> Iterator[ast.Call]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("json.dumps", "json.dump"):
            yield node


def test_nothing_is_written_as_json_that_may_say_nan() -> None:
    calls = [(path, call) for path in WRITERS for call in _calls(path)]
    lax = [
        f"{path.relative_to(ROOT)}:{call.lineno}"
        for path, call in calls
        if "allow_nan=False" not in [ast.unparse(keyword) for keyword in call.keywords]
    ]
    assert lax == []
    assert calls, "it is looked for by the name that it has"


def test_no_command_has_a_field_that_a_documents_own_would_hide() -> None:
    """It would not be told, and nobody would hear of it."""
    hidden = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in sorted((ROOT / "src" / "worldmove" / "cli").rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Dict)
        for key in node.keys
        if isinstance(key, ast.Constant) and key.value in ("schema", "version")
    ]
    assert [place.rpartition(":")[0] for place in hidden] == ["src/worldmove/cli/output.py"] * 2


@pytest.mark.parametrize("number", ["NaN", "-Infinity", "1e999", "-1e999"])
def test_a_benchs_result_with_what_is_no_number_is_shown_as_json(tmp_path: Path, number: str) -> None:
    path = tmp_path / "bench.json"
    path.write_text(
        f'{{"name": {number}, "summary": {{"a": {number}, "b": [{number}]}}, "command": "c", "begun_at": 1}}'
    )
    ran = worldmove("inspect", str(path), "--json")
    assert ran.status == ExitCode.DONE
    assert ran.document["result"]["summary"] == {"a": None, "b": [None]}
    assert worldmove("inspect", str(path)).status == ExitCode.DONE


def test_a_result_that_goes_deep_down_to_what_is_no_number_is_shown_or_refused(tmp_path: Path) -> None:
    path = tmp_path / "bench.json"
    for depth in (400, 900, 5000):
        deep = "[" * depth + "NaN" + "]" * depth
        path.write_text(f'{{"name": 1, "summary": {{"a": {deep}}}, "command": "c", "begun_at": 1}}')
        ran = worldmove("inspect", str(path), "--json")
        assert ran.status in (ExitCode.DONE, ExitCode.USAGE), ran.out[:500]
        assert ran.document["schema"] in ("worldmove.inspect", "worldmove.error")


@pytest.mark.parametrize("value", NO_NUMBERS)
def test_a_record_whose_header_says_what_is_no_number_is_shown_as_json(tmp_path: Path, value: float) -> None:
    path = tmp_path / "odd.record"
    path.write_bytes(encoded([], msgspec.structs.replace(HEADER, frames_per_s=value)))
    ran = worldmove("inspect", str(path), "--json")
    assert ran.status in (ExitCode.DONE, ExitCode.USAGE)
    assert ran.document["schema"] in ("worldmove.inspect", "worldmove.error")
