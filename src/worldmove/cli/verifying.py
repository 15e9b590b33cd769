"""Computes a record anew: one engine, one arena, no move; and compares every frame and state with what was recorded.

The file is read twice: first whole, so that damage is found before anything is computed and the moves are known
when their boundaries come; then block by block.
"""

import hashlib
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from worldmove.cli.files import open_file
from worldmove.cli.progress import Bar
from worldmove.cli.recorded_moves import RecordedMoves, recorded_moves
from worldmove.cli.verdict import Difference, Verdict, ending_notes, unexplained_note
from worldmove.engine.base import Engine, KeyChange
from worldmove.engine.facts import fields_of
from worldmove.engine.named import ENGINES
from worldmove.errors import FileRefused, UserError
from worldmove.fleet.reports import MoveReport
from worldmove.serve.record_entries import BlockEntry, LeavesEntry, MoveEntry, RecordHeader, StateEntry
from worldmove.serve.record_file import Progress, RecordReader
from worldmove.state.arena import AnyArena, new_arena
from worldmove.state.environment import Environment
from worldmove.state.kits import kit_of
from worldmove.state.leaf_digests import first_difference
from worldmove.state.saved_state import load
from worldmove.worker.block_made import frames_of
from worldmove.worker.engines import build_engine
from worldmove.worker.foreign import engine_trusted
from worldmove.worker.installing import install_in, open_in
from worldmove.worker.states import DIGESTER, account_of, digest_of
from worldmove.worker.warm_up import WarmUp, warm_up


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What is to be verified. ``engine``: the name that the user trusts, where the record's is not one of ours."""

    path: Path
    saved: Path | None = None
    engine: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """What a first reading found."""

    header: RecordHeader
    read: Progress
    moves: RecordedMoves


@dataclass(slots=True, kw_only=True)
class Replay:
    """A session that is computed anew, and where it stands in its record."""

    engine: Engine[Any]
    session: Any
    epoch: int | None = None
    paths: tuple[str, ...] = ()


def verify_record(asked: Asked, bar: Bar) -> Verdict:
    """Verify a file. Raises FileRefused, UserError('environment' | 'no_file' | 'usage'), WeightsError."""
    survey = look_through(asked.path)
    header = survey.header
    engine = build_engine(_engine_name(header, asked.engine), header.num_threads)
    _require_engine(header, engine)
    _require_frames(header, engine)
    warm = warm_up(engine, time.perf_counter)
    _require_environment(header, warm)
    verdict = Verdict(session=header.session, read=survey.read, num_moves_recorded=survey.moves.num_ended)
    verdict.notes.extend(ending_notes(survey.read))
    with _arena(warm, engine) as arena:
        replay = Replay(engine=engine, session=_begin(engine, header, asked.saved, arena))
        if digest_of(engine, replay.session) != header.state_digest:
            verdict.difference = Difference(block=None, what="opening state")
        else:
            bar.of(survey.read.num_blocks)
            with open_file(asked.path) as (file, size):
                _follow(replay, RecordReader(file, size), survey, verdict, bar)
        del replay
    return verdict


def look_through(path: Path) -> Survey:
    """Read a record whole. Raises FileRefused at damage, UserError where there is no such file."""
    with open_file(path) as (file, size):
        reader = RecordReader(file, size)
        reports = [entry.report for entry in reader if isinstance(entry, MoveEntry)]
        return Survey(header=reader.header, read=reader.progress, moves=recorded_moves(reports))


def _follow(replay: Replay, reader: RecordReader, survey: Survey, verdict: Verdict, bar: Bar) -> None:
    """Step through the record until its end; after a first difference only until a state tells the leaf."""
    for entry in reader:
        match entry:
            case BlockEntry():
                _compare_moves_before(replay, entry, survey.moves, verdict)
                _compare_block(replay, entry, verdict)
                bar.done()
            case LeavesEntry(paths=paths):
                replay.paths = paths
            case StateEntry():
                _compare_state(replay, entry, verdict)
                if verdict.difference is not None:
                    return
    next_block = survey.header.first_block + survey.read.num_blocks
    _compare_moves(replay, survey.moves.between(replay.epoch, None), next_block, verdict)


def _compare_moves_before(replay: Replay, entry: BlockEntry, moves: RecordedMoves, verdict: Verdict) -> None:
    """Where the epoch changes by moves, or one took place before the first block: all of them stand where it does."""
    before, replay.epoch = replay.epoch, entry.epoch
    if before == entry.epoch or verdict.difference is not None:
        return
    if num_unexplained := moves.num_unexplained(before, entry.epoch):
        verdict.notes.append(unexplained_note(entry.block, entry.epoch, num_unexplained))
    _compare_moves(replay, moves.between(before, entry.epoch), entry.block, verdict)


