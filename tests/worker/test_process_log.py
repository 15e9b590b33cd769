"""A worker's log line has the time at which it happened, also when it was written later."""

import time
from datetime import datetime
from types import SimpleNamespace

import pytest

from worldmove.worker import process_log
from worldmove.worker.process_log import stamp


def stamped(**fields: object) -> tuple[float, dict[str, object]]:
    line = stamp(None, "info", dict(fields))
    return datetime.fromisoformat(str(line["timestamp"])).timestamp(), dict(line)


def test_a_line_has_the_time_at_which_it_is_written() -> None:
    before = time.time()
    said, line = stamped(event="x")
    assert before - 0.001 <= said <= time.time()
    assert set(line) == {"event", "timestamp"}


def test_a_line_that_is_written_later_has_the_time_at_which_it_happened(monkeypatch: pytest.MonkeyPatch) -> None:
    clocks = SimpleNamespace(time=lambda: 1000.0, monotonic=lambda: 50.0)
    monkeypatch.setattr(process_log, "time", clocks)
    said, line = stamped(event="x", at=49.5)
    assert said == 999.5
    assert set(line) == {"event", "timestamp"}
