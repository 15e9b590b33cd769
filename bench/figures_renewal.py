"""What renewed snapshots cost in words. Pure."""

from collections.abc import Mapping
from typing import Any

from bench.markdown import met, paragraph, table

Result = Mapping[str, Any]
KINDS = (("during", "beside a renewal"), ("between", "protected, between two"), ("control", "not protected"))
WORLDS = ("owner", "resident")


def renewal(result: Result) -> list[str]:
    """Return the section."""
    found, options = result["summary"], result["options"]
    took = found["renewal_ms"]
    spent = f"{took['p50']:.0f} ms (median), {took['max']:.0f} ms at most" if took["n"] else "an unknown time"
    rows = [_row(world, kind, words, found[world][kind]) for world in WORLDS for kind, words in KINDS]
    return [
        "### Renewed snapshots of a protected world\n",
        paragraph(
            f"`bench/renewal.py`, {result['begun_at'][:10]}, commit `{result['commit']['sha'][:10]}`,",
            f"`{options['engine']}`: a snapshot of {found['num_bytes'] / 1e9:.2f} GB every {options['protect']}",
            f"blocks, {found['renewals']} in all, kept by the worker of a second world, whose blocks begin as the",
            "first one's end.",
            f"From its boundary until it is kept goes {spent}.",
        ),
        table(("blocks of", "", "n", "late", "median ms", "90th percentile ms"), rows),
        paragraph(
            f"Beside a renewal a block of the resident takes {_cost(found['resident'])}, one of the owner",
            f"{_cost(found['owner'])}; late while it was protected: {found['late_while_protected']} of both worlds'.",
            f"At most {found['goal']:+.0%} for the resident, and none late: {met(found['goal_met'])}.",
        ),
    ]


def _row(world: str, kind: str, words: str, blocks: Result) -> tuple[str, ...]:
    took = blocks["compute_ms"]
    numbers = (f"{took['p50']:.1f}", f"{took['p90']:.1f}") if took["n"] else ("-", "-")
    return ("" if kind != KINDS[0][0] else f"the {world}", words, str(blocks["n"]), str(blocks["late"]), *numbers)


def _cost(world: Result) -> str:
    return "an unmeasured share" if world["cost"] is None else f"{world['cost']:+.1%}"
