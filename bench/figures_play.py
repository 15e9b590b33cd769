"""Moves under play over paths of many speeds in words: pauses by link, what was expected, who was late. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bench.markdown import met, paragraph, table

Result = Mapping[str, Any]

WAYS = ("asked for", "moves", "by", "pause p50", "p90", "max", "expected p50", "late", "goal")
EDGES = ("strategy", "least Gb/s", "just below", "just above")


def under_play(result: Result) -> list[str]:
    """Return the section."""
    found, parts = result["summary"], ["### Moves under play over paths of many speeds\n", paragraph(*_how(result))]
    parts.append(table(WAYS, [_way(name, way) for name, way in found["ways"].items()]))
    parts.append(paragraph(*_said(found)))
    if found["edges"]:
        parts += [
            "Just beside the least bandwidth that admission gives each strategy, as it was then:\n",
            edges(result),
        ]
    return parts


def in_short_play(result: Result) -> Iterator[str]:
    """Yield what the README has of it: each way's pauses."""
    hardware, found = result["hardware"], result["summary"]
    yield paragraph(
        f"{hardware['accelerator'] or hardware['processor']}: {result['begun_at'][:10]}, commit",
        f"`{result['commit']['sha'][:10]}`; {found['moves']} moves in a row of one session under play,",
        f"{found['num_bytes'] / 1e6:,.1f} MB, between two workers on it; a link is a path slowed down to its speed.",
        f"Pauses in ms; {_lates(found)}",
    )
    rows = [(name, str(way["moves"]), *_pauses(way)) for name, way in found["ways"].items() if way["moves"]]
    yield table(("asked for", "moves", "median", "max"), rows)


def _lates(found: Result) -> str:
    """Say how many blocks were late, and whether the moves of the table made them so."""
    late, of_ways = found["blocks"]["with_moves"]["late"], sum(way["late"] for way in found["ways"].values())
    if late == of_ways:
        return f"{late} blocks were late."
    beside = "beside the least bandwidth of a strategy (docs/figures.md)"
    return f"by these {of_ways} blocks were late, and by further moves, {beside}, {late - of_ways}."


def _pauses(way: Result) -> tuple[str, str]:
    return _ms(way["pause_ms"].get("p50")), _ms(way["pause_ms"].get("max"))


def _how(result: Result) -> Iterator[str]:
    found, options, size = result["summary"], result["options"], result["summary"]["num_bytes"] or 0
    yield f"`bench/under_play.py`, {result['begun_at'][:10]}, commit `{result['commit']['sha'][:10]}`,"
    yield f"`{options['engine']}`: {found['moves']} moves in a row of one session of {size / 1e6:,.1f} MB between two"
    yield "workers, *any* by the strategy that admission chose, a link by a path that is slowed down to its speed."
    yield "Pauses in ms; the goal is 10 ms by replay and 20 ms by any other strategy, each single move."


def _way(name: str, way: Result) -> tuple[str, ...]:
    pause, expected = way["pause_ms"], way["expected_ms"]
    by = ", ".join(f"{strategy} ({count})" for strategy, count in way["strategies"].items())
    goal = met(way["goal_met"]) if way["moves"] else "-"
    return (
        name,
        str(way["moves"]),
        by or "-",
        *(_ms(pause.get(key)) for key in ("p50", "p90", "max")),
        _ms(expected.get("p50")),
        str(way["late"]),
        goal,
    )


def _said(found: Result) -> Iterator[str]:
    error, moved, control = found["errors"], found["blocks"]["with_moves"], found["blocks"]["control"]
    if error["of_allowance"]["n"]:
        good = error["of_allowance"]["p90"] <= 1.0
        yield f"Expected against measured pause: the error's 90th percentile over {error['error_ms']['n']} moves is"
        yield f"{error['error_ms']['p90']:.1f} ms, {error['of_allowance']['p90']:.2f} of what is allowed (15 % of the"
        yield f"pause or 2 ms): {met(good)}. {found['late_after_admission']} admitted moves made a block late."
    yield f"Late blocks: {moved['late']} of {moved['n']} with moves,"
    yield f"{control['late']} of {control['n']} in the control."
    yield f"Every part compared and equal in {found['digests_equal']} of {found['moves']} moves."
    if replay := found["replay"]:
        yield f"Computed anew on an engine that never moved: {replay['num_blocks']} blocks,"
        yield f"{replay['num_states']} states and {replay['num_moves']} moves equal: {met(replay['equal'])}."
    if found["not_moved"]:
        told = ", ".join(f"{count} {why}" for why, count in found["not_moved"].items())
        yield f"Not moved: {told}."


