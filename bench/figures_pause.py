"""The figures of pause and gap in words. Pure."""

from collections.abc import Iterable, Mapping
from typing import Any

from bench.markdown import met, paragraph, spread_row, table
from bench.phases import STEPS

PASSES = ("land", "second pass")
"""Steps that go through all of the state's bytes."""
WORDS = ("word of the boundary", "word of the landing", "word of the proof", "commit")
"""Steps that are messages through the server."""
NAMED = 12


def pause(result: Mapping[str, Any]) -> list[str]:
    """Return the section."""
    found = result["summary"]
    paused, copy, again = found["pause_ms"], found["copy_ms"], found["copy_again_ms"]
    copies = [spread_row("one copy", copy), spread_row("the same copy again", again)]
    return [
        "### Pause and gap of a move\n",
        _what(found, result["options"]["workers"]),
        table(("ms", "p50", "p90", "max"), [spread_row("pause", paused), *copies]),
        paragraph(
            f"Goal: 3 copies and 10 ms, here {found['goal_ms']:.1f} ms by the faster copy.",
            f"The median pause is {paused['p50']:.1f} ms, {found['pause_in_copies']:.1f} copies:",
            f"{met(found['pause_goal_met'])}. The state digests of source and destination were equal in",
            f"{found['digests_equal']} of {found['moves']} moves.",
        ),
        lateness(found),
        _system(found),
        "#### What bounds the pause\n",
        table(("step", "p50 ms", "p90 ms", "what it is"), _steps(found)),
        _bounds(found),
        "Both ends' phases, in ms from the freeze:\n",
        table(("phase", "begins, p50", "takes, p50", "takes, p90"), _phases(found)),
    ]


def _what(found: Mapping[str, Any], workers: int) -> str:
    return paragraph(
        f"{found['moves']} verified moves of {found['num_bytes'] / 1e6:.1f} MB between {workers} worker processes,",
        "under play over the real play wire. After each move another process copied as many bytes between two",
        "arenas, twice: once as a move finds its memory, and once more at once. A second world with the same seed",
        "and the same keys took turns with the moved one, segment by segment, and never moved: the control.",
    )


def lateness(found: Mapping[str, Any]) -> str:
    """Say which blocks were late, beside the control's."""
    late = found["late_where_control_was_not"]
    named = ", ".join(map(str, late[:NAMED])) + (", ..." if len(late) > NAMED else "")
    margin, control, after = found["margin_ms"], found["margin_control_ms"], found["margin_after_move_ms"]
    return paragraph(
        f"Gap: of {found['blocks']} blocks of the moved world {found['blocks_late']} came late to the gateway, of the",
        f"control's {found['blocks_control']} it was {found['blocks_late_control']}. Late in the moved world though on",
        f"time in the control: {f'{len(late)} (blocks {named})' if late else 'none'}. A block came",
        f"{margin['p50']:.0f} ms before it was due (median; the control's {control['p50']:.0f} ms), the first block",
        f"after a move {after['p50']:.0f} ms before, and {after['min']:.0f} ms at worst.",
    )


def _system(found: Mapping[str, Any]) -> str:
    engine, beside = found["compute_control_ms"], found["beside_engine_control_ms"]
    if not beside["n"]:
        return ""
    return paragraph(
        "The whole system, unmoved: of a block's way from the closing of its list in the server to its arrival there,",
        f"{engine['p50']:.1f} ms are the engine's step in the worker and {beside['p50']:.2f} ms everything else",
        f"(medians; {beside['p90']:.2f} ms at the 90th percentile).",
    )


def _steps(found: Mapping[str, Any]) -> Iterable[tuple[str, ...]]:
    for name, what in STEPS.items():
        if name in found["steps_ms"]:
            step = found["steps_ms"][name]
            yield (name, f"{step['p50']:.2f}", f"{step['p90']:.2f}", what)


def _bounds(found: Mapping[str, Any]) -> str:
    steps = {name: step["p50"] for name, step in found["steps_ms"].items()}
    if not steps:
        return ""
    whole = sum(steps.values())
    passes, words = sum(steps[name] for name in PASSES), sum(steps[name] for name in WORDS)
    rest = whole - passes - words
    longest = max(steps, key=lambda name: steps[name])
    phases = found["phases_ms"]
    beside = phases["destination.install"]["took_p50"] + phases["destination.verify"]["took_p50"]
    waited = phases["destination.wait_proof"]["took_p50"]
    return paragraph(
        f"The steps follow one another; their medians add up to {whole:.1f} ms. Going through the state's bytes takes",
        f"{passes:.1f} ms of that ({passes / whole:.0%}): the copy, and then the source's second pass, which cannot",
        "begin before the last byte was read. Beside that pass the destination makes a session of what landed and",
        f"reads it ({beside:.1f} ms; it then waited {waited:.1f} ms for the proof).",
        f"Messages through the server take {words:.1f} ms ({words / whole:.0%}): each is a wake-up of two further",
        f"processes, and the commit is two of them and one transaction. What is left, {rest:.1f} ms",
        f"({rest / whole:.0%}), is finding every leaf anew and comparing. The longest step is *{longest}*,",
        f"{steps[longest]:.1f} ms.",
    )


def _phases(found: Mapping[str, Any]) -> Iterable[tuple[str, ...]]:
    for name, phase in found["phases_ms"].items():
        side, _, what = name.partition(".")
        yield (f"{side}: {what}", *(f"{phase[key]:.2f}" for key in ("start_p50", "took_p50", "took_p90")))
