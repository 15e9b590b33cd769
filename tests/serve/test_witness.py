"""What was shown, and whether a block that is computed anew equals it."""

from worldmove.serve.witness import MAX_BLOCKS, Witness
from worldmove.worker.inputs import InputLists

FRAMES = (b"a" * 32, b"b" * 32)


def test_a_block_is_equal_only_if_every_frame_is() -> None:
    witness = Witness()
    witness.shown(3, FRAMES)
    assert witness.is_equal(3, list(FRAMES)) is True
    assert witness.is_equal(3, FRAMES[:1]) is False
    assert witness.is_equal(3, FRAMES[::-1]) is False


def test_of_a_block_that_nobody_saw_nothing_is_said() -> None:
    witness = Witness()
    assert witness.is_equal(3, FRAMES) is None
    for block in range(MAX_BLOCKS + 1):
        witness.shown(block, FRAMES)
    assert witness.is_equal(0, FRAMES) is None
    assert witness.is_equal(1, FRAMES) is True


def test_whatever_a_copy_may_compute_anew_is_compared_with_what_was_shown() -> None:
    """It has the lists for it, and as many of them as whoever waits may have."""
    lists, witness, block = InputLists(), Witness(), 0
    while not lists.is_too_long:
        lists.put(block, ())
        witness.shown(block, FRAMES)
        block += 1
    assert [witness.is_equal(behind, FRAMES) for behind, _ in lists.held()[1:]] == [True] * (block - 1)
