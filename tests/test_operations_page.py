"""docs/operations.md has a row for every code, reason, outcome and status that the package can say."""

import re
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.codes import codes
from worldmove.cli.exits import BY_CODE, ExitCode
from worldmove.fleet.reports import Outcome
from worldmove.serve.player import CloseCode
from worldmove.serve.show import Verdict

PAGE = (Path(__file__).parents[1] / "docs" / "operations.md").read_text(encoding="utf-8")
ROWS = [line.split("|")[1:-1] for line in PAGE.splitlines() if line.startswith("| ")]
DOCUMENTED = frozenset(word for row in ROWS for word in re.findall(r"`([^`]+)`", f"{row[0]} {row[1]}"))
NUMBERS = {int(row[0]): row[1].strip().strip("`") for row in ROWS if row[0].strip().isdigit()}


def missing(words: Iterable[str]) -> list[str]:
    return sorted(word for word in words if word not in DOCUMENTED)


def test_every_code_and_reason_of_the_package_has_a_row() -> None:
    found = codes()
    assert {word: found[word] for word in missing(found)} == {}


def test_every_outcome_of_a_move_has_a_row() -> None:
    assert missing(outcome.value for outcome in Outcome) == []


def test_every_code_with_an_exit_status_of_its_own_has_a_row() -> None:
    assert missing(BY_CODE) == []


def test_every_reason_for_a_block_not_shown_has_a_row() -> None:
    assert missing(verdict.value for verdict in Verdict if verdict not in (Verdict.SHOW, Verdict.RECORD_FIRST)) == []


@pytest.mark.parametrize("code", [*ExitCode, *CloseCode], ids=lambda code: f"{type(code).__name__} {code.name}")
def test_every_status_and_close_code_has_a_row_with_its_name(code: ExitCode | CloseCode) -> None:
    assert NUMBERS.get(int(code)) == code.name


LEDGER_FILES = ("ledger.py", "ledger_faults.py", "ledger_file.py", "ledger_place.py", "notes.py")
"""Where the sentences about the ledger's file are."""


def sentences() -> Iterable[str]:
    """Yield the fixed words with which each begins, behind the file's name."""
    folder = Path(__file__).parents[1] / "src" / "worldmove" / "fleet"
    for name in LEDGER_FILES:
        text = (folder / name).read_text(encoding="utf-8")
        yield from re.findall(r'f"(?:\{\w+(?:\.\w+)?(?:\._\w+)?\} )((?:is|was|cannot|does)\b[^{(.]*)', text)


def test_every_sentence_about_the_ledgers_file_has_a_row() -> None:
    said = re.sub(r"[*]|\(.*?\)", "", PAGE)
    found = [sentence.split(":")[0].strip() for sentence in sentences()]
    assert len(found) >= 10
    assert [words for words in found if words not in said] == []


def test_every_row_says_what_to_do() -> None:
    assert [row for row in ROWS if any(not cell.strip() for cell in row[2:])] == []


@pytest.mark.parametrize(
    "planted",
    [
        'raise MoveRefused("planted_word", "because")',
        'raise UserError("No.", code="planted_word")',
        'class E(Exception):\n    code = "planted_word"',
        'self.end("source", "aborted", "planted_word" if late else "", why)',
        'BY_CODE = {"planted_word": 1}',
        'reason, detail = "planted_word", why',
        'def _why_not(row):\n    return "planted_word"',
        'Denied(session="s", reason="planted_word")',
    ],
)
def test_a_new_word_is_found_however_it_is_said(planted: str, tmp_path: Path) -> None:
    known = (
        "class MoveRefused(Exception):\n    def __init__(self, reason, detail): ...\n"
        "def end(self, side, outcome, reason, detail): ...\n"
    )
    (tmp_path / "planted.py").write_text(f"{known}{planted}\n", encoding="utf-8")
    assert "planted_word" in codes(tmp_path)


def test_a_word_that_is_no_code_is_not_taken_for_one(tmp_path: Path) -> None:
    text = 'def end(code, reason): ...\nend("planted_word")\nCODECS = {"word": 1}\n'
    (tmp_path / "other.py").write_text(text, encoding="utf-8")
    assert codes(tmp_path) == {}
