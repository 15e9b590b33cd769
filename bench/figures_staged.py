"""The path through pinned host memory in words: the link, a pull by it, a whole move. Pure."""

from collections.abc import Mapping
from typing import Any

from bench.markdown import paragraph, table

Result = Mapping[str, Any]


def staged(result: Result) -> list[str]:
    """Return the section."""
    found, commit = result["summary"], result["commit"]
    link, pinning, pulls = found["link_gb_per_s"], found["pinning_ms"], found["pulls"]
    rows = [_pull_row(each) for each in pulls] + [_move_row(each) for each in found["moves"]]
    return [
        "### Through pinned host memory\n",
        paragraph(
            f"`bench/staged.py`, {result['begun_at'][:10]}, commit `{commit['sha'][:10]}`: the path `staged` between",
            f"two processes, medians of {result['options']['repeats']}.",
            "One copy from the device to memory that torch has pinned",
            f"runs at {link['out']:.1f} GB/s, one back at {link['in']:.1f}, and with both at once each has",
            f"{link['both']:.1f}; to and from a ring's memory {link['ring out']:.1f} and {link['ring in']:.1f}.",
            f"A ring is made and pinned in {pinning['pinned']:.0f} ms, before a freeze.",
            f"Shares are of the slower of the first two; the goal of a verified move is {found['goal']:.0%}.",
        ),
        table(("", "GB", "ms", "GB/s", "of the link"), rows),
    ]


def _pull_row(pull: Result) -> tuple[str, ...]:
    words = f"a pull by a ring of {pull['ring']}"
    return (words, *_numbers(pull["num_bytes"], pull["pull_ms"]["p50"], pull["gb_per_s"], pull["of_the_link"]))


def _move_row(move: Result) -> tuple[str, ...]:
    words = f"**verified move of `{move['engine']}`**, from freeze to match"
    rate, share = move["verified_gb_per_s"], move["verified_of_the_link"]
    return (words, *_numbers(move["num_bytes"], move["match_ms"]["p50"], rate, share))


def _numbers(num_bytes: int, took_ms: float, rate: float, share: float) -> tuple[str, ...]:
    return f"{num_bytes / 1e9:.2f}", f"{took_ms:.1f}", f"{rate:.1f}", f"{share:.0%}"
