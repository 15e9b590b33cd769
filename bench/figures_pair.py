"""Two GPUs of one host in words: the table of goals, and a move from one to the other beside other ways. Pure."""

from collections.abc import Iterator, Mapping
from typing import Any

from bench.figures_move import of
from bench.markdown import met, paragraph, table

Result = Mapping[str, Any]
PARTS = {
    "still": "the source's slot is written no more",
    "begun": "the destination has begun to pull",
    "frozen": "the source has resolved its state",
    "read": "the destination has read what differs from the offer",
    "installed": "its session is made, while bytes are landing",
    "ordered": "the second pass is asked of the source's device, behind the pull",
    "landed": "every byte has landed",
    "digested again": "the source's second pass is over",
    "verified": "the destination's pass over what is installed is over",
    "matched": "everything was compared",
}
"""The instants of a move without a server, in words."""


def pair(result: Result) -> list[str]:
    """Return the section of one machine."""
    results, hardware = result["results"], result["hardware"]
    names = [each["name"] for each in hardware["accelerators"]]
    parts = [
        f"## {result['name'].partition('-')[2]}\n",
        paragraph(f"{len(names)} of {names[0] if names else 'no accelerator'}.", *_how(result)),
        goals(result),
    ]
    if "latents" in results:
        parts += ["### From one GPU to another, beside other ways\n", of({"latents": results["latents"]})]
        parts += [
            "When each part ends, ms from the freeze, median of a session in its slot:\n",
            _parts(results["latents"]),
        ]
    return parts


def goals(result: Result) -> str:
    """Return the table of goals."""
    return table(("figure", "goal", "measured", ""), map(_row, result["goals"]))


def in_short(result: Result, machine: str) -> Iterator[str]:
    """Yield what the README has of it: its caption, the goals that were measured, and the pause under play."""
    accelerator = result["hardware"]["accelerator"] or machine
    yield paragraph(f"{len(result['hardware']['accelerators'])} of {accelerator}, one to the other:", *_how(result))
    measured = [goal for goal in result["goals"] if goal["is_met"] is not None]
    yield table(("figure", "goal", "measured", ""), map(_row, measured))
    pause = result["results"].get("latents", {}).get("pause_ms")
    if pause is not None:
        said = f"{pause['median']:.1f} ms by median and {pause['max']:.1f} ms at most"
        yield paragraph(f"Under play, latents, {pause['n']} moves as admission chose: a pause of {said}.")


def _row(goal: Result) -> tuple[str, ...]:
    verdict = "not measured" if goal["is_met"] is None else met(goal["is_met"])
    return goal["figure"], goal["goal"], goal["measured"], verdict


def _parts(latents: Result) -> str:
    found = latents["between_processes"]["slot-resident"]["parts_ms"]
    return table(
        ("", "ms"), [(words, f"{found[name]['median']:.2f}") for name, words in PARTS.items() if name in found]
    )


def _how(result: Result) -> tuple[str, ...]:
    taken = f"{result['day']}, commit `{result['commit']['sha'][:10]}`, torch {result['versions']['torch']};"
    return taken, "`python -m bench.gpu_pair`."
