"""Each piece goes by one way: what is large by the engine, what is many by one launch."""

import numpy as np
import pytest

from worldmove.state.memory import Piece
from worldmove.state.ways_to_copy import FEW, LARGE_BYTES, MANY_LARGE, ways_to_copy, written


def pieces(*lengths: int) -> list[Piece]:
    return [Piece(1000 * number, 2000 * number, length) for number, length in enumerate(lengths)]


@pytest.mark.parametrize(
    ("num_large", "num_small", "by_engine", "by_launch"),
    [
        (0, 0, 0, 0),
        (1, 0, 1, 0),
        (0, FEW, FEW, 0),
        (0, FEW + 1, 0, FEW + 1),
        (2, FEW, 2 + FEW, 0),
        (2, FEW + 1, 2, FEW + 1),
        (MANY_LARGE, 100, MANY_LARGE, 100),
        (MANY_LARGE + 1, 100, 0, MANY_LARGE + 101),
    ],
)
def test_large_pieces_go_by_the_engine_and_many_small_ones_by_a_launch(
    num_large: int, num_small: int, by_engine: int, by_launch: int
) -> None:
    given = pieces(*[LARGE_BYTES] * num_large, *[LARGE_BYTES - 1] * num_small)
    found = ways_to_copy(given)
    assert (len(found.by_engine), len(found.by_launch)) == (by_engine, by_launch)
    both = np.concatenate((found.by_engine, found.by_launch)).tolist()
    assert sorted(map(tuple, both)) == sorted(map(tuple, given))


def test_an_array_of_pieces_is_dealt_like_a_list() -> None:
    given = pieces(*[1] * 20, LARGE_BYTES)
    found, again = ways_to_copy(given), ways_to_copy(np.array(given, dtype=np.int64))
    assert np.array_equal(found.by_engine, again.by_engine)
    assert np.array_equal(found.by_launch, again.by_launch)


def test_what_is_written_is_told_of_each_piece_and_of_many_from_the_first_to_the_last() -> None:
    assert written([Piece(9000, 500, 10), Piece(1, 400, 7)]).tolist() == [[500, 510], [400, 407]]
    assert written([]).tolist() == []
    many = [Piece(9000, 500, 10), Piece(1, 400, 7), *[Piece(2, 450, 100)] * FEW]
    assert written(many).tolist() == [[400, 550]]
