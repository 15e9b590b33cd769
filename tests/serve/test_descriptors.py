"""A server has no more clients than there are descriptors for."""

import resource
import subprocess
import sys

import pytest

from worldmove.errors import UserError
from worldmove.serve.descriptors import AT_ONCE, LEAST, OWN, for_clients

NEVER = resource.RLIM_INFINITY
FULL = 512 + AT_ONCE + OWN


@pytest.mark.parametrize(
    ("limits", "expected", "raised_to"),
    [
        ((4096, 4096), 512, None),
        ((NEVER, NEVER), 512, None),
        ((256, NEVER), 512, FULL),
        ((256, 4096), 512, FULL),
        ((256, 500), 500 - AT_ONCE - OWN, 500),
        ((LEAST + AT_ONCE + OWN,) * 2, LEAST, LEAST + AT_ONCE + OWN),
    ],
)
def test_there_are_as_many_as_its_limit_bears_which_is_raised_where_it_may_be(
    monkeypatch: pytest.MonkeyPatch, limits: tuple[int, int], expected: int, raised_to: int | None
) -> None:
    raised: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda which: limits)
    monkeypatch.setattr(resource, "setrlimit", lambda which, to: raised.append(to))
    assert for_clients(512) == expected
    assert raised == ([] if raised_to is None else [(raised_to, limits[1])])


def test_where_there_could_be_hardly_any_it_does_not_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda which: (100, 100))
    monkeypatch.setattr(resource, "setrlimit", lambda which, to: None)
    with pytest.raises(UserError, match=r"may open 100 files and connections; a server needs \d+ \(ulimit -n\)"):
        for_clients(512)


def test_a_server_that_may_open_too_few_files_says_so_and_ends() -> None:
    begun = "import resource, sys; resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100)); sys.argv[1:] = {}; "
    arguments = ["serve", "--engine", "reference:tiny", "--port", "0"]
    code = begun.format(arguments) + "from worldmove.cli.main import main; main()"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 2
    assert "ulimit -n" in ended.stderr
    assert "Traceback" not in ended.stderr
