"""Many cases: every site, again and again with new seeds; counted by what became of them."""

import functools
import random
from collections import Counter
from dataclasses import dataclass, field, replace

from tests.attacks.case import Case, Result
from tests.attacks.sites import sites
from tests.attacks.strikes import Donors
from tests.attacks.trial import donors, try_out


@dataclass(slots=True, kw_only=True)
class Tally:
    """What came of many cases."""

    counts: Counter[tuple[str, str, bool]] = field(default_factory=Counter)
    """By where, outcome, and whether it struck."""
    reasons: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Of those that struck, by where and the reason that the report gives."""
    failures: list[str] = field(default_factory=list)
    num_sites: int = 0

    @property
    def tried(self) -> int:
        return sum(self.counts.values())

    @property
    def struck(self) -> int:
        return sum(count for (_, _, struck), count in self.counts.items() if struck)

    def add(self, result: Result) -> None:
        """Count one."""
        where = result.case.where.value
        self.counts[where, result.verdict.value, result.struck] += 1
        if result.struck:
            self.reasons[where, result.why or "-"] += 1
        self.failures += [f"{result.case}: {complaint}" for complaint in result.complaints]

    def and_(self, other: "Tally") -> "Tally":
        """Return both together."""
        return Tally(
            counts=self.counts + other.counts,
            reasons=self.reasons + other.reasons,
            failures=self.failures + other.failures,
            num_sites=max(self.num_sites, other.num_sites),
        )


def campaign(first: int, count: int, seed: int, *, then_move: bool = False) -> Tally:
    """Try out the cases from ``first`` on of the endless list that ``seed`` gives."""
    known = sites()
    cases = [_case(known, number, seed) for number in range(first, first + count)]
    tally = Tally(num_sites=len(known))
    for result in try_out(cases, shared_donors(), then_move=then_move):
        tally.add(result)
    return tally


@functools.cache
def shared_donors() -> Donors:
    """Another session's move; one for all."""
    return donors()


def _case(known: list[Case], number: int, seed: int) -> Case:
    """Round after round every site once, each round in another order."""
    turn, place = divmod(number, len(known))
    return replace(_shuffled(seed, turn, tuple(known))[place], seed=seed * 1_000_003 + number)


@functools.lru_cache(maxsize=4)
def _shuffled(seed: int, turn: int, known: tuple[Case, ...]) -> list[Case]:
    order = list(known)
    random.Random(f"{seed} {turn}").shuffle(order)
    return order
