"""A GPU host without a network gets what it lacks, never torch; and is told in one sentence what is missing."""

import hashlib
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

from tests.gpu import wheelhouse
from tests.gpu.children import environment
from tests.gpu.wheelhouse import CONTENTS, ROOT, WheelhouseError, check, installed, pins, wanted

HERE = f"{sys.version_info.major}.{sys.version_info.minor}"


def a_wheel(folder: Path, name: str, version: str) -> Path:
    """Write a wheel of one empty module."""
    module = name.replace("-", "_")
    path = folder / f"{module}-{version}-py3-none-any.whl"
    with ZipFile(path, "w") as archive:
        archive.writestr(f"{module}_of_the_wheelhouse.py", "")
        info = f"{module}-{version}.dist-info"
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    wheels = [a_wheel(tmp_path, name, version) for name, version in wanted().items()]
    lines = [f"python {HERE}", *(f"{hashlib.sha256(path.read_bytes()).hexdigest()} {path.name}" for path in wheels)]
    (tmp_path / CONTENTS).write_text("\n".join(lines) + "\n", encoding="ascii")
    return tmp_path


def wheel_of(folder: Path, name: str) -> Path:
    (path,) = folder.glob(f"{name}-*.whl")
    return path


def test_a_whole_wheelhouse_is_every_pinned_package_but_what_the_host_has(folder: Path) -> None:
    assert {path.name.split("-")[0].replace("_", "-") for path in check(folder)} == set(wanted())
    assert "torch" not in wanted()
    assert {"msgspec", "pytest", "pytest-timeout", "numpy"} <= set(wanted())
    assert wanted().items() <= pins().items()


def test_a_wheelhouse_that_lacks_a_package_is_refused_in_one_sentence_that_names_it(folder: Path) -> None:
    wheel_of(folder, "msgspec").unlink()
    ran = subprocess.run(
        [sys.executable, "-m", "tests.gpu.wheelhouse", "run", str(folder)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    version = pins()["msgspec"]
    sentence = f"The wheelhouse {folder} lacks msgspec {version}; make it again with `make wheelhouse`.\n"
    assert (ran.returncode, ran.stdout, ran.stderr) == (1, "", sentence)


def test_a_package_that_is_pinned_since_is_named_too(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wheelhouse, "wanted", lambda: {"later": "1.2"})
    with pytest.raises(WheelhouseError, match=r"lacks later 1\.2;"):
        check(folder)


def test_a_wheel_that_was_cut_is_named(folder: Path) -> None:
    path = wheel_of(folder, "xxhash")
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(WheelhouseError, match=r"the wheel of xxhash .* is damaged"):
        check(folder)


def test_a_wheelhouse_for_another_python_is_refused(folder: Path) -> None:
    contents = folder / CONTENTS
    contents.write_text(contents.read_text(encoding="ascii").replace(HERE, "2.7"), encoding="ascii")
    with pytest.raises(WheelhouseError, match=r"is for python 2\.7, and this is"):
        check(folder)


def test_a_folder_without_contents_is_none(tmp_path: Path) -> None:
    with pytest.raises(WheelhouseError, match="is no wheelhouse"):
        check(tmp_path)


@pytest.mark.slow
def test_a_command_finds_what_the_wheels_bring(folder: Path) -> None:
    with installed(folder) as environment:
        modules = [f"{name.replace('-', '_')}_of_the_wheelhouse" for name in wanted()]
        command = [sys.executable, "-c", "import " + ", ".join([*modules, "worldmove", "bench"])]
        assert subprocess.run(command, env=environment, check=False).returncode == 0


def test_a_child_of_a_test_there_finds_what_only_its_parents_path_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "brought_in_a_wheel.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    command = [sys.executable, "-c", "import brought_in_a_wheel"]
    subprocess.run(command, cwd=ROOT, env=environment(), check=True)


ABOUT_PATHS = ("own_path.py", "test_wheelhouse.py", "test_nursery.py", "test_determinism.py", "report.py")
"""What makes the path, is about it, or starts interpreters of other versions."""


def test_no_test_hides_from_what_it_starts_where_a_wheelhouses_packages_are() -> None:
    files = [
        path for path in (ROOT / "tests").rglob("*.py") if "gpu" not in path.parts and path.name not in ABOUT_PATHS
    ]
    lines = [(path.name, line.strip()) for path in files for line in path.read_text(encoding="utf-8").splitlines()]
    assert [(name, line) for name, line in lines if "PYTHONPATH" in line and "own_path()" not in line] == []
