"""Every way side by side: what a run's figures are held against."""

from dataclasses import replace

from worldmove.cli.benches.comparison import FILES, RESIDENT, SCATTERED, Comparison
from worldmove.cli.benches.direct import Direct
from worldmove.cli.benches.found import measured
from worldmove.cli.benches.player import Seen


def a_direct(match_ms: float) -> Direct:
    return Direct(num_bytes=1, num_storages=1, parts={"matched": [match_ms] * 3}, copy_ms=[1.0] * 3)


def a_comparison(resident_ms: float, scattered_ms: float, files_ms: float, gpus: tuple[str, ...] = ()) -> Comparison:
    report = {"outcome": "committed", "pause_ms": 5.0, "gap_ms": 0.0, "took_ms": 9.0, "phases": []}
    return Comparison(
        gpus=gpus,
        engine="reference:x",
        device="cuda",
        found=measured(1_000_000, [report], [1.0], Seen()),
        scattered=None,
        direct={RESIDENT: a_direct(resident_ms), SCATTERED: a_direct(scattered_ms)},
        peers={FILES: [files_ms], "one flat copy to another GPU": "fewer than two GPUs are here"},
        head={},
    )


def test_a_move_that_takes_as_many_copies_as_it_may_meets_its_goals() -> None:
    found = a_comparison(3.2, 4.0, 2560.0)
    assert found.misses() == []
    assert found.ratios() == {f"torch files in {RESIDENT}": 800.0, f"torch files in {SCATTERED}": 640.0}
    assert found.fields()["between_processes"][SCATTERED]["match_in_copies"] == 4.0


def test_each_goal_that_is_missed_on_a_gpu_is_named_and_on_a_cpu_there_is_none() -> None:
    found = a_comparison(3.3, 4.1, 2559.0)
    assert found.misses() == [
        "slot-resident without a server 3.30 flat copies, goal 3.2",
        "scattered without a server 4.10 flat copies, goal 4.0",
        "775 times in torch's files, goal 800",
    ]
    assert replace(found, device="cpu").misses() == []


def test_between_two_gpus_the_goals_are_others() -> None:
    assert a_comparison(1.15, 1.30, 517.5, ("0", "1")).misses() == []
    assert a_comparison(1.2, 1.4, 517.5, ("0", "1")).misses() == [
        "slot-resident without a server 1.20 flat copies, goal 1.15",
        "scattered without a server 1.40 flat copies, goal 1.3",
        "431 times in torch's files, goal 450",
    ]
