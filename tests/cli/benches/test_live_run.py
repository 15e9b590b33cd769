"""The live loop under play: worlds on a device, moves in both directions at once, and replays that are equal."""

import pytest

from worldmove.cli.benches.live import run_live
from worldmove.cli.benches.live_asked import LiveAsked
from worldmove.cli.benches.live_found import LiveFound
from worldmove.serve.server_config import ServerConfig
from worldmove.worker.config import WorkerConfig

DOUBLE = "python:tests.worker.device_engine:build_calm"


@pytest.mark.slow
def test_worlds_on_a_device_move_both_ways_at_once_beside_another_and_their_replays_are_equal() -> None:
    worker = WorkerConfig(engine=DOUBLE, num_slots=5, log_level="warning")
    config = ServerConfig(port=0, num_workers=2, worker=worker, gpus=("0", "1"), account_every=4)
    asked = LiveAsked(moves=4, every=2, segment=2, residents=1, after=6, control=0.5, sessions=2)
    found = LiveFound(run=run_live(config, asked, lambda _: None), check_blocks=2, gpus=config.gpus, head={})
    assert found.fields()["directions"] == {"worker-1 to worker-2": 2, "worker-2 to worker-1": 2}
    assert [segment.with_moves for segment in found.run.segments] == [True, False, True, False]
    lengths = [segment.blocks[1] - segment.blocks[0] for segment in found.run.segments]
    assert sum(lengths[1::2]) < sum(lengths[::2])
    replay = found.run.replay
    assert replay["equal"]
    assert replay["num_moves"] == 4
    assert [each["num_moves"] for each in replay["worlds"]] == [2, 2]
    ends = [found.run.segments[-1].blocks[1], found.run.segments[-1].others[0][1]]
    for end, each in zip(ends, replay["worlds"], strict=True):
        assert end + asked.after <= each["num_blocks"] + 1
    assert replay["num_states"] >= 4
    frames = found.fields()["frames"]
    assert (frames["damaged"], frames["missing"], frames["checks_unequal"]) == (0, 0, 0)
    assert frames["checks"] > 0
