"""What the controller knows, in the messages of the play wire; and how a record begins."""

from collections.abc import Mapping, Sequence

from worldmove import __version__
from worldmove.engine.base import EngineSpec
from worldmove.fleet.ports import Owner
from worldmove.fleet.views import WorkerView
from worldmove.serve.live import Live
from worldmove.serve.play_messages import EngineInfo, Hello, OwnerInfo, OwnerNow, WorkerInfo, Workers
from worldmove.serve.record_entries import RecordHeader
from worldmove.state.environment import NO_FIELDS
from worldmove.worker.messages import Opened


def engine_info(spec: EngineSpec, memory_blocks: int | None) -> EngineInfo:
    """Return what of the engine."""
    return EngineInfo(
        name=spec.name,
        preset=spec.preset,
        width=spec.width,
        height=spec.height,
        frames_per_block=spec.frames_per_block,
        frames_per_s=spec.frames_per_s,
        keys=spec.keys,
        memory_blocks=memory_blocks,
        weights_sha256=spec.weights_sha256,
    )


def pid_of(worker: str, workers: Sequence[WorkerView]) -> int | None:
    """Return a worker's process id, None for one that is not known."""
    return next((view.pid for view in workers if view.name == worker), None)


def environment_of(worker: str, workers: Sequence[WorkerView]) -> Mapping[str, str]:
    """Return what decides the bytes of a worker's blocks; nothing for one that is not known."""
    return next((view.environment for view in workers if view.name == worker), NO_FIELDS)


def hello(
    live: Live, owner: Owner | None, workers: Sequence[WorkerView], engine: EngineInfo, *, controls: bool
) -> Hello:
    """Return a connection's first message. The key changes taken so far decide ``next_number``."""
    opened = live.opened
    told = (
        None if owner is None else OwnerInfo(worker=owner.worker, pid=pid_of(owner.worker, workers), epoch=owner.epoch)
    )
    return Hello(
        session=live.name,
        engine=engine,
        next_number=live.sequencer.next_number,
        next_block=live.screen.next_block,
        server_life=live.server_life,
        owner=told,
        num_parts=None if opened is None else opened.num_leaves,
        num_bytes=None if opened is None else opened.num_bytes,
        controls=controls,
    )


def record_header(live: Live, opened: Opened, environment: Mapping[str, str]) -> RecordHeader:
    """Return the first entry of a session's record."""
    spec = live.spec
    return RecordHeader(
        worldmove=__version__,
        engine=live.config.engine or f"{spec.name}:{spec.preset}",
        num_threads=spec.num_threads,
        frames_per_block=spec.frames_per_block,
        frames_per_s=spec.frames_per_s,
        session=live.name,
        seed=live.start.seed,
        first_block=live.start.first_block,
        state_digest=opened.state_digest,
        environment=dict(environment),
    )


def owner_now(owner: Owner, workers: Sequence[WorkerView]) -> OwnerNow:
    """Return the message that names an owner."""
    return OwnerNow(worker=owner.worker, pid=pid_of(owner.worker, workers), epoch=owner.epoch)


def workers_now(workers: Sequence[WorkerView], owner: Owner | None) -> Workers:
    """Return the message that lists the workers, as seen from one session."""
    return Workers(
        workers=tuple(
            WorkerInfo(
                name=view.name,
                pid=view.pid,
                state=view.state.value,
                sessions=num_sessions(view),
                slots_free=view.slots_free,
                slots=view.num_slots,
                owner=owner is not None and owner.worker == view.name,
            )
            for view in workers
        )
    )


def num_sessions(view: WorkerView) -> int:
    """Return how many sessions a worker plays (shadows, retired and throw-away copies are none)."""
    return sum(copy.phase in ("live", "frozen") for copy in view.copies)
