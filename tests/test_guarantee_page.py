"""docs/guarantee.md names a test for each promise, and every test that it names is there."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "guarantee.md").read_text(encoding="utf-8")
NAMED = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", PAGE)


def defined(file: str) -> list[str]:
    """The tests of a file."""
    path = ROOT / file
    tree = ast.parse(path.read_text(encoding="utf-8")) if path.exists() else ast.Module(body=[], type_ignores=[])
    return [node.name for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")]


def test_every_test_that_the_page_names_exists() -> None:
    assert [f"{file}::{name}" for file, name in NAMED if name not in defined(file)] == []


def test_every_promise_names_a_test() -> None:
    table = PAGE[PAGE.index("## What is promised") : PAGE.index("## What is not promised")]
    rows = [line for line in table.splitlines() if line.startswith("| ") and not line.startswith("| promise")]
    assert len(rows) >= 12
    assert [row for row in rows if "::test_" not in row] == []
