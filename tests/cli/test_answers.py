"""A server that says something else under the names of an answer: one sentence, and no failure of ours."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from worldmove.cli.answer_objects import object_of
from worldmove.cli.client import Client
from worldmove.cli.exits import ExitCode
from worldmove.cli.main import run

SESSION: dict[str, Any] = {
    "session": "s-1",
    "state": "live",
    "worker": "a",
    "epoch": 1,
    "next_block": 3,
    "num_watchers": 0,
    "seed": 7,
}
SESSION |= {"num_bytes": 12, "keeper": None, "stalled_ms": None, "resting": None, "kept_age_blocks": None}
WORKER: dict[str, Any] = {"worker": "a", "state": "ready", "pid": 7, "num_sessions": 1, "slots": 3, "slots_free": 2}
WORKER |= {"slots_quarantined": 0}
MOVE: dict[str, Any] = {
    "session": "s-1",
    "attempt": "00000001-x",
    "outcome": "committed",
    "reason": "done",
    "sentence": "Moved.",
}
MOVE |= {"from": "a", "to": "b", "pause_ms": 1.5, "gap_ms": 0, "took_ms": 20.5, "num_bytes": 12, "proof": "checked 4/4"}
MOVE |= {"expected": {"strategy": "replay", "pause_ms": 2.0}, "in_place_bytes": 4, "moved_bytes": 4, "pulled_bytes": 4}
MOVE |= {"plain": "", "tries": 1, "started_at": "2026-11-30"}
TERM: dict[str, Any] = {"name": "freeze", "ms": 1.5, "how": "measured"}
STRATEGY: dict[str, Any] = {
    "strategy": "replay",
    "admitted": False,
    "reason": "too_slow",
    "detail": "it is",
    "remedy": "time",
}
STRATEGY |= {"pause_ms": 1.5, "before_ms": 2.0, "slack_ms": None, "spread_ms": 1, "pause": [TERM], "before": [TERM]}
PLAN: dict[str, Any] = {
    "session": "s-1",
    "from": "a",
    "to": "b",
    "transport": "shm",
    "num_bytes": 12,
    "horizon_ms": 4.0,
}
PLAN |= {"waited_for": True, "strategy": "replay", "admitted": True, "strategies": [STRATEGY]}
LEAF: dict[str, Any] = {"path": "x.y", "kind": "tensor", "shape": [2, 3], "num_bytes": 24}
FIELDS = {"canary.a": "1", "torch": "2"}
ENVIRONMENT: dict[str, Any] = {
    "server": {"engine.name": "x"},
    "workers": {"a": FIELDS, "b": FIELDS},
    "differences": [{"field": "torch", "values": {"a": "2"}}],
}
ANSWERS: dict[str, Any] = {
    "workers": {"workers": [WORKER]},
    "sessions": {"sessions": [SESSION]},
    "moves": {"moves": [MOVE]},
    "open": SESSION,
    "protect s-1 --every 4": SESSION,
    "plan s-1": PLAN,
    "move s-1": MOVE,
    "cancel s-1": MOVE,
    "inspect s-1": {
        "session": "s-1",
        "block": 3,
        "num_bytes": 24,
        "num_parts": 1,
        "num_others": 0,
        "others_bytes": 0,
        "leaves": [LEAF],
    },
    "doctor --server http://x": ENVIRONMENT,
}
ODD = ("null", "[]", '{"x": null}', '"x"', "-1", "1e400", "9" * 400, '"\\ud800\\u001b["')


def spoilt(whole: Any) -> Iterator[str]:
    """An answer as JSON, one part of it at a time another thing, or not there."""
    yield from ODD
    parts = whole.items() if isinstance(whole, dict) else enumerate(whole) if isinstance(whole, list) else ()
    for key, part in parts:
        for inside in spoilt(part):
            pieces = {**whole, key: "@"} if isinstance(whole, dict) else [*whole[:key], "@", *whole[key + 1 :]]
            yield json.dumps(pieces).replace('"@"', inside, 1)
        if isinstance(whole, dict):
            yield json.dumps({name: value for name, value in whole.items() if name != key})


@pytest.mark.parametrize("command", ANSWERS)
def test_whatever_an_answer_says_a_command_ends_with_a_sentence_and_a_status_of_its_page(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    body = [json.dumps(ANSWERS[command]).encode()]
    monkeypatch.setattr(Client, "_object_of", lambda self, *_: object_of(body[0], "http://x"))
    arguments = command.split() if "--server" in command else [*command.split(), "--server", "http://x"]
    assert run(arguments) in (ExitCode.DONE, ExitCode.REFUSED)
    capsys.readouterr()
    for number, said in enumerate(spoilt(ANSWERS[command])):
        body[0] = said.encode()
        status = run([*arguments, "--json"] if number % 8 == 7 else arguments)
        written = capsys.readouterr()
        assert status != ExitCode.FAILED, (said, written)
        assert "Unexpected failure" not in written.err + written.out, said