def _compare_moves(replay: Replay, moves: Sequence[MoveReport], block: int, verdict: Verdict) -> None:
    """The state is to be the one that both ends of each of these moves had, which stand before ``block``."""
    if not moves or verdict.difference is not None:
        return
    here = digest_of(replay.engine, replay.session)
    for move in moves:
        # A destination takes none of a large state, and an end that died has said none.
        said = [digest for digest in (move.source_digest, move.destination_digest) if digest]
        if not said:
            note = f"No end of the move {move.attempt} has said a digest: only what was shown is compared."
            verdict.notes.append(note)
        elif any(digest != here for digest in said):
            verdict.difference = Difference(block=block, what="move", attempt=move.attempt)
            return
        else:
            verdict.num_moves += 1


def _compare_block(replay: Replay, entry: BlockEntry, verdict: Verdict) -> None:
    unknown = next((key for _, key, _ in entry.changes if key not in replay.engine.spec.keys), None)
    if unknown is not None:
        raise FileRefused(f"The record's block {entry.block} has the key {unknown!r}, which the engine does not have.")
    changes = [KeyChange(number=number, key=key, down=down) for number, key, down in entry.changes]
    with engine_trusted("step a block"):
        frames = frames_of(replay.engine.step(replay.session, changes), replay.engine.spec)
    if verdict.difference is not None:
        return
    for index, (frame, sha256) in enumerate(zip(frames, entry.frame_sha256, strict=True)):
        if hashlib.sha256(frame.data).digest() != sha256:
            verdict.difference = Difference(block=entry.block, what="frame", frame=index)
            return
    verdict.num_blocks += 1
    verdict.num_frames += len(entry.frame_sha256)


def _compare_state(replay: Replay, entry: StateEntry, verdict: Verdict) -> None:
    account = account_of(replay.engine, replay.session)
    leaf = first_difference(replay.paths, entry.leaf_digests, account.paths, account.leaf_digests)
    if verdict.difference is not None:
        verdict.difference = _with_leaf(verdict.difference, leaf, entry.block)
        if leaf is None:
            what = "what the move's report says" if verdict.difference.what == "move" else "what was shown"
            verdict.notes.append(f"The state after block {entry.block} is equal: only {what} differs.")
    elif account.state_digest != entry.state_digest or leaf is not None:
        verdict.difference = Difference(block=entry.block, what="state", leaf=leaf, leaf_after=entry.block)
    else:
        verdict.num_states += 1


def _with_leaf(found: Difference, leaf: str | None, after: int) -> Difference:
    return Difference(
        block=found.block, what=found.what, frame=found.frame, leaf=leaf, leaf_after=after, attempt=found.attempt
    )


def _engine_name(header: RecordHeader, trusted: str | None) -> str:
    """Return the engine to build. One that is not ours is imported, so it must be named by the user, not by a file."""
    if trusted is not None:
        return trusted
    if header.engine in ENGINES:
        return header.engine
    raise UserError(
        f"The record was made by {header.engine[:200]}, which is not part of WorldMove; "
        "name it with --engine if you trust it."
    )


def _require_frames(header: RecordHeader, engine: Engine[Any]) -> None:
    said = header.frames_per_block, header.frames_per_s
    if said != (engine.spec.frames_per_block, engine.spec.frames_per_s):
        raise FileRefused(
            f"This record is damaged: it has {said[0]} frames in a block and {said[1]:g} in a second, and "
            f"{engine.spec.name} has {engine.spec.frames_per_block} and {engine.spec.frames_per_s:g}."
        )


def _require_engine(header: RecordHeader, engine: Engine[Any]) -> None:
    """Raise UserError where it says that another engine has made it: what that calls a block is no damage."""
    facts = fields_of(engine.spec)
    said = facts.keys() & header.environment.keys()
    _require_equal({name: facts[name] for name in said}, {name: header.environment[name] for name in said})


def _require_environment(header: RecordHeader, warm: WarmUp) -> None:
    _require_equal(warm.environment, header.environment)


def _require_equal(here: Mapping[str, str], there: Mapping[str, str]) -> None:
    differences = Environment(fields=here).difference(Environment(fields=there))
    if differences:
        said = "; ".join(f"{d.field} is {d.here or 'not set'} here and was {d.there or 'not set'}" for d in differences)
        why = f"Not verified: this machine would compute something else. {said}."
        raise UserError(why, code="environment", status=409)


@contextmanager
def _arena(warm: WarmUp, engine: Engine[Any]) -> Iterator[AnyArena]:
    """Give memory like a worker's slot."""
    arena = new_arena(warm.arena_bytes, "worldmove-verify", kit_of(engine.spec.device))
    try:
        yield arena
    finally:
        arena.close()


def _begin(engine: Engine[Any], header: RecordHeader, saved: Path | None, arena: AnyArena) -> Any:
    """Make the session that the record begins with. Raises UserError where it went on from one that is not given."""
    if header.first_block == 0:
        with engine_trusted("open a session"):
            return open_in(engine, engine.open(header.seed), arena)[0]
    if saved is None:
        raise UserError(
            f"The recorded world went on from a saved one at block {header.first_block}; name that file with --from."
        )
    with open_file(saved) as (file, _):
        found, manifest, placement = load(file, arena, DIGESTER)
    if (found.block, found.state_digest) != (header.first_block, header.state_digest):
        raise UserError(f"{saved} is not the saved world that the recorded one went on from.")
    return install_in(engine, manifest, placement, arena)[0]
