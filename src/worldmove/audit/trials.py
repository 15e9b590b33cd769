"""Lists of key changes that no careful player sends, and every server may close: an engine must take each. Pure.

A client may press what is down and release what is not. A server that was started again does not know what was down
and releases every key, all under one number, which is its life number: milliseconds since 1970.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle, islice

from worldmove.engine.base import KeyChange
from worldmove.limits import MAX_LIST

LIFE = 1 << 41
"""As large as a server's life number: no 32 bits hold it."""
List = tuple[KeyChange, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What a new world is given: the closed list of each of its first blocks."""

    name: str
    """As it is said: it takes no ..."""
    lists: tuple[List, ...]


def trials(keys: Sequence[str]) -> tuple[Trial, ...]:
    """Return what an engine of these keys is tried with. Without keys, that is a world in which nothing is pressed."""
    nothing = Trial(name="empty list", lists=((), ()))
    if not keys:
        return (nothing,)
    down, up = _all(keys, down=True), _all(keys, down=False)
    both = [(key, is_down) for key in keys for is_down in (True, False)]
    return (
        nothing,
        _trial("release of a key that is not down", up, _all(keys[:1], down=True), up, up),
        _trial("press of a key that is down", down, down, up, up),
        _trial("list with every key at once", down, [], up),
        _trial("press and release of a key in one list", both, [*both[1:], both[0]], up),
        _trial(f"list of {MAX_LIST} changes", list(islice(cycle(both), MAX_LIST)), []),
        Trial(
            name="release of every key under one number, as a restarted server says it",
            lists=(*_numbered(_all(keys[:1], down=True), 1), *_numbered(up, LIFE, step=0), ()),
        ),
    )


def _all(keys: Sequence[str], *, down: bool) -> list[tuple[str, bool]]:
    return [(key, down) for key in keys]


def _trial(name: str, *lists: Sequence[tuple[str, bool]]) -> Trial:
    numbered: list[List] = []
    first = 1
    for changes in lists:
        numbered += _numbered(changes, first)
        first += len(changes)
    return Trial(name=name, lists=(*numbered, ()))


def _numbered(changes: Sequence[tuple[str, bool]], first: int, *, step: int = 1) -> Iterator[List]:
    """Close lists of them as the sequencer does: at most so many in each, and an empty one of none."""
    made = tuple(KeyChange(number=first + step * i, key=key, down=down) for i, (key, down) in enumerate(changes))
    for start in range(0, len(made) or 1, MAX_LIST):
        yield made[start : start + MAX_LIST]
