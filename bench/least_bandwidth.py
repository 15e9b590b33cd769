"""The least bandwidth at which each strategy is admitted for a full-size world, by admission's own rule.

Inputs are measured on one H200 (bench/results/move-h200.json, matrix-h200.json) or follow from the model's geometry
(docs/matrix.md); what is neither is said to be assumed. Writes bench/results/least_bandwidth-h200.json and
docs/bandwidth.md. Computes for a second; measures nothing.
"""

import argparse
import json
import sys
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from bench.figures_play import edges
from bench.markdown import paragraph, table
from bench.record import ROOT
from worldmove.cli.json_text import json_text
from worldmove.fleet.planner import LONGER
from worldmove.move.admission import Verdict, admit
from worldmove.move.measured import Final, Fixed, Measured
from worldmove.move.patience import PATIENCE_S, STILL_S
from worldmove.move.remedy import least
from worldmove.move.strategy import Strategy
from worldmove.serve.tempo import horizon_s

RESULTS = ROOT / "bench" / "results"
OUT = RESULTS / "least_bandwidth-h200.json"
PAGE = ROOT / "docs" / "bandwidth.md"

PERIOD_S = 12 / 25
"""Twelve frames at 25 a second."""
NEW_BYTES = {"latents": 648_990_720, "complete": 648_990_720 + 1_065_349_120}
DIRTY_BYTES = {"latents": 1_297_981_440, "complete": 1_297_981_440 + 1_065_349_120}
"""Of the caches half of what differs are moved rows; the decoder's slots are new each time."""
LAST_BYTES = 2 * 8_110_080
"""The new half of the keys and values of the last layer, which the clean pass makes final last."""
DECODER_BYTES = 1_065_349_120
NUM_LAYERS, NUM_PASSES = 30, 4
ROW_BYTES_PER_S = 1_670_124_960 / 0.0035
"""Rows of the latents scope are found in 3.5 ms (bench/results/gpu_rows-h200.json)."""
TURN_S = 0.0024
"""By how much longer a block keeps its worker's engine: the median between blocks in a row at a worker with two worlds
and a follower (PLAYED)."""
PLAYED = RESULTS / "beside_two-h200x2.json"
GBIT = 1e9 / 8
LINKS_GBIT = (100, 25, 10, 1)

ROWS = (
    ("boundary copy", Strategy.BOUNDARY_COPY, ""),
    ("difference (pre-copy)", Strategy.PRE_COPY, ""),
    ("streaming", Strategy.STREAMING, ""),
    ("streaming, decoder followed", Strategy.STREAMING, "followed"),
    ("replay, nobody else there", Strategy.REPLAY, ""),
    ("replay beside one other world", Strategy.REPLAY, "shared"),
    ("replay beside two other worlds", Strategy.REPLAY, "crowded"),
)
"""What the table calls it, its strategy, and what is different for it."""


def main() -> None:
    """Compute and write; or check that what is written is what would be."""
    options = argparse.ArgumentParser(prog="python -m bench.least_bandwidth", description=__doc__)
    options.add_argument("--check", action="store_true", help="end with 1 where the files say something else")
    checks, found = options.parse_args().check, result()
    for path, text in ((OUT, json_text(found, indent=2) + "\n"), (PAGE, page(found))):
        if not checks:
            path.write_text(text, encoding="utf-8")
        elif path.read_text(encoding="utf-8") != text:
            sys.exit(f"{path} is not what its inputs say; run python -m bench.least_bandwidth")


def result() -> dict[str, Any]:
    """Return inputs and table."""
    inputs = {scope: measured_of(scope) for scope in NEW_BYTES}
    rows = [row for scope, measured in inputs.items() for row in _rows(scope, measured)]
    return {
        "name": "least_bandwidth",
        "command": "python -m bench.least_bandwidth",
        "begun_at": "computed",
        "inputs": {scope: asdict(measured) for scope, measured in inputs.items()},
        "summary": {f"{row['scope']}: {row['strategy']}": row["least_gbit"] for row in rows},
        "rows": rows,
    }


