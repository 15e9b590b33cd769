"""The same seed gives the same run: in another process, under another hash seed, and a second time in one process."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.simulation.case import Case
from tests.simulation.hashes import differing, hashes
from tests.simulation.run import simulate

ROOT = Path(__file__).parents[2]
SEEDS = (3, 11, 42, 70, 74, 1234)
PROGRAM = "from tests.simulation.hashes import hashes; print(hashes(), end='')"
NEEDS = "msgspec, numpy, torch, structlog, xxhash, sqlalchemy, prometheus_client, fastapi"
AGAIN = "if the program was changed, `python -m tests.simulation.hashes` files them anew"


def _here() -> str:
    return ",".join(simulate(Case(seed=seed)).hash for seed in SEEDS)


def _failure(python: str, program: str) -> list[str]:
    """Return what an interpreter said when it could not run a program; nothing where it could."""
    asked = subprocess.run([python, "-c", program], capture_output=True, text=True, check=False)
    return (asked.stderr.strip() or f"exit status {asked.returncode}").splitlines() if asked.returncode else []


def _elsewhere(python: str, hash_seed: str) -> str:
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": os.pathsep.join((str(ROOT / "src"), "."))}
    asked = subprocess.run(
        [python, "-c", PROGRAM], env=environment, cwd=ROOT, capture_output=True, text=True, check=True, timeout=100
    )
    return asked.stdout


def _python(version: str) -> str | None:
    """Return the interpreter of a version: of those in the folders that WORLDMOVE_PYTHONS names, or on the path."""
    name, folders = f"python{version}", os.environ.get("WORLDMOVE_PYTHONS", "")
    return shutil.which(name, path=folders) or shutil.which(name)


def test_a_run_is_the_one_that_is_on_file_whichever_python_this_is() -> None:
    assert not differing(hashes()), AGAIN


def test_a_run_is_the_same_in_another_process_under_another_hash_seed() -> None:
    hash_seed = "1" if os.environ.get("PYTHONHASHSEED") == "0" else "0"  # else it is drawn here
    assert not differing(_elsewhere(sys.executable, hash_seed)), AGAIN


def test_a_run_is_the_same_a_second_time_after_junk_was_allocated() -> None:
    first = _here()
    junk = [{str(number): object()} for number in range(50_000)]
    second = _here()
    del junk
    assert first == second


@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13", "3.14"])
def test_a_run_is_the_same_under_another_python(version: str) -> None:
    """Where another interpreter is installed with what the package needs."""
    python = _python(version)
    if version == "{}.{}".format(*sys.version_info[:2]):
        pytest.skip(f"Python {version} is the one that runs these tests")
    if python is None:
        pytest.skip(f"no python{version} is on the path, nor in a folder of WORLDMOVE_PYTHONS")
    if said := _failure(python, "pass"):
        pytest.skip(f"{python} does not start: {said[0]}")
    if said := _failure(python, f"import {NEEDS}"):
        pytest.skip(f"{python} lacks what a run needs: {said[-1]}")
    assert not differing(_elsewhere(python, "0")), AGAIN


def test_two_seeds_differ() -> None:
    assert len({simulate(Case(seed=seed)).hash for seed in SEEDS}) == len(SEEDS)


def test_the_order_of_tasks_is_part_of_the_seed() -> None:
    assert simulate(Case(seed=3)).hash != simulate(Case(seed=3, fifo=True)).hash


def test_no_seconds_are_added_up_by_a_sum_that_pythons_round_differently() -> None:
    """From 3.12 on ``sum`` of floats carries what it loses: ``math.fsum`` is exact in each."""
    files = [
        path for part in ("fleet", "move", "serve", "worker") for path in (ROOT / "src/worldmove" / part).glob("*.py")
    ]
    lines = [line.strip() for path in files for line in path.read_text(encoding="utf-8").splitlines()]
    assert [line for line in lines if re.search(r"\bsum\([^()]*(_s\b|seconds)", line)] == []
    assert len(lines) > 20_000
