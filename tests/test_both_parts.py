"""Both parts of the suite are run, and a failure of either is a failure."""

import sys

import pytest

from tests import __main__ as both


def instead_of_pytest(monkeypatch: pytest.MonkeyPatch, computing: int, playing: int) -> None:
    program = f"import sys; print(sys.argv[1:]); sys.exit({playing} if 'alone' in sys.argv else {computing})"
    monkeypatch.setattr(both, "PYTEST", (sys.executable, "-S", "-E", "-c", program))


@pytest.mark.parametrize(
    ("computing", "playing", "status"),
    [(0, 0, 0), (5, 0, 0), (0, 5, 0), (1, 0, 1), (0, 1, 1), (5, 2, 2), (2, 1, 2)],
)
def test_a_failure_of_either_part_is_one_and_nothing_selected_is_none(
    monkeypatch: pytest.MonkeyPatch, computing: int, playing: int, status: int
) -> None:
    instead_of_pytest(monkeypatch, computing, playing)
    assert both.main("2", ()) == status


def test_both_parts_get_the_arguments_and_what_each_says_is_shown(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    instead_of_pytest(monkeypatch, 0, 0)
    both.main("3", ("-k", "ledger"))
    sys.stdout.flush()
    computing, playing = capfd.readouterr().out.splitlines()
    assert computing == "['-n', '3', '-m', 'not alone', '-k', 'ledger']"
    assert playing == "['-m', 'alone', '-o', 'cache_dir=.pytest_cache/alone', '--timeout=300', '-k', 'ledger']"


def test_what_is_compiled_is_kept_wherever_it_is_run(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.setattr(both, "PYTEST", (sys.executable, "-S", "-c", "import sys; print(sys.dont_write_bytecode)"))
    both.main("2", ())
    sys.stdout.flush()
    assert capfd.readouterr().out.split() == ["False", "False"]


def test_what_plays_in_real_time_goes_before_what_computes(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(both, "PYTEST", (sys.executable, "-S", "-E", "-c", "import os; print(os.nice(0))"))
    both.main("2", ())
    sys.stdout.flush()
    computing, playing = map(int, capfd.readouterr().out.split())
    assert computing == min(19, playing + 5)
