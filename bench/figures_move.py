"""A verified move beside other ways to bring as many bytes elsewhere: the README's table, and its section. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bench.markdown import paragraph, table

SCOPES = ("latents", "complete")
BEGIN = "<!-- moves: written by python -m bench.figures -->"
END = "<!-- end of moves -->"
PEERS = {
    "one flat copy": "one flat copy; verifies nothing",
    "one flat copy to another GPU": "one flat copy to another GPU; verifies nothing",
    "one copy for each tensor": "one copy for each tensor; verifies nothing",
    "one copy for each tensor, to another GPU": "one copy for each tensor, to another GPU; verifies nothing",
    "NCCL, one flat tensor": "NCCL send and receive, one flat tensor",
    "NCCL, each tensor": "NCCL send and receive, each tensor",
    "torch.save and torch.load through memory": "`torch.save` and `torch.load` through memory",
    "safetensors through memory": "safetensors through memory",
}
SERIES = {"match_ms": "from freeze to match", "pause_ms": "pause", "commit_ms": "ask of the commit to grant"}

Result = Mapping[str, Any]


def with_moves(readme: str, results: Mapping[str, Result], further: Sequence[str] = ()) -> str:
    """Return the README with each machine's table of moves between its two marks, and what else belongs there.

    Raises ValueError without the marks.
    """
    head, begin, rest = readme.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end:
        raise ValueError("the README has no place for the table of moves")
    tables = [part for machine, result in results.items() for part in (_caption(result, machine), of(result))]
    parts = "\n".join((*tables, *further))
    return f"{head}{begin}\n\n{parts}\n{end}{tail}"


def move(result: Result) -> list[str]:
    """Return the section of one machine."""
    return ["### A move beside other ways\n", paragraph(*_how(result)), of(result)]


def of(result: Result) -> str:
    """Return the table: medians in ms, one column for each scope."""
    scopes = [scope for scope in SCOPES if scope in result]
    columns = [dict(_rows(result[scope])) for scope in scopes]
    names = list(dict.fromkeys(name for column in columns for name in column))
    heads = [f"{scope}, {result[scope]['num_bytes'] / 1e9:.2f} GB" for scope in scopes]
    return table(("ms, median", *heads), ((name, *(column.get(name, "") for column in columns)) for name in names))


def _rows(found: Result) -> Iterator[tuple[str, str]]:
    peers = found["peers_ms"]
    for name, words in PEERS.items():
        if isinstance(peers.get(name), float | int):
            yield words, _ms(peers[name])
    for name, direct in found.get("between_processes", {}).items():
        copies = direct["match_in_copies"]
        said = _ms(direct["match_ms"]["median"]) + ("" if copies is None else f" ({copies:.1f} copies)")
        yield f"**verified move between two processes**, {name}, from freeze to match", said
    cases: dict[str, Result | None] = {"": found, ", scattered": found.get("scattered")}
    for name, case in cases.items():
        for key, words in SERIES.items():
            series = None if case is None else _series(case, key)
            if series is not None:
                yield f"verified move under play, through the server{name}: {words}", _ms(series["median"])


def _series(case: Result, key: str) -> Mapping[str, Any] | None:
    """Return a series; files from before it had a name have it by its phase."""
    by_phase = {"match_ms": "phase_starts_ms", "commit_ms": "phases_ms"}
    found: Mapping[str, Any] | None = case.get(key)
    return case[by_phase[key]].get("destination commit") if found is None and key in by_phase else found


def _caption(result: Result, machine: str) -> str:
    return paragraph(f"{result['hardware']['accelerator'] or machine}:", *_how(result))


def _how(result: Result) -> tuple[str, ...]:
    versions, commit = result["versions"], result["commit"]
    sha = commit if isinstance(commit, str) else commit["sha"]
    moves = {sum(result[scope]["outcomes"].values()) for scope in SCOPES if scope in result}
    return (
        f"{result['day']}, commit `{sha[:10]}`, torch {versions['torch']};",
        f"{min(moves)} moves under play between two worker processes, every way in one run.",
    )


def _ms(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.2f}" if value < 10 else f"{value:.1f}"
