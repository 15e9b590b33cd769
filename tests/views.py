"""Workers as a server shows them: what a test does not care about is said here once."""

from typing import Any

from worldmove.fleet.views import WorkerState, WorkerView

SHOWN: dict[str, Any] = {
    "pid": 1,
    "incarnation": 1,
    "state": WorkerState.READY,
    "num_slots": 3,
    "slots_free": 1,
    "slots_quarantined": 0,
    "arena_bytes": 64,
}


def worker_view(name: str, **changes: Any) -> WorkerView:
    """Return one that is there, plays two sessions, and is otherwise as ``changes`` says."""
    return WorkerView(name=name, **{**SHOWN, **changes})
