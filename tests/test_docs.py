"""The documents tell the truth about the tree: links lead somewhere, commands exist, examples compile."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("src/**/*.md")])
TEXT_SUFFIXES = (".css", ".html", ".js", ".json", ".md", ".py", ".toml", ".txt", "")
NOT_OURS = (".git", ".venv", "build", "dist", "venv")

LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)[^)]*\)")
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`([^`\n]+)`")
PLACE = re.compile(r"`([A-Za-z]\w*(?:\.\w+)?)` in\s`([\w/]+\.py)`")
COMMAND = re.compile(r"\bmake ([a-z]+)\b")

# What a file of this tree must not say: where one machine keeps it, whose index it came from, what is undone.
NOT_HERE = re.compile(
    r"(?<![\w.:/])/(?:root|home|work)/|(?:download\.pytorch|pypi|pythonhosted)\.org|\b(?:TO[D]O|FIX[M]E)\b"
)


def _own_files() -> list[Path]:
    found = (path for path in ROOT.rglob("*") if path.is_file() and path.suffix in TEXT_SUFFIXES)
    return sorted(path for path in found if not _foreign(path.relative_to(ROOT)))


def _foreign(path: Path) -> bool:
    caches = any(part.endswith(("cache", "cache__", ".egg-info")) for part in path.parts)
    return caches or path.parts[0] in {*NOT_OURS, ".hypothesis"}


def _named(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("document", DOCUMENTS, ids=_named)
def test_every_link_leads_to_a_file(document: Path) -> None:
    text = FENCE.sub("", document.read_text(encoding="utf-8"))
    targets = [target.partition("#")[0] for target in LINK.findall(text) if not re.match(r"\w+:|#", target)]
    missing = [target for target in targets if not (document.parent / target).exists()]
    assert missing == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=_named)
def test_every_file_that_a_document_names_exists(document: Path) -> None:
    named = [word for word in CODE.findall(document.read_text(encoding="utf-8")) if re.fullmatch(r"[\w./-]+\.py", word)]
    places = [document.parent, ROOT, ROOT / "src" / "worldmove"]
    missing = [name for name in named if not any((place / name).exists() for place in places)]
    assert missing == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=_named)
def test_what_a_document_places_in_a_file_is_defined_there(document: Path) -> None:
    missing: list[str] = []
    for name, file in PLACE.findall(document.read_text(encoding="utf-8")):
        path = ROOT / "src" / "worldmove" / file
        defined = re.findall(r"(?:def|class) (\w+)", path.read_text(encoding="utf-8")) if path.exists() else []
        missing.extend(f"{part} in {file}" for part in name.split(".") if part not in defined)
    assert missing == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=_named)
def test_every_make_command_that_a_document_names_exists(document: Path) -> None:
    targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    text = document.read_text(encoding="utf-8")
    code = [body for _, body in FENCE.findall(text)] + CODE.findall(FENCE.sub("", text))
    assert sorted({name for part in code for name in COMMAND.findall(part)} - set(targets)) == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=_named)
def test_every_python_example_compiles(document: Path) -> None:
    for language, body in FENCE.findall(document.read_text(encoding="utf-8")):
        if language == "python":
            compile(body, str(document), "exec")


@pytest.mark.parametrize("command", ["demo", "test", "check", "fix"])
def test_readme_or_contributing_names_each_command(command: str) -> None:
    text = "".join((ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "CONTRIBUTING.md"))
    assert f"make {command}" in text


def test_ci_runs_the_test_command_of_the_readme() -> None:
    assert "make test" in (ROOT / "README.md").read_text(encoding="utf-8")
    assert re.search(r"^make test\b", (ROOT / ".ci" / "run").read_text(encoding="utf-8"), re.MULTILINE)


def test_no_file_speaks_of_one_machine_or_of_work_undone() -> None:
    found = [
        f"{_named(path)}:{number}: {line.strip()[:80]}"
        for path in _own_files()
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if NOT_HERE.search(line)
    ]
    assert found == []


@pytest.mark.parametrize(
    "parts", [("cd /ro", "ot/x"), ('open("/ho', 'me/x")'), ("# TO", "DO: later"), ("https://py", "pi.org/x")]
)
def test_such_a_line_is_found(parts: tuple[str, str]) -> None:
    assert NOT_HERE.search("".join(parts))  # in parts, since this file is read too


@pytest.mark.parametrize("line", ["src/work/x", "a/home/", "https://example.org/home/x", "see pytorch.org", "worked/"])
def test_a_harmless_line_is_let_pass(line: str) -> None:
    assert not NOT_HERE.search(line)
