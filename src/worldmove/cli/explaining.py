"""Explains a file of ours, whichever it is: told apart by how it begins, never by its name."""

from collections.abc import Callable
from pathlib import Path

import msgspec

from worldmove.cli.explaining_ledger import ledger
from worldmove.cli.explaining_others import bench_result, weights
from worldmove.cli.files import open_file
from worldmove.cli.found import Found, facts
from worldmove.cli.shares import leaf_rows
from worldmove.cli.verdict import ending_notes
from worldmove.cli.verifying import look_through
from worldmove.errors import FileRefused
from worldmove.serve.record_entries import MoveEntry
from worldmove.serve.record_file import RECORD_MAGIC, RecordReader
from worldmove.state.leaf_sizes import leaf_sizes
from worldmove.state.saved import SAVED_MAGIC, read_header
from worldmove.state.saved_state import require_intact
from worldmove.units import bytes_text
from worldmove.worker.states import DIGESTER


def explain(path: Path) -> Found:
    """Say what a file is. Raises UserError where it cannot be read, FileRefused where it is damaged or not ours."""
    with open_file(path) as (file, size):
        return _explainer(file.read(9))(path, size)


def _explainer(start: bytes) -> Callable[[Path, int], Found]:
    if start[:4] == RECORD_MAGIC:
        return _record
    if start[:4] == SAVED_MAGIC:
        return _saved
    if start == b"SQLite fo":
        return ledger
    if start[8:] == b"{":
        return weights
    if start[:1] == b"{":
        return bench_result
    raise FileRefused(f"This is no file of WorldMove: it begins with {start[:4]!r}.")


def _record(path: Path, size: int) -> Found:
    survey = look_through(path)
    header, read = survey.header, survey.read
    moves = _moves(path)
    seconds = read.num_blocks * header.frames_per_block / header.frames_per_s if header.frames_per_s > 0 else 0.0
    sentence = (
        f"a record of {header.session}: {read.num_blocks} blocks from block {header.first_block} on "
        f"({seconds:.0f} s of play), {read.num_moves} moves, {read.num_states} states, {bytes_text(size)}"
    )
    pairs: list[tuple[str, object]] = [
        ("engine", header.engine),
        ("threads", header.num_threads),
        ("seed", header.seed),
        ("opening state", header.state_digest),
        ("written by", f"worldmove {header.worldmove}"),
        ("ends", read.why or " ".join(ending_notes(read))),
    ]
    rows = [
        (m.block, m.report.attempt, m.report.source, m.report.destination, m.report.outcome.value, m.report.reason)
        for m in moves
    ]
    columns = ("BLOCK", "ATTEMPT", "FROM", "TO", "OUTCOME", "REASON")
    fields = {
        "header": msgspec.to_builtins(header),
        "num_blocks": read.num_blocks,
        "num_moves": read.num_moves,
        "num_states": read.num_states,
        "num_bytes": size,
        "ending": read.ending.value,
        "ended": read.why,
        "num_bytes_dropped": read.num_dropped,
        "moves": [{"block": m.block, **msgspec.to_builtins(m.report)} for m in moves],
    }
    return Found(
        kind="record",
        sentence=sentence,
        fields=fields,
        tables=(facts(pairs), *([(columns, rows)] if rows else []), facts(sorted(header.environment.items()))),
    )


def _moves(path: Path) -> list[MoveEntry]:
    with open_file(path) as (file, size):
        return [entry for entry in RecordReader(file, size) if isinstance(entry, MoveEntry)]


def _saved(path: Path, size: int) -> Found:
    with open_file(path) as (file, _):
        header = read_header(file, size)
        manifest = require_intact(file, header, DIGESTER)
    leaves = leaf_sizes(manifest)
    sentence = f"the world {header.session} before block {header.block}, {bytes_text(size)} in {len(leaves)} leaves"
    pairs: list[tuple[str, object]] = [
        ("engine", header.engine),
        ("threads", header.num_threads),
        ("seed", header.seed),
        ("saved by", f"{header.worker}, epoch {header.epoch}, worldmove {header.worldmove}"),
        ("newest key change", header.number),
        ("keys down", ", ".join(header.down) or "none"),
        ("state", header.state_digest),
    ]
    rows = leaf_rows([(leaf.path, leaf.kind, leaf.shape, leaf.num_bytes) for leaf in leaves])
    fields = {
        "header": {**msgspec.to_builtins(header), "remainders": None},
        "leaves": [
            {"path": leaf.path, "kind": leaf.kind, "shape": list(leaf.shape), "num_bytes": leaf.num_bytes}
            for leaf in leaves
        ],
    }
    return Found(kind="saved", sentence=sentence, fields=fields, tables=(facts(pairs), rows))
