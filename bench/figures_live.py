"""The live loop in words: pauses, late blocks against the control, what residents feel, and the replay. Pure."""

from collections.abc import Mapping
from typing import Any

from bench.markdown import met, paragraph, table

COLUMNS = (("median", "p50"), ("p99", "p99"), ("max", "max"))


def live(result: Mapping[str, Any]) -> list[str]:
    """Return the section."""
    found, commit = result, result["commit"]
    residents, blocks, replay = found["residents"], found["blocks"], found["replay"]
    cost = residents["cost_of_a_move"]
    series = {
        "pause": found["pause_ms"],
        "ask of the commit to grant": found["commit_ms"],
        "a block of the moved world": blocks["moved"]["compute_ms"],
        "a block of it in the control": blocks["control"]["compute_ms"],
        "a resident's block during a move": found["residents_blocks"]["during_a_move"]["compute_ms"],
        "a resident's block in the control": found["residents_blocks"]["control"]["compute_ms"],
    }
    return [
        "### The live loop\n",
        paragraph(
            f"`worldmove bench live`, {found['begun_at'][:10]}, commit `{commit['sha'][:10]}`, `{found['engine']}`:",
            f"{found['moves']} moves of {found['num_bytes'] / 1e9:.2f} GB, to and fro between two workers, one every",
            f"{found['blocks_a_move']:.1f} blocks of {found['period_ms']:.0f} ms, beside {residents['n']} others.",
            "Segments without moves, of the same worlds in the same processes, are the control.",
        ),
        table(
            ("ms", *(name for _, name in COLUMNS)),
            [(name, *(f"{each[key]:.2f}" for key, _ in COLUMNS)) for name, each in series.items() if each],
        ),
        paragraph(
            f"Late blocks: {blocks['moved']['late']} of {blocks['moved']['n']} with moves,",
            f"{blocks['control']['late']} of {blocks['control']['n']} in the control.",
            "" if cost is None else f"A resident's block takes {cost:+.1%} during a move.",
            f"Beside the moved world {residents['fit_without_checks']} of this pace fit a worker's",
            f"period{_checks(found)}.",
            "Computed anew on an engine that never moved,",
            f"{replay['num_blocks']} blocks, {replay['num_states']} states and {replay['num_moves']} moves are equal:",
            f"{met(replay['equal'])}.",
            "Every goal: met." if not found["misses"] else f"Missed: {'; '.join(found['misses'])}.",
        ),
    ]


def _checks(found: Mapping[str, Any]) -> str:
    """Say how many fit beside the check blocks, of a run that had some."""
    if not found.get("check_blocks"):
        return " where nothing is checked"
    return f", {found['residents']['fit_with_checks']} with {found['check_blocks']} check blocks after each move"
