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


def test_a_device_falls_back_to_host_memory_and_from_there_to_tcp_and_never_to_what_was_not_measured() -> None:
    health = PathHealth(quarantine_s=10)
    assert health.lied(HERE, "peer", 0)
    assert health.choose(HERE, "peer", 1) == "staged"
    assert health.choose(HERE, "peer", 1, ("peer", "tcp")) == "tcp"
    assert health.choose(BACK, "peer", 1, ("peer", "tcp")) == "peer"
    assert health.lied(HERE, "staged", 2)
    assert health.choose(HERE, "peer", 3, ("peer", "staged", "tcp")) == "tcp"
    assert health.choose(HERE, "peer", 11, ("peer", "staged", "tcp")) == "peer"
    assert health.choose(HERE, "staged", 11, ("peer", "staged", "tcp")) == "tcp"


def test_the_path_taken_is_one_that_both_workers_have_measured() -> None:
    host = {"shm_bytes_per_s": 1.0, "tcp_bytes_per_s": 1.0}
    device = {"peer_bytes_per_s": 1.0, "tcp_bytes_per_s": 1.0}
    assert available("shm", host, host) == "shm"
    assert available("tcp", host, host) == "tcp"
    assert available("shm", device, device) == "peer"
    no_peer = {"staged_bytes_per_s": 1.0, "tcp_bytes_per_s": 1.0}
    assert available("peer", {**device, **no_peer}, no_peer) == "staged"
    assert available("peer", host, host) == "shm"
    assert available("shm", host, device) == "tcp"
    assert available("shm", {}, host) == "shm"
    assert available("sim", host, host) == "sim"
