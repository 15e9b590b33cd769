"""Which path a move takes after one has lied."""

from worldmove.fleet.path_health import PathHealth, available

HERE, BACK = ("a", "b"), ("b", "a")


def test_a_path_that_lied_is_not_taken_until_its_time_is_over_and_others_are_not_blamed() -> None:
    health = PathHealth(quarantine_s=10)
    assert health.choose(HERE, "shm", 0) == "shm"
    assert health.lied(HERE, "shm", 5)
    assert [health.choose(HERE, "shm", now) for now in (5, 14.9, 15)] == ["tcp", "tcp", "shm"]
    assert health.choose(BACK, "shm", 6) == health.choose(("a", "c"), "shm", 6) == "shm"
    assert health.choose(HERE, "peer", 6) == "peer"


def test_the_last_path_of_all_goes_on_serving_for_every_move_over_it_is_verified() -> None:
    health = PathHealth(quarantine_s=10)
    assert not health.lied(HERE, "tcp", 0)
    assert health.is_quarantined(HERE, "tcp", 1)
    assert health.choose(HERE, "tcp", 1) == "tcp"
    health.lied(HERE, "peer", 0)
    assert health.choose(HERE, "peer", 1) == "tcp"


def test_the_path_taken_is_one_that_both_workers_have_measured() -> None:
    host = {"shm_bytes_per_s": 1.0, "tcp_bytes_per_s": 1.0}
    device = {"peer_bytes_per_s": 1.0, "tcp_bytes_per_s": 1.0}
    assert available("shm", host, host) == "shm"
    assert available("tcp", host, host) == "tcp"
    assert available("shm", device, device) == "peer"
    assert available("peer", host, host) == "shm"
    assert available("shm", host, device) == "tcp"
    assert available("shm", {}, host) == "shm"
    assert available("sim", host, host) == "sim"
