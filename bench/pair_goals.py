"""What a run on two GPUs was to show, and what it showed: one row for each goal. Pure.

A goal whose step brought nothing is neither met nor missed.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Results = Mapping[str, Any]
"""By step."""
FLAT, EACH = "one flat copy to another GPU", "one copy for each tensor, to another GPU"
NCCL, FILES = "NCCL, one flat tensor", "torch.save and torch.load through memory"
RESIDENT, SCATTERED = "slot-resident", "scattered"
MOST_COPIES = {RESIDENT: 1.15, SCATTERED: 1.30}
MOST_OF_NCCL, LEAST_OF_FILES = 1.10, 450.0
PAUSE_MS, REPLAY_MS = 20.0, 10.0
MOVES, MOVES_AT_1_GBIT, RESIDENTS, AFTER = 200, 3, 2, 50
LINKS = ("100gbit", "25gbit", "10gbit", "1gbit")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One goal. ``is_met``: None where nothing was measured."""

    figure: str
    goal: str
    measured: str
    is_met: bool | None


def rows(results: Results) -> list[Row]:
    """Return every goal's row, in order."""
    crowd = "links" if _has_residents(results.get("links")) and "crowd" not in results else "crowd"
    told: list[tuple[str, str, str, Callable[[Any], tuple[str, bool]]]] = [
        *((f"verified move, latents, {name}", f"<= {most:.2f}x the flat copy", "latents", _copies(name, most))
          for name, most in MOST_COPIES.items()),
        ("against NCCL send and receive", f"<= {MOST_OF_NCCL:.2f}x", "latents", _nccl),
        ("against torch.save and torch.load through tmpfs", f">= {LEAST_OF_FILES:.0f}x", "latents", _files),
        ("complete, both directions at once: pause p99", f"<= {PAUSE_MS:.0f} ms, >= {MOVES} moves", "play", _pause),
        ("late blocks with moves, and in the control", "no more", "play", _late),
        (f"every block against a replay, {AFTER} after the last move", "all equal", "play", _replay),
        *((f"pause at {link}", _goal_at(link), "links", _link(link)) for link in LINKS),
        ("residents' late blocks in a catch-up", f"0, of >= {RESIDENTS} residents", crowd, _residents),
        ("canary and environment of both GPUs", "equal", "alike", _alike),
        ("a forced difference", "refused, with its fields", "alike", _refused),
        ("every path between two GPUs, both directions", "whole", "doctor", _paths),
    ]  # fmt: skip
    return [_row(figure, goal, results.get(step), of) for figure, goal, step, of in told]


