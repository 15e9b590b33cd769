"""A plan's sheet, as a person reads it in a terminal."""

import io
from dataclasses import replace
from typing import Any

import pytest
from rich.console import Console

from tests.serve.fakes import MEASURED
from worldmove.cli.plan_sheet import sheet
from worldmove.fleet.forecast import Forecast
from worldmove.move.choice import choose
from worldmove.move.measured import Measured
from worldmove.move.strategy import Strategy
from worldmove.serve.planning import plan_body


def plan_of(measured: Measured) -> dict[str, Any]:
    """A plan as the server answers it."""
    same = dict.fromkeys(Strategy, measured)
    forecast = Forecast(
        session="s-1",
        source="a",
        destination="b",
        transport="shm",
        measured=same,
        choice=choose(same, offered=tuple(Strategy)),
    )
    return plan_body(forecast).model_dump(by_alias=True)


def lines(plan: dict[str, Any], width: int = 120) -> list[str]:
    """The sheet as plain text."""
    out = io.StringIO()
    Console(file=out, width=width, highlight=False).print(sheet(plan))
    return [line.rstrip() for line in out.getvalue().splitlines()]


def test_the_head_names_the_way_and_the_choice() -> None:
    head = lines(plan_of(MEASURED))
    assert head[0] == "s-1: a to b over shm, 20.0 MB"
    assert head[1] == (
        "The next block is due in 250 ms. It would be moved by boundary copy: a pause of 21.5 ms, 228 ms to spare."
    )


def test_each_strategy_has_a_line_with_its_sign() -> None:
    overview = lines(plan_of(MEASURED))[3:8]
    assert [line.split()[:2] for line in overview] == [
        ["STRATEGY", "PAUSE"],
        ["✓", "boundary"],
        ["✕", "pre-copy"],
        ["✕", "streaming"],
        ["✓", "replay"],
    ]
    assert overview[1].endswith("chosen")
    assert overview[2].endswith("not measured")


def test_the_terms_are_drawn_as_shares_of_the_largest_and_add_up() -> None:
    told = lines(plan_of(MEASURED))
    landed = next(line for line in told if line.strip().startswith("land"))
    commit = next(line for line in told if line.strip().startswith("commit"))
    assert "20.0 MB in 5.00 ms" in landed
    assert landed.count("█") == 20 < commit.count("█") == 24  # 5 ms, and the 6 ms that are the most
    assert "pause     21.5 ms" in "\n".join(told) or "pause   21.5 ms" in "\n".join(told)


def test_a_rejected_strategy_says_why_and_what_would_admit_it() -> None:
    told = "\n".join(lines(plan_of(replace(MEASURED, path_rate=50e6, horizon_s=0.1)), width=200))
    assert "Not admitted: moving 20.0 MB is expected to take 417 ms, and the next block is due in 100 ms" in told
    assert "It would take 317 ms more until the next block is due (a longer buffer at the client)." in told
    assert "It would be moved by replay" in told


def test_where_nothing_is_admitted_it_says_so_first() -> None:
    told = lines(plan_of(replace(MEASURED, path_rate=None)))
    assert told[1].endswith("It would not be moved.")
    assert "chosen" not in "\n".join(told)


def test_a_world_that_nobody_waits_for_has_no_horizon() -> None:
    assert lines(plan_of(replace(MEASURED, horizon_s=float("inf"))))[1].startswith("No block is due: nobody waits.")


@pytest.mark.parametrize("width", [60, 80, 200])
def test_the_sheet_keeps_to_the_terminals_width(width: int) -> None:
    assert all(len(line) <= width for line in lines(plan_of(MEASURED), width))


def test_what_a_server_says_is_shown_and_not_obeyed() -> None:
    evil = plan_of(MEASURED) | {"session": "s-\x1b[2J[bold]1[/bold]"}
    assert lines(evil)[0].startswith("s-\\x1b[2J[bold]1[/bold]: a to b")


def test_of_a_replay_every_term_before_the_pause_has_its_unit_and_what_it_is_of() -> None:
    told = lines(plan_of(MEASURED))[lines(plan_of(MEASURED)).index("replay") :]
    said = {name: next(line for line in told if line.strip().startswith(name)) for name in BEFORE}
    assert all(" ms " in line or " s " in line for line in said.values())
    assert said["catch up"].endswith("of 100 ms, in 400 ms of every 500 ms")
    assert said["turn"].split()[1:3] == ["100", "ms"]  # a fifth of a period of half a second


def test_of_a_replay_that_would_never_catch_up_the_terms_are_told_up_to_where_it_would_follow() -> None:
    plan = plan_of(replace(MEASURED, utilisation=0.9))
    (replay,) = [found for found in plan["strategies"] if found["strategy"] == "replay"]
    assert [term["name"] for term in replay["before"]] == BEFORE[:-1]
    assert all(term["ms"] > 0 and term["how"] for term in replay["before"])
    assert (replay["pause"], replay["pause_ms"], replay["before_ms"], replay["slack_ms"]) == ([], None, None, None)
    told = "\n".join(lines(plan, width=200))
    assert "a block takes 100 ms there, and its own worlds leave 50.0 ms for another one in the 500 ms between" in told
    assert "It would take blocks of 49.9 ms at the destination (now 100 ms)" in told
    assert "next boundary" in told
    assert (plan["measured"]["block_s"], plan["measured"]["utilisation"]) == (0.1, 0.9)


BEFORE = ["next boundary", "aside", "snapshot", "check", "turn", "catch up"]