def measured_of(scope: str, folder: Path = RESULTS) -> Measured:
    """Return what admission would go by for one scope, without the path."""
    moves, pace = _read(folder / "move-h200.json"), _read(folder / "matrix-h200.json")
    told = moves[scope]
    took = {name: phase["median"] / 1e3 for name, phase in told["phases_ms"].items()}
    start = {name: phase["median"] / 1e3 for name, phase in told["phase_starts_ms"].items()}
    landed = start["destination land"] + took["destination land"]
    verified = start["destination verify"] + took["destination verify"]
    block_s = pace["pace"]["p99_ms"] / 1e3
    clean_s = pace["pace_in_parts"]["latents"]["median_ms"] / 1e3 / NUM_PASSES
    decode_s = pace["pace_in_parts"]["pictures"]["median_ms"] / 1e3 if scope == "complete" else 0.0
    size = told["num_bytes"]
    return Measured(
        num_bytes=size,
        source_hash_rate=size / took["source second_digest"],
        path_rate=None,
        destination_hash_rate=size / took["destination verify"],
        horizon_s=horizon_s(PERIOD_S, [block_s]),
        row_rate=ROW_BYTES_PER_S,
        copy_rate=size / (told["peers_ms"]["one flat copy"] / 1e3),
        dirty_bytes=DIRTY_BYTES[scope],
        new_bytes=NEW_BYTES[scope],
        further_bytes=0,
        final=Final(
            num_bytes=NEW_BYTES["latents"],
            window_s=clean_s * (NUM_LAYERS - 1) / NUM_LAYERS + decode_s,
            last_bytes=LAST_BYTES,
        ),
        period_s=PERIOD_S,
        block_s=LONGER * (_played_s() + TURN_S),
        utilisation=0.0,
        patience_s=PATIENCE_S,
        still_s=STILL_S,
        num_slots_free=1,
        num_source_slots_free=1,
        fixed=Fixed(
            freeze_s=start["destination land"],
            install_s=start["destination verify"] - landed,
            commit_s=told["pause_ms"]["median"] / 1e3 - verified,
            is_rested=True,
            num_moves=10,
            of="median of 10 moves",
        ),
    )


def _played_s() -> float:
    """Return what blocks take of worlds beside which another one is followed: longer than before that."""
    told = _read(PLAYED)["results"]["links"]["summary"]["residents"]["during_a_move_to_it"]
    return float(told["compute_ms"]["p50"]) / 1e3


def changed(measured: Measured, how: str) -> Measured:
    """Return the measurements of a row that is different."""
    match how:
        case "followed" if measured.final is not None:
            return replace(measured, final=replace(measured.final, followed_bytes=DECODER_BYTES))
        case "shared":
            return replace(measured, utilisation=measured.rate("block_s") / PERIOD_S)
        case "crowded":
            return replace(measured, utilisation=2 * measured.rate("block_s") / PERIOD_S)
        case _:
            return measured


def over(measured: Measured, strategy: Strategy, gbit: float) -> Verdict:
    """Judge a move over a link."""
    return admit(replace(measured, path_rate=gbit * GBIT), strategy)


def _rows(scope: str, measured: Measured) -> list[dict[str, Any]]:
    found = []
    for name, strategy, how in ROWS:
        if how == "followed" and scope == "latents":
            continue  # there is no decoder in it
        it = changed(measured, how)
        rate = least(it, strategy, "path_rate")
        gbit = None if rate is None else rate / GBIT
        found.append(
            {
                "scope": scope,
                "strategy": name,
                "least_gbit": gbit,
                "pause_ms_there": None if gbit is None else round(over(it, strategy, gbit).expected_s * 1e3, 1),
                "before_s_there": None if gbit is None else round(over(it, strategy, gbit).before_s, 2),
                "pause_ms": {str(link): _pause_ms(over(it, strategy, link)) for link in LINKS_GBIT},
            }
        )
    return found


def _pause_ms(verdict: Verdict) -> float | None:
    return round(verdict.expected_s * 1e3, 1) if verdict.admitted else None