def text(found: Sequence[Row]) -> str:
    """Return the table for people."""
    said = {True: "met", False: "NOT MET", None: "not measured"}
    cells = [("FIGURE", "GOAL", "MEASURED", ""), *((r.figure, r.goal, r.measured, said[r.is_met]) for r in found)]
    widths = [max(len(row[column]) for row in cells) for column in range(4)]
    return "\n".join("  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in cells)


def _row(figure: str, goal: str, result: Any, of: Callable[[Any], tuple[str, bool]]) -> Row:
    if result is None:
        return Row(figure=figure, goal=goal, measured="-", is_met=None)
    try:
        measured, is_met = of(result)
    except (KeyError, TypeError) as error:
        return Row(figure=figure, goal=goal, measured=f"its step brought no {error}", is_met=None)
    return Row(figure=figure, goal=goal, measured=measured, is_met=is_met)


def _copies(name: str, most: float) -> Callable[[Any], tuple[str, bool]]:
    def of(found: Any) -> tuple[str, bool]:
        direct = found["between_processes"][name]
        match, copy, ratio = direct["match_ms"]["median"], direct["copy_ms"]["median"], direct["match_in_copies"]
        return f"{match:.2f} ms, flat {copy:.2f} ms: {ratio:.2f}x", ratio <= most

    return of


def _nccl(found: Any) -> tuple[str, bool]:
    taken = found["peers_ms"].get(NCCL)
    if not isinstance(taken, float | int):
        return str(found["peers_ms"].get("NCCL send and receive", "not taken"))[:60], False
    ratio = _match(found) / taken
    return f"{taken:.2f} ms: {ratio:.2f}x", ratio <= MOST_OF_NCCL


def _files(found: Any) -> tuple[str, bool]:
    taken = found["peers_ms"][FILES]
    if not isinstance(taken, float | int):
        return str(taken)[:60], False
    ratio = taken / _match(found)
    return f"{taken:,.0f} ms: {ratio:.0f}x", ratio >= LEAST_OF_FILES


def _match(found: Any) -> float:
    return float(found["between_processes"][RESIDENT]["match_ms"]["median"])


def _pause(found: Any) -> tuple[str, bool]:
    pause, ways = found["pause_ms"], found["directions"]
    if pause is None:
        return "no move", False
    told = f"{pause['p99']:.1f} ms (median {pause['median']:.1f}), {found['moves']} moves, {len(ways)} directions"
    return told, pause["p99"] <= PAUSE_MS and found["moves"] >= MOVES and len(ways) > 1


def _late(found: Any) -> tuple[str, bool]:
    moved, control = found["blocks"]["moved"], found["blocks"]["control"]
    told = f"{moved['late']} of {moved['n']}, {control['late']} of {control['n']}"
    return told, bool(moved["n"]) and moved["late"] <= control["late"]


def _replay(found: Any) -> tuple[str, bool]:
    replay = found["replay"]
    told = f"{replay['num_blocks']} blocks, {replay['num_states']} states, {replay['num_moves']} moves"
    whole = replay["equal"] and replay["num_moves"] >= found["moves"]
    return f"{told}: {'equal' if whole else 'NOT EQUAL'}", bool(whole)


def _goal_at(link: str) -> str:
    return f"<= {PAUSE_MS:.0f} ms" + (f", replay <= {REPLAY_MS:.0f}, >= {MOVES_AT_1_GBIT}" if link == "1gbit" else "")


def _link(link: str) -> Callable[[Any], tuple[str, bool]]:
    def of(found: Any) -> tuple[str, bool]:
        way = found["summary"]["ways"].get(f"any, {link}")
        if not way or not way["moves"]:
            return "no move", False
        by = ", ".join(f"{count} {name}" for name, count in way["strategies"].items())
        enough = link != "1gbit" or way["moves"] >= MOVES_AT_1_GBIT
        told = f"median {way['pause_ms']['p50']:.1f}, largest {way['pause_ms']['max']:.1f} ms ({by})"
        return told, way["goal_met"] and enough

    return of


def _has_residents(links: Any) -> bool:
    """Whether moves over links were taken beside others: that was one step once."""
    return isinstance(links, Mapping) and bool(links.get("summary", {}).get("residents", {}).get("n"))


def _residents(found: Any) -> tuple[str, bool]:
    said, moves = found["summary"]["residents"], found["summary"]["strategies"].get("replay", 0)
    blocks = said["during_a_move_to_it"]
    told = f"{blocks['late']} of {blocks['n']} blocks of {said['n']}, {moves} moves by replay"
    return told, said["n"] >= RESIDENTS and moves > 0 and blocks["n"] > 0 and blocks["late"] == 0


def _alike(found: Any) -> tuple[str, bool]:
    alike = found["alike"]
    differing = [difference["field"] for difference in alike["differences"]]
    told = f"{alike['num_fields']} fields, " + (f"different: {', '.join(differing)}" if differing else "equal")
    return told, not differing and alike["canaries_equal"]


def _refused(found: Any) -> tuple[str, bool]:
    refused = found["refused"]
    is_met = refused["outcome"] == "refused" and refused["reason"] == "environment" and refused["names_the_fields"]
    return f"{refused['outcome']}: {refused['detail']}"[:70], is_met


def _paths(found: Any) -> tuple[str, bool]:
    paths = [check for check in found["checks"] if check["name"].startswith("the path from")]
    whole = [check for check in paths if check["ok"]]
    return f"{len(whole)} of {len(paths)} whole", len(paths) == len(whole) > 1