def edges(result: Result) -> str:
    """Return the table of real moves beside the least bandwidth at which each strategy was admitted: a row a try."""
    rows: list[tuple[str, dict[str, Result]]] = []
    for edge in result["summary"]["edges"]:
        strategy, side = edge["strategy"], edge["side"]
        if not rows or rows[-1][0] != strategy or side in rows[-1][1]:
            rows.append((strategy, {}))
        rows[-1][1][side] = edge
    moves = result["samples"]["moves"]
    return table(EDGES, [_edge(strategy, sides, moves) for strategy, sides in rows])


def _edge(strategy: str, sides: Mapping[str, Result], moves: Sequence[Result]) -> tuple[str, ...]:
    least = next((edge["least_mbit"] for edge in sides.values() if edge["least_mbit"] is not None), None)
    told = (_told(sides[side], moves) if side in sides else "-" for side in ("below", "above"))
    return strategy.replace("-", " "), "-" if least is None else f"{least / 1000:,.3f}", *told


def _told(edge: Result, moves: Sequence[Result]) -> str:
    if "move" not in edge:
        return "not tried"
    move = moves[edge["move"]]
    if move["outcome"] == "committed":
        before = f", after {move['before_expected_ms'] / 1000:.1f} s" if move["before_expected_ms"] else ""
        return f"{move['link']}: moved, {move['pause_ms']:.1f} ms ({_ms(move['expected_ms'])} expected{before})"
    remedy = move["detail"].partition("it would take ")[2].partition(". ")[0]
    return f"{move['link']}: {move['outcome']}, {move['reason']}" + (f"; it would take {remedy}" if remedy else "")


def resident(result: Result) -> list[str]:
    """Return the section of a resident at the destination."""
    found, there = result["summary"], result["summary"]["residents"]
    during, control = there["during_a_move_to_it"], there["control"]
    strategies = ", ".join(f"{number} by {name}" for name, number in found["strategies"].items())
    return [
        "### A resident while another world comes\n",
        paragraph(
            f"`bench/under_play.py`, {result['begun_at'][:10]}, commit `{result['commit']['sha'][:10]}`:",
            f"{found['moves']} moves, to and fro ({strategies}), and a world that plays at the second worker. While",
            f"one came there, {during['late']} of {during['n']} of its blocks were late (a median of",
            f"{_ms(during['compute_ms'].get('p50'))} ms of compute), {control['late']} of {control['n']} without moves",
            f"({_ms(control['compute_ms'].get('p50'))} ms).",
        ),
    ]


def failover(result: Result) -> list[str]:
    """Return the section of kills."""
    found, options = result["summary"], result["options"]
    shown, blocks = found["to_next_frame_ms"], found["blocks_replayed"]
    return [
        "### Failover\n",
        paragraph(
            f"`bench/failover.py`, {result['begun_at'][:10]}, commit `{result['commit']['sha'][:10]}`,",
            f"`{options['engine']}`: {found['kills']} times kill -9 of the worker of a world that is protected every",
            f"{options['protect']} blocks. From the kill to the next new frame {shown.get('p50', 0):,.0f} ms (median),",
            f"{shown.get('max', 0):,.0f} ms at most; {blocks.get('p50', 0):.0f} blocks were replayed (median),",
            f"{found['blocks_compared']} of {found['blocks_replayed_in_all']} compared with what had been shown. All",
            f"{found['frames']} frames came once, in order, and equal a replay of the lists:",
            f"{met(found['bit_identical'])}.",
        ),
    ]


def _ms(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"
