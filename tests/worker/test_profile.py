"""What a bench sees of a worker's threads."""

import asyncio
import json
import time
from functools import partial
from pathlib import Path

import pytest

from worldmove.worker.profile import Profile
from worldmove.worker.threads import OneThread


def busy(seconds: float) -> str:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass
    return "done"


def broken() -> None:
    raise ValueError("broken")


def test_it_tells_what_work_took_where_threads_stood_and_when_phases_changed(tmp_path: Path) -> None:
    profile, lines = Profile(str(tmp_path / "w.json")), []
    thread = OneThread("copy", profile=profile)

    async def run() -> None:
        assert await thread(partial(busy, 0.1)) == "done"
        with pytest.raises(ValueError, match="broken"):
            await thread(broken)

    profile.start()
    log = profile.hearing(lambda event, **fields: lines.append(event))
    log("move_phase", at=1.5, side="source", phase="frozen", session="s")
    log("copy", session="s")
    asyncio.run(run())
    thread.close()
    profile.write()
    told = json.loads((tmp_path / "w.json").read_text())
    assert [job["what"] for job in told["jobs"]] == ["busy", "broken"]
    first = told["jobs"][0]
    assert first["asked"] <= first["began"] <= first["ended"] - 0.1 <= first["resumed"] - 0.1
    assert 0 < first["cpu_s"] < 0.2
    assert told["marks"] == [{"at": 1.5, "side": "source", "phase": "frozen"}]
    assert lines == ["move_phase", "copy"]
    stood = [stand for at, stands in told["samples"] if first["began"] <= at <= first["ended"] for stand in stands]
    assert any(name.startswith("copy") and top.endswith(" busy") for name, _, top in stood)


def test_nobody_is_looked_at_whom_nobody_asked_about(tmp_path: Path) -> None:
    profile = Profile("")

    def log(event: str, **fields: object) -> None: ...

    assert profile.hearing(log) is log
    profile.start()
    thread = OneThread("copy", profile=profile)
    assert asyncio.run(thread(lambda: 1)) == 1
    thread.close()
    profile.write()
    assert list(tmp_path.iterdir()) == []
