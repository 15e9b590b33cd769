"""A plan as a sheet for a terminal: the choice in two lines, every strategy in one, and the terms of each as bars."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from worldmove.cli.output import printable
from worldmove.units import bytes_text, seconds_text

BAR_CELLS = 24
EIGHTHS = " ▏▎▍▌▋▊▉"
Fields = Mapping[str, Any]


def sheet(plan: Fields) -> RenderableType:
    """Lay a plan out, as the server answers it."""
    return Group(_head(plan), Padding(_overview(plan), (1, 0, 0, 0)), *_details(plan))


def _head(plan: Fields) -> Text:
    size, due = bytes_text(plan["num_bytes"]), "No block is due: nobody waits."
    if plan["waited_for"]:
        due = f"The next block is due in {_time(plan['horizon_ms'])}."
    way = f"{plan['session']}: {plan['from']} to {plan['to']} over {plan['transport']}, {size}"
    return Text.assemble((printable(way), "bold"), f"\n{due} ", _choice(plan))


def _choice(plan: Fields) -> Text:
    chosen = _of(plan, plan["strategy"])
    if not plan["admitted"]:
        return Text("It would not be moved.", style="red")
    slack = "" if chosen["slack_ms"] is None else f", {_time(chosen['slack_ms'])} to spare"
    said = f"It would be moved by {_name(chosen)}: a pause of {_time(chosen['pause_ms'])}{slack}."
    return Text(said, style="green")


def _overview(plan: Fields) -> Table:
    """One line for each strategy, and under a rejected one why, and what would admit it."""
    table = Table.grid(padding=(0, 2))
    for justify in ("left", "left", "right", "right", "right", "left"):
        table.add_column(justify=justify)
    table.add_row("", *(Text(name, style="dim") for name in ("STRATEGY", "PAUSE", "BEFORE", "SLACK", "")))
    for found in plan["strategies"]:
        chosen = found["strategy"] == plan["strategy"] and plan["admitted"]
        mark = Text("✓", style="green") if found["admitted"] else Text("✕", style="red")
        times = (_time(found[name]) for name in ("pause_ms", "before_ms", "slack_ms"))
        why = printable(found["reason"]).replace("_", " ")
        said = Text("chosen", style="green") if chosen else Text(why, style="dim")
        table.add_row(mark, Text(_name(found), style="bold" if chosen else ""), *times, said)
    return table


def _details(plan: Fields) -> Iterator[RenderableType]:
    for found in plan["strategies"]:
        yield Padding(Text(_name(found), style="bold"), (1, 0, 0, 0))
        if not found["admitted"]:
            yield from _why_not(found)
        if found["before"] or found["pause"]:
            yield Padding(_terms(found), (0, 0, 0, 2))


def _why_not(found: Fields) -> Iterator[RenderableType]:
    yield Padding(Text(f"Not admitted: {printable(found['detail'])}."), (0, 0, 0, 2))
    if found["remedy"]:
        yield Padding(Text(f"It would take {printable(found['remedy'])}.", style="yellow"), (0, 0, 0, 2))


def _terms(found: Fields) -> Table:
    """The terms before the pause, dim since nobody waits for them; then those of the pause."""
    table = Table.grid(padding=(0, 2))
    for justify in ("left", "right", "left", "left"):
        table.add_column(justify=justify, no_wrap=justify == "right")
    before, pause = found["before"], found["pause"]
    for terms, style, bar in ((before, "dim", "blue"), (pause, "", "green" if found["admitted"] else "red")):
        most_ms = max((term["ms"] for term in terms), default=0.0)
        for term in terms:
            cells = Text(_bar(term["ms"], most_ms), style=bar)
            how = Text(printable(term["how"]), style="dim")
            table.add_row(Text(printable(term["name"]), style=style), Text(_time(term["ms"]), style=style), cells, how)
        table.add_row(*_sum(terms, "played on" if terms is before else "pause"))
    if found.get("spread_ms"):
        how = Text("by as much one in ten of its last moves took longer: it has to fit, too", style="dim")
        table.add_row(Text("spread"), Text(_time(found["spread_ms"])), Text(""), how)
    return table


def _sum(terms: Sequence[Fields], name: str) -> tuple[Text, ...]:
    if not terms:
        return ()
    total = _time(sum(term["ms"] for term in terms))
    return (Text(name, style="bold"), Text(total, style="bold"))


def _bar(ms: float, most_ms: float) -> str:
    """Draw a share of the largest term, to an eighth of a cell; what is there at all is seen."""
    eighths = round(ms / most_ms * BAR_CELLS * 8) if most_ms > 0 else 0
    eighths = max(eighths, 1 if ms > 0 else 0)
    return "█" * (eighths // 8) + EIGHTHS[eighths % 8].strip()


def _time(ms: float | None) -> str:
    return "-" if not ms else seconds_text(ms / 1000)


def _name(found: Fields) -> str:
    """Name a strategy, and say where the destination computes a part of the state itself."""
    is_followed = any(term["name"] == "follow" for term in found["before"])
    return printable(f"{found['strategy']}, decoder followed" if is_followed else found["strategy"])


def _of(plan: Fields, strategy: str) -> Fields:
    found: Fields = next(found for found in plan["strategies"] if found["strategy"] == strategy)
    return found
