"""docs/http.md lists every code that the server answers with, beside its status."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
AT_THE_START = {"state_in_use", "port_taken", "other_version", "other_engine", "state_unusable", "ledger_unusable"}
"""Said by a server that does not start, to whoever starts it."""
RAISED = re.compile(r'code="([a-z_]+)",\s*status=([45]\d\d)')


def listed() -> dict[str, set[str]]:
    """Return the codes of each status, as the page has them."""
    found: dict[str, set[str]] = {}
    for line in (ROOT / "docs" / "http.md").read_text(encoding="utf-8").splitlines():
        if row := re.match(r"\| ((?:[45]\d\d(?:, )?)+) \| (.*) \|$", line):
            for status in row[1].split(", "):
                found.setdefault(status, set()).update(re.findall(r"`([a-z_]+)`", row[2]))
    return found


def test_every_code_that_is_raised_with_a_status_is_in_the_row_of_that_status() -> None:
    raised = {
        (status, code)
        for folder in ("fleet", "serve")
        for path in (ROOT / "src" / "worldmove" / folder).rglob("*.py")
        for code, status in RAISED.findall(path.read_text(encoding="utf-8"))
        if code not in AT_THE_START
    }
    assert len(raised) > 30
    page = listed()
    assert sorted((status, code) for status, code in raised if code not in page.get(status, set())) == []
