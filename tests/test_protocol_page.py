"""docs/protocol.md says what the code does: it is generated, and this compares."""

import importlib.util
from pathlib import Path
from types import ModuleType

from worldmove.move.protocol import DESTINATION_STEPS, SOURCE_STEPS

DOCS = Path(__file__).parents[1] / "docs"


def _generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate_protocol", DOCS / "generate_protocol.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_committed_page_is_the_generated_one() -> None:
    committed = (DOCS / "protocol.md").read_text(encoding="utf-8")
    assert committed == _generator().page(), "run: python docs/generate_protocol.py"


def test_every_row_of_both_tables_is_on_the_page() -> None:
    page = _generator().page()
    for (before, event), (after, effect) in [*SOURCE_STEPS.items(), *DESTINATION_STEPS.items()]:
        assert f"| {before.value} | {event.value} | {after.value} | {effect.value} |" in page


def test_every_message_and_operation_says_what_it_is() -> None:
    rows = [line for line in _generator().page().splitlines() if line.startswith("| `")]
    empty = [line for line in rows if not line.split("|")[2].strip()]
    assert len(rows) > 20
    assert empty == []
