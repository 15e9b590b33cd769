"""The figures of what it costs to be movable in words. Pure."""

from collections.abc import Mapping
from typing import Any

from bench.markdown import met, paragraph, spread_row, table


def movable(result: Mapping[str, Any]) -> list[str]:
    """Return the section."""
    found = result["summary"]
    (low, high), (engine_low, engine_high) = found["ratio_interval_95"], found["engine_ratio_interval_95"]
    parts = ", ".join(f"{name} {spread['p50']:.3f} ms" for name, spread in found["parts_ms"].items())
    loop = _loop(found["loop"]) if found.get("loop") else []
    return [
        "### The cost of being movable\n",
        paragraph(
            f"{found['pairs']} pairs of one block each, in one process and with one engine, the order alternating: the",
            "bare loop (`engine.step` on a session in plain memory) and the worker's path (list, turn, the engine's",
            "thread, the session in its slot's arena, digests of the frames, message on the link).",
        ),
        table(
            ("ms", "p50", "p90", "max"),
            [
                spread_row("bare loop", found["bare_ms"]),
                spread_row("the worker's path", found["worker_ms"]),
                spread_row("of that, the engine's step", found["engine_in_worker_ms"]),
                spread_row("of that, everything else", found["beside_the_engine_ms"]),
            ],
        ),
        paragraph(
            f"Ratio within a pair: {found['ratio']:.4f} (median; 95 % bootstrap interval {low:.4f} to {high:.4f});",
            f"goal at most {found['goal']}: {met(found['goal_met'])}. The engine's own step takes",
            f"{found['engine_ratio']:.4f}",
            f"times as long in the arena as in plain memory ({engine_low:.4f} to {engine_high:.4f}).",
            f"Parts of the rest, each by itself: {parts}.",
        ),
        *loop,
    ]


def _loop(found: Mapping[str, Any]) -> list[str]:
    """Return what is said of the loop, where it was measured."""
    low, high = found["ratio_interval_95"]
    return [
        paragraph(
            f"The loop, {found['blocks']} blocks whose lists are all there, {found['runs']} runs both ways in turn:",
            f"the worker's takes {found['ratio']:.4f} times as long (median; 95 % bootstrap interval {low:.4f} to",
            f"{high:.4f}), goal at most {found['goal']}: {met(found['goal_met'])}. A block's pictures are hashed",
            "beside the next block.",
        )
    ]
