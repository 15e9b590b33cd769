"""A browser test runs, or says why not; in CI it runs."""

from pathlib import Path

import pytest

from tests.chromium import find_chromium


def _executable(path: Path) -> str:
    path.write_text("#!/bin/sh\n", encoding="utf-8")
    path.chmod(0o755)
    return str(path)


def test_chromium_is_found_on_the_path(tmp_path: Path) -> None:
    chromium = _executable(tmp_path / "chromium")
    assert find_chromium({"PATH": str(tmp_path)}) == chromium


def test_the_one_that_is_named_comes_first(tmp_path: Path) -> None:
    _executable(tmp_path / "chromium")
    named = _executable(tmp_path / "mine")
    assert find_chromium({"PATH": str(tmp_path), "CHROMIUM": named}) == named


def test_without_one_a_test_is_skipped(tmp_path: Path) -> None:
    with pytest.raises(pytest.skip.Exception, match="CHROMIUM="):
        find_chromium({"PATH": str(tmp_path)})


def test_without_one_ci_fails(tmp_path: Path) -> None:
    with pytest.raises(pytest.fail.Exception, match="CHROMIUM="):
        find_chromium({"PATH": str(tmp_path), "CI": "true"})