def page(found: Mapping[str, Any]) -> str:
    """Return docs/bandwidth.md."""
    complete = found["inputs"]["complete"]
    links = [f"{link} Gb/s" for link in LINKS_GBIT]
    parts = [
        "# The least bandwidth\n",
        paragraph(
            "Written by `python -m bench.least_bandwidth` from the inputs below, by the rule that admission goes by",
            "([0007](design/0007-moving-while-it-plays.md)): computed, not measured. Of anything less a move is",
            "rejected. 25 frames a second, 12 frames a block, and the next block due",
            f"{complete['horizon_s'] * 1e3:.0f} ms after the last one's end, less the time that it takes to compute.",
        ),
    ]
    for scope in NEW_BYTES:
        size = found["inputs"][scope]["num_bytes"]
        rows = [_cells(row) for row in found["rows"] if row["scope"] == scope]
        head = ("strategy", "least Gb/s", "pause there", "before it", *(f"pause at {link}" for link in links))
        parts += [f"## {scope.capitalize()}: {size / 1e9:.2f} GB\n", table(head, rows)]
    parts += ["A dash: rejected at this speed, or at every one.\n", "## Inputs\n", _inputs(found["inputs"])]
    parts.append(
        paragraph(
            "Rates and fixed parts are those of ten moves on one H200 between two workers, and of the engine's pace",
            "(bench/results/move-h200.json, matrix-h200.json). Bytes follow from the model's geometry",
            "([matrix.md](matrix.md)). The rate of rows is that of `bench.gpu_rows`: 3.5 ms for the latents scope.",
            "What a block takes beside others' is the median of two worlds' while a third one was followed there, and",
            f"its turn at the engine, {TURN_S * 1e3:.1f} ms (two H200s, bench/results/beside_two-h200x2.json), and a",
            "hundredth more, as admission adds. Their lists lie evenly in a period. A replay over 10 Gb/s to that",
            "worker was admitted by what blocks take to be computed, and had not caught up after 60 s.",
        )
    )
    parts += _tried()
    return "\n".join(parts)


TRIED = ("under_play", "edges")
"""Measurements that have moves beside the least bandwidth."""


def _tried(folder: Path = RESULTS) -> list[str]:
    """Return the tables of real moves just beside the least bandwidth, where there are any."""
    paths = (path for name in TRIED for path in sorted(folder.glob(f"{name}-*.json")))
    found = {path.stem: _read(path) for path in paths}
    tried = {name: edges(result) for name, result in found.items() if result["summary"]["edges"]}
    if not tried:
        return []
    parts = ["## Real moves just below and just above\n"]
    for name, text in tried.items():
        result = found[name]
        of = f"commit `{result['commit']['sha'][:10]}`, [raw](../bench/results/{name}.json)"
        parts += [f"`{result['options']['engine']}`, {of}, by what admission went by then:\n", text]
    return parts


def _cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    pauses = (_text(row["pause_ms"][str(link)], " ms") for link in LINKS_GBIT)
    least_text = _text(row["least_gbit"], "", digits=2)
    return (
        row["strategy"],
        least_text,
        _text(row["pause_ms_there"], " ms"),
        _text(row["before_s_there"], " s"),
        *pauses,
    )


def _text(value: float | None, unit: str, digits: int = 1) -> str:
    return "-" if value is None else f"{value:,.{digits}f}{unit}"


def _inputs(inputs: Mapping[str, Mapping[str, Any]]) -> str:
    names = [name for name, value in inputs["latents"].items() if type(value) in (int, float)]
    groups = {group: inputs["latents"][group] for group in ("final", "fixed")}
    nested = [(group, name) for group, of in groups.items() for name, value in of.items() if type(value) is not str]
    rows = [(name, *(_number(inputs[scope][name]) for scope in inputs)) for name in names]
    rows += [(f"{group}.{name}", *(_number(inputs[s][group][name]) for s in inputs)) for group, name in nested]
    return table(("input", *inputs), rows)


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"


def _read(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


if __name__ == "__main__":
    main()
