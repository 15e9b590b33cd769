"""A nursery finds what its parent finds, and one that has died is an error at once."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults.nursery import NurseryEndedError, nursery_in
from tests.own_path import ROOT, with_own_path
from worldmove.worker.config import WorkerConfig

ONLY_THERE = "only_there_and_nowhere_else"
LIMIT_S = 20.0


@pytest.fixture
def wheelhouse(tmp_path: Path) -> Path:
    """A folder that has a package, and is on no path yet."""
    (tmp_path / f"{ONLY_THERE}.py").write_text("", encoding="utf-8")
    return tmp_path


def finds(environment: dict[str, str], *words: str) -> bool:
    command = [sys.executable, "-c", *(words or (f"import {ONLY_THERE}, worldmove, tests",))]
    return subprocess.run(command, env=environment, cwd="/", capture_output=True, check=False).returncode == 0


def test_a_child_finds_what_its_parent_has_on_its_path(wheelhouse: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not finds(with_own_path())
    monkeypatch.syspath_prepend(wheelhouse)
    assert finds(with_own_path())


def test_a_child_finds_what_its_parent_was_given_by_its_environment_alone(wheelhouse: Path) -> None:
    asks = (
        "import subprocess, sys; from tests.own_path import with_own_path; "
        f"words = sys.executable, '-c', 'import {ONLY_THERE}, worldmove'; "
        "sys.exit(subprocess.run(words, env=with_own_path()).returncode)"
    )
    paths = (str(wheelhouse), str(ROOT / "src"), str(ROOT))
    assert finds(os.environ | {"PYTHONPATH": os.pathsep.join(paths)}, asks)
    assert not finds(os.environ | {"PYTHONPATH": os.pathsep.join(paths[1:])}, asks)


def instead(folder: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a script for what a nursery runs in."""
    program = folder / "interpreter"
    program.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    program.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(program))


def test_a_nursery_that_cannot_begin_is_an_error_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        async with asyncio.timeout(LIMIT_S), nursery_in(tmp_path):
            raise AssertionError("there is none")

    instead(tmp_path, "exit 3", monkeypatch)
    with pytest.raises(NurseryEndedError, match="with status 3"):
        asyncio.run(main())


def test_a_nursery_that_ends_later_is_an_error_for_whoever_asks_it_for_a_worker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        async with asyncio.timeout(LIMIT_S), nursery_in(tmp_path) as nursery:
            for _ in range(2):
                with pytest.raises(NurseryEndedError, match="with status 4"):
                    await nursery.fork(WorkerConfig(engine="reference:tiny", worker="w-1"))

    instead(tmp_path, """echo '{"began": 1}'; read asked; exit 4""", monkeypatch)
    asyncio.run(main())
