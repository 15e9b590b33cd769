"""What the controller and the gateway know, as bodies of HTTP answers."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

import msgspec

from worldmove.errors import UserError, WorldMoveError
from worldmove.fleet.failover_report import FailoverReport
from worldmove.fleet.reports import MoveReport
from worldmove.fleet.views import SessionView, WorkerView
from worldmove.move.report import PhaseTime
from worldmove.serve import http_models as body
from worldmove.serve.live import Live
from worldmove.serve.planning import expectation_body
from worldmove.serve.results import failover_sentence, milliseconds, missed_frames, proof, sentence
from worldmove.serve.wording import num_sessions
from worldmove.worker.messages import Described

SERVER = "server"
"""Under what name the server's own engine stands beside its workers'."""
RETRY_AFTER_S = {"no_slot": 5.0, "worker_gone": 2.0, "busy": 10.0, "moving": 2.0, "resuming": 1.0, "silent": 5.0}
"""Codes of errors that go away by themselves, and how soon one may ask again."""


def session_body(view: SessionView, live: Live | None, stalled_s: float | None) -> body.Session:
    """Return one session, as the ledger's row and the gateway say. ``stalled_s``: for how long it is, if it is."""
    player = None if live is None else live.audience.controlling
    return body.Session(
        session=view.name,
        state=view.state.value,
        worker=view.owner,
        epoch=view.epoch,
        seed=view.seed,
        next_block=0 if live is None else live.screen.next_block,
        resting=None if live is None else live.resting_why,
        stalled_ms=milliseconds(stalled_s),
        num_watchers=0 if live is None else live.audience.num_watchers,
        received_block=None if player is None else player.received_block,
        num_bytes=view.num_bytes or None,
        num_parts=view.num_leaves or None,
        holders=list(view.holders),
        move_attempt=view.attempt,
        protect=view.protect_every,
        keeper=view.keeper,
        kept_block=view.kept_block,
        kept_age_blocks=view.kept_age_blocks,
        unprotected_why=view.unprotected_why or None,
        not_renewed_why=view.not_renewed_why or None,
    )


def worker_body(view: WorkerView) -> body.Worker:
    """Return one worker."""
    return body.Worker(
        worker=view.name,
        pid=view.pid,
        incarnation=view.incarnation,
        state=view.state.value,
        num_sessions=num_sessions(view),
        slots=view.num_slots,
        slots_free=view.slots_free,
        slots_quarantined=view.slots_quarantined,
        arena_bytes=view.arena_bytes,
    )


def move_body(report: MoveReport, frame_period_s: float) -> body.Move:
    """Return one move."""
    return body.Move(
        session=report.session,
        attempt=report.attempt,
        outcome=report.outcome.value,
        reason=report.reason,
        detail=report.detail,
        sentence=sentence(report, frame_period_s),
        source=report.source,
        to=report.destination,
        epoch=report.epoch,
        runs_at=report.runs_at,
        tries=report.tries,
        transport=report.transport,
        strategy=report.strategy,
        started_at=datetime.fromtimestamp(report.started_at, UTC).isoformat(timespec="milliseconds"),
        took_ms=round(report.took_s * 1000, 3),
        pause_ms=milliseconds(report.pause_s),
        expected=None if report.expected is None else expectation_body(report.expected),
        gap_ms=milliseconds(report.gap_s),
        missed_frames=missed_frames(report, frame_period_s),
        phases=[_phase_body(phase) for phase in report.phases],
        num_bytes=report.num_bytes or None,
        num_parts=report.num_leaves or None,
        num_groups=report.num_groups or None,
        in_place_bytes=report.in_place_bytes,
        moved_bytes=report.moved_bytes,
        pulled_bytes=report.pulled_bytes,
        followed_bytes=report.followed_bytes,
        plain=report.plain,
        source_digest=report.source_digest,
        destination_digest=report.destination_digest,
        proof=proof(report),
    )


def _phase_body(phase: PhaseTime) -> body.Phase:
    return body.Phase(
        side=phase.side,
        name=phase.name,
        start_ms=round(phase.start_s * 1000, 3),
        end_ms=round(phase.end_s * 1000, 3),
    )


def failover_body(report: FailoverReport) -> body.Failover:
    """Return one failover."""
    return body.Failover(
        session=report.session,
        outcome=report.outcome.value,
        sentence=failover_sentence(report),
        source=report.source,
        worker=report.destination,
        epoch=report.epoch,
        started_at=datetime.fromtimestamp(report.started_at, UTC).isoformat(timespec="milliseconds"),
        took_ms=milliseconds(report.took_s),
        kept_block=report.boundary,
        next_block=report.next_block,
        num_replayed=report.num_replayed,
        num_compared=report.num_compared,
        differs_at=report.differs_at,
        why=report.why,
    )


def leaves_json(described: Described) -> bytes:
    """Return a session's leaves, and what those come to that are not told one by one: ``http_models.Leaves`` as JSON.

    By the models it would take the loop ten times as long (2026-12-01).
    """
    told = [
        {"path": leaf.path, "kind": leaf.kind, "shape": leaf.shape, "num_bytes": leaf.num_bytes}
        for leaf in described.leaves
    ]
    answer = {
        "session": described.session,
        "block": described.block,
        "num_bytes": described.num_bytes,
        "num_parts": described.num_leaves,
        "num_others": described.num_leaves - len(told),
        "others_bytes": described.num_bytes - sum(leaf.num_bytes for leaf in described.leaves),
        "leaves": told,
    }
    return msgspec.json.encode(answer)


def environment_body(server: Mapping[str, str], workers: Sequence[WorkerView]) -> body.Environment:
    """Return every worker's environment, and each field in which they are not all equal, or not as the server's.

    ``server``: the fields of its engine, which it shows and records worlds by.
    """
    fields = {view.name: dict(view.environment) for view in workers if view.environment}
    names = sorted({name for environment in (*fields.values(), server) for name in environment})
    differences = []
    for name in names:
        values = {worker: environment.get(name) for worker, environment in fields.items()}
        values |= {SERVER: server[name]} if name in server else {}
        if len(set(values.values())) > 1:
            differences.append(body.Difference(field=name, values=values))
    return body.Environment(server=dict(server), workers=fields, differences=differences)


def error_fields(error: WorldMoveError) -> body.ErrorFields:
    """Return an error as every interface shows it."""
    return body.ErrorFields(
        code=error.code,
        message=str(error),
        fault=error.fault.value,
        session_runs=error.session_runs,
        retry_after_s=RETRY_AFTER_S.get(error.code),
    )


def status_of(error: WorldMoveError) -> int:
    """Return the HTTP status of an error."""
    if isinstance(error, UserError):
        return error.status
    return {"lost": 410, "ledger": 503, "refused": 409, "bad_file": 422}.get(error.code, 500)
