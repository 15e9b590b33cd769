"""What a source calls final, until it is brought over."""

from worldmove.move.finals import Finals

PATHS = ("caches[0].k", "caches[0].v", "caches[10]", "block", ".odd")


def test_paths_wait_once_in_the_order_in_which_they_came() -> None:
    finals = Finals(PATHS)
    finals.add(("caches[0].v", "block"))
    finals.add(("caches[0]", "caches[0].v", ""))
    assert [finals.take() for _ in range(5)] == ["caches[0].v", "block", "caches[0]", "", None]


def test_what_the_state_does_not_have_is_forgotten_so_that_none_wait_without_end() -> None:
    finals = Finals(PATHS)
    for first in range(0, 100_000, 4096):
        finals.add([f"caches[{number}]" for number in range(first, first + 4096)] + ["caches[1", "cach", "x" * 2048])
    assert len(finals) == 2


def test_of_a_block_that_is_over_nothing_waits() -> None:
    finals = Finals(PATHS)
    finals.add(("block", "caches"))
    finals.clear()
    assert finals.take() is None
