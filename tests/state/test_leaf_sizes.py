"""The leaves of a state by their size."""

from worldmove.state.leaf_sizes import LeafSize, largest

LEAVES = tuple(LeafSize(f"leaf[{index}]", "bytes", (), size) for index, size in enumerate((3, 9, 1, 9, 5, 3)))


def test_the_largest_come_in_the_order_of_the_state_and_the_earlier_of_equal_ones() -> None:
    assert [leaf.path for leaf in largest(LEAVES, 4)] == ["leaf[0]", "leaf[1]", "leaf[3]", "leaf[4]"]


def test_of_no_more_than_are_asked_for_all_come_as_they_are() -> None:
    assert largest(LEAVES, len(LEAVES)) == LEAVES
    assert largest((), 4) == ()
