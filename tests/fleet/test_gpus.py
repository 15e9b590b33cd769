"""Each worker sees its own GPU first, whatever it is called elsewhere, and those of the others behind it."""

import asyncio
from pathlib import Path

import pytest

from worldmove.errors import UserError
from worldmove.fleet.gpus import VARIABLE, dealt, gpus_named, seeing
from worldmove.fleet.hosts_local import LocalHosts, LocalHostsConfig
from worldmove.worker.config import WorkerConfig


def test_gpus_are_dealt_in_turn_and_each_worker_sees_its_own_first() -> None:
    found = dealt(["a", "b", "c"], ["4", "GPU-7"])
    assert [found[name][VARIABLE] for name in "abc"] == ["4,GPU-7", "GPU-7,4", "4,GPU-7"]


def test_without_a_list_a_worker_sees_what_its_server_does() -> None:
    assert dealt(["a", "b"], ()) == {"a": {}, "b": {}}
    assert seeing("", ()) == {}


@pytest.mark.parametrize("text", ["0,0", "0,,1", ","])
def test_a_list_that_names_a_gpu_twice_or_none_is_refused_with_what_was_said(text: str) -> None:
    assert gpus_named("") == ()
    assert gpus_named("0, 1") == ("0", "1")
    with pytest.raises(UserError, match=f"not '{text}'"):
        gpus_named(text)


@pytest.mark.slow
def test_a_worker_is_started_with_its_own_environment_and_no_other_workers() -> None:
    of_workers = dealt(["w", "v"], ["1", "0"])
    config = LocalHostsConfig(worker=WorkerConfig(engine="reference:tiny"), of_workers=of_workers)

    async def run() -> bytes:
        hosts = LocalHosts(config)
        try:
            process, _ = await hosts.start("v", 1, lambda message: None, lambda status: None)
            return Path(f"/proc/{process.pid}/environ").read_bytes()
        finally:
            await hosts.close()

    found = asyncio.run(run()).split(b"\0")
    assert f"{VARIABLE}=0,1".encode() in found
