"""The page of figures: its head, and a section for each machine. Pure."""

from collections.abc import Mapping
from typing import Any

from bench.figures_live import live
from bench.figures_movable import movable
from bench.figures_move import move
from bench.figures_pair import pair
from bench.figures_pause import pause
from bench.figures_play import failover, resident, under_play
from bench.figures_renewal import renewal
from bench.figures_soak import soak
from bench.figures_staged import staged
from bench.figures_wmf1 import wmf1
from bench.markdown import paragraph, table

Result = Mapping[str, Any]

HEAD = "# Figures\n"
PLAY = {"under_play": under_play, "resident": resident, "failover": failover, "renewal": renewal}
COLUMNS = ("measurement", "day", "commit", "engine", "Python, torch", "others meanwhile")
ABOUT = (
    "Written by `python -m bench.figures` from the files under `bench/results/`: no number here is written by hand.",
    "`make bench` takes them again on your machine; nothing else should run there meanwhile.",
    "Each file has the machine, the versions, the commit, the command and every single sample.",
    "What they do not say of how they were taken: [bench/results/README.md](../bench/results/README.md).",
)


def page(machines: Mapping[str, Mapping[str, Result]]) -> str:
    """Return the page."""
    parts = [HEAD, paragraph(*ABOUT)]
    for machine, results in machines.items():
        parts += _machine(machine, results)
    if not machines:
        parts.append("Nothing was measured yet.\n")
    return "\n".join(parts)


def _machine(machine: str, results: Mapping[str, Result]) -> list[str]:
    if "pair" in results:
        return pair(results["pair"])
    if "wmf1" in results:
        others = {"movable": movable, "move": move, "live": live, "staged": staged, **PLAY}
        further = [part for name, write in others.items() if name in results for part in write(results[name])]
        return [*wmf1(machine, results["wmf1"]), *further]
    hardware = next(iter(results.values()))["hardware"]
    processor, cores, memory = hardware["processor"], hardware["usable_cores"], hardware["memory_gib"]
    accelerator = hardware.get("accelerator") or "no accelerator"
    parts = [
        f"## {machine}\n",
        f"{processor}, {cores} cores, {memory} GiB, Linux {hardware['kernel']}, {accelerator}.\n",
        table(COLUMNS, map(_run, results.values())),
    ]
    for name, write in (("pause", pause), ("soak", soak), ("movable", movable), *PLAY.items()):
        if name in results:
            parts += write(results[name])
    return parts


def _run(result: Result) -> tuple[str, ...]:
    commit, versions, machine = result["commit"], result["versions"], result["machine"]
    changed = {True: "", False: " and uncommitted changes", None: " (a copy without its history)"}[commit["clean"]]
    return (
        f"`bench/{result['name']}.py`",
        result["begun_at"][:10],
        f"`{commit['sha'][:10]}`{changed}",
        f"`{result['options']['engine']}`",
        f"{versions['python']}, {versions['torch']}",
        f"{machine['other_cores']:.2f} cores used, {machine['stolen_cores']:.2f} stolen",
    )
