"""Which workers play what this server can show: one may have been started anew after its engine was replaced."""

from collections.abc import Iterable, Mapping

from worldmove.errors import UserError
from worldmove.fleet.workers import WorkerRecord
from worldmove.state.environment import Environment, FieldDifference


def served(workers: Iterable[WorkerRecord], engine: Mapping[str, str]) -> list[WorkerRecord]:
    """Return the workers whose engine is the server's, in their order. ``engine``: the fields that say which it is."""
    return [worker for worker in workers if not _differences(worker, engine)]


def require_served(worker: WorkerRecord, engine: Mapping[str, str]) -> None:
    """Raise UserError, naming the fields, where a worker's engine is another than the server's."""
    differences = _differences(worker, engine)
    if differences:
        said = "; ".join(map(str, differences))
        why = f"Not opened: {worker.name} has another engine than this server, which could not show it. {said}."
        raise UserError(why, code="environment", status=409)


def _differences(worker: WorkerRecord, engine: Mapping[str, str]) -> tuple[FieldDifference, ...]:
    here = Environment(fields=engine)
    theirs = {name: worker.environment[name] for name in engine if name in worker.environment}
    return here.difference(Environment(fields=theirs))
