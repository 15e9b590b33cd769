"""The figures of many moves in a row in words. Pure."""

from collections.abc import Mapping
from typing import Any

from bench.figures_pause import lateness
from bench.markdown import met, paragraph, table


def soak(result: Mapping[str, Any]) -> list[str]:
    """Return the section."""
    found = result["summary"]
    return [
        "### Many moves in a row\n",
        paragraph(
            f"{found['moves']} moves under play between {result['options']['workers']} workers, one every",
            f"{found['blocks_per_move']:.2f} blocks, with {found['rests']} rests of the world and",
            f"{found['moves_at_rest']} moves during one; a scripted walk with flags and taps. Then the input log was",
            "replayed in a fresh process, on an engine that was never moved.",
        ),
        table(("compared", "equal"), _compared(found)),
        paragraph(
            f"All bit-identical: {met(found['bit_identical'])}. No late block beyond those of the control, a world of",
            f"the same length and keys that never moved: {met(found['no_added_miss'])}.{_refusals(found)}",
            f"The pause was {found['pause_ms']['p50']:.1f} ms (median), {found['pause_ms']['max']:.1f} ms at most.",
        ),
        lateness(found),
    ]


def _compared(found: Mapping[str, Any]) -> list[tuple[str, str]]:
    checks = found["checks_compared_with_replay"]
    replayed = f"{found['states_equal_to_replay']} of {found['states_compared_with_replay']}"
    return [
        ("state digest of the source with that of the destination", f"{found['digests_equal']} of {found['moves']}"),
        ("state digest at the boundary with that of the replay", replayed),
        ("SHA-256 of every frame with that of the replay", f"{found['frames_equal_to_replay']} of {found['frames']}"),
        (
            "the same, as the player took it again of what came",
            f"{found['frames_seen_equal_to_replay']} of {found['frames_seen']}",
        ),
        (
            "blocks that retired copies stepped (frames and state), with the replay's",
            f"{found['checks_equal_to_replay']} of {checks}",
        ),
    ]


def _refusals(found: Mapping[str, Any]) -> str:
    others = found["not_moved"]
    if not others:
        return ""
    reasons = ", ".join(sorted({f"{outcome}: {reason}" for outcome, reason in others}))
    return f" {len(others)} further moves did not come about ({reasons})."
