"""Names: none is given twice in a row, and of those that were given no more is kept than is said."""

from worldmove.fleet.given_names import NUM_REMEMBERED, GivenNames
from worldmove.fleet.sessions import SessionTable
from worldmove.serve.ids import RandomIds


def test_no_name_is_one_of_the_last_that_were_given() -> None:
    drawn = iter("aababcab")
    names = GivenNames(num_remembered=2)
    assert [names.new(lambda: next(drawn)) for _ in range(5)] == ["a", "b", "c", "a", "b"]
    assert len(names) == 2


def test_whoever_asks_for_worlds_for_ever_has_no_more_kept_of_their_names() -> None:
    ids, table = RandomIds(), SessionTable()
    for number in range(NUM_REMEMBERED + 1000):
        ids.session()
        table.next_throwaway("s", lambda number=number: str(number))  # type: ignore[misc]
    assert len(ids.given) == len(table.thrown_away) == NUM_REMEMBERED
