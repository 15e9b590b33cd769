"""What a GPU host without a network lacks, as wheels; and a command there that finds them.

    python -m tests.gpu.wheelhouse collect FOLDER             where there is a network: the pinned packages, never torch
    python -m tests.gpu.wheelhouse run FOLDER [COMMAND...]    there: tests/gpu, or another command

A GPU host has its own torch, built for its driver. Wheels are for x86-64 Linux and the Python named below. Only the
standard library is needed to begin.
"""

import hashlib
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[2]
PYTHON = "3.12"
CONTENTS = "CONTENTS"
PLATFORMS = ("manylinux2014", "manylinux_2_17", "manylinux_2_24", "manylinux_2_27", "manylinux_2_28", "manylinux_2_34")
NEVER = ("torch", "triton", "nvidia", "cuda")
"""What such a host has of its own."""
NOT_THERE = frozenset({"torch", "playwright", "schemathesis", "pytest-xdist", "httpx"})
"""What no test or measurement there uses."""
TESTS = ("-m", "pytest", "-q", "tests/gpu")


class WheelhouseError(Exception):
    """One sentence for people."""


def main(arguments: Sequence[str]) -> int:
    """Do what the command line says; return the exit status."""
    match arguments:
        case ["collect", folder]:
            names = collect(Path(folder))
            sys.stderr.write(f"{len(names)} wheels for Python {PYTHON} in {folder}\n")
            return 0
        case ["run", folder, *command]:
            with installed(Path(folder)) as environment:
                return subprocess.run(
                    command or (sys.executable, *TESTS), cwd=ROOT, env=environment, check=False
                ).returncode
    sys.stderr.write(f"{__doc__}")
    return 2


def wanted() -> dict[str, str]:
    """Return the packages that the host is to get, with their pinned versions."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    named = [*project["dependencies"], *project["optional-dependencies"]["test"]]
    names = {re.split(r"[^\w.-]", each, maxsplit=1)[0].lower() for each in named} - NOT_THERE
    return {name: version for name, version in pins().items() if name in names}


def pins() -> dict[str, str]:
    """Return the project's constraints."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    return {name: version for name, _, version in (line.partition("==") for line in lines) if version}


def collect(folder: Path) -> list[str]:
    """Fetch the wheels, and what they need in turn; return their names. Raises WheelhouseError."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.whl"):
        old.unlink()
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--quiet", "--dest", str(folder)]
    command += ["--only-binary=:all:", "--implementation", "cp", "--python-version", PYTHON]
    command += [word for platform in PLATFORMS for word in ("--platform", f"{platform}_x86_64")]
    command += [f"{name}=={version}" for name, version in wanted().items()]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if ended.returncode:
        raise WheelhouseError(f"The wheels could not be fetched: {_last_line(ended.stderr)}")
    wheels = sorted(path.name for path in folder.glob("*.whl"))
    brought = [name for name in wheels if name.startswith(NEVER)]
    if brought:
        raise WheelhouseError(f"A package asks for {brought[0]}, which the host has of its own.")
    lines = [f"python {PYTHON}", *(f"{_digest(folder / name)} {name}" for name in wheels)]
    (folder / CONTENTS).write_text("\n".join(lines) + "\n", encoding="ascii")
    return wheels


def check(folder: Path) -> list[Path]:
    """Return the wheels, all of them whole. Raises WheelhouseError, with one sentence, where one is not."""
    again = "make it again with `make wheelhouse`"
    if not (folder / CONTENTS).is_file():
        raise WheelhouseError(f"{folder} is no wheelhouse: it has no {CONTENTS}; {again}.")
    python, *lines = (folder / CONTENTS).read_text(encoding="ascii").splitlines()
    here = f"python {sys.version_info.major}.{sys.version_info.minor}"
    if python != here:
        raise WheelhouseError(f"The wheelhouse {folder} is for {python}, and this is {here}.")
    wheels = {}
    for digest, name in (line.split(" ", 1) for line in lines):
        package, version = _package(name)
        if not (folder / name).is_file():
            raise WheelhouseError(f"The wheelhouse {folder} lacks {package} {version}; {again}.")
        if _digest(folder / name) != digest:
            raise WheelhouseError(f"In the wheelhouse {folder} the wheel of {package} {version} is damaged; {again}.")
        wheels[package, version] = folder / name
    for name, version in wanted().items():
        if (name, version) not in wheels:
            raise WheelhouseError(f"The wheelhouse {folder} lacks {name} {version}; {again}.")
    return list(wheels.values())


@contextmanager
def installed(folder: Path) -> Iterator[dict[str, str]]:
    """Install the wheels beside this Python's own packages; give the environment that finds them.

    Raises WheelhouseError.
    """
    wheels = [str(path) for path in check(folder)]
    with TemporaryDirectory(prefix="worldmove-site-") as site:
        command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-index"]
        command += ["--no-deps", "--no-compile", "--target", site, *wheels]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
        if ended.returncode:
            raise WheelhouseError(f"The wheels could not be installed: {_last_line(ended.stderr)}")
        paths = (site, str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH", ""))
        yield os.environ | {"PYTHONPATH": os.pathsep.join(path for path in paths if path)}


def _package(wheel: str) -> tuple[str, str]:
    """Return the name, as a requirement has it, and the version of a wheel."""
    name, version, _ = wheel.split("-", 2)
    return re.sub(r"[-_.]+", "-", name).lower(), version


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _last_line(text: str) -> str:
    return next((line for line in reversed(text.splitlines()) if line.strip()), "pip says nothing")


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except WheelhouseError as error:
        sys.exit(str(error))
