"""The faults of one seed: which kinds there are, how often they strike, and whether this one does.

Every occasion for a fault has a number within its kind, and whether it strikes depends on the seed, the kind and the
number alone. So one fault can be masked without moving the draws of the others. It is a heuristic all the same: what a
run does after a masked fault asks for other occasions.
"""

import random
from dataclasses import dataclass, field

from xxhash import xxh3_64_intdigest

RATES: dict[str, float] = {
    # messages of a move, questions to the ledger and their answers: each by itself
    "loss": 0.3,
    "repeat": 0.3,
    "late": 0.2,
    "kill_at_message": 0.02,
    "wrong_digest": 0.3,
    # an ordered link: every quarter of a second, for each worker
    "stall": 0.05,
    "cut": 0.05,
    # a worker's process: as often
    "kill": 0.06,
    "stop": 0.03,
    "pause": 0.06,
    "slow": 0.1,
    # the ledger, at each operation
    "ledger_slow": 0.3,
    "ledger_refuses": 0.15,
    "ledger_mute": 0.15,
    # the path of bulk bytes, at each pull
    "corrupt": 0.4,
    "torn": 0.3,
    "path_stalls": 0.3,
    "late_write": 0.3,
    # players and operators
    "hang_up": 0.1,
    "press_twice": 0.4,
    "slow_reader": 0.1,
    "cancel": 0.3,
    "damage": 0.2,
    # the server's process, and the clocks of workers' hosts
    "server_kill": 0.06,
    "server_kill_at_message": 0.01,
    "server_pause": 0.06,
    "skew": 0.5,
    # other clients: a second tab of a session; somebody who makes false claims, every quarter of a second
    "second_tab": 0.5,
    "stranger": 0.12,
    # a new owner and the server, soon after a move: what the copy that is left does not know is with clients alone
    "both_killed": 0.3,
    # a decoder that moves follow: at each block that one is to hand on; at each that is followed
    "hand_lost": 0.3,
    "hand_false": 0.8,
    "follow_fails": 0.2,
    "follow_lies": 1.0,
    # who meddles with a session, and who opens one beside it, every quarter of a second
    "meddler": 0.8,
    "visitor": 0.6,
}
"""The most that a seed may draw of each kind."""
SPAN = float(2**64)


@dataclass(slots=True)
class Dice:
    """Numbers of one occasion."""

    seed: int
    name: str
    drawn: int = 0

    def unit(self) -> float:
        """Return a number from 0 to 1."""
        self.drawn += 1
        return xxh3_64_intdigest(f"{self.name}:{self.drawn}".encode(), self.seed) / SPAN

    def between(self, low: float, high: float) -> float:
        return low + self.unit() * (high - low)

    def below(self, number: int) -> int:
        return int(self.unit() * number)


@dataclass(slots=True, kw_only=True)
class Weather:
    """One seed's. ``mask``: faults, or whole kinds, that do not strike. ``fired``: those that did."""

    seed: int
    mask: frozenset[str] = frozenset()
    rates: dict[str, float] = field(default_factory=dict)
    fired: list[str] = field(default_factory=list)
    clear: bool = False
    """From now on nothing strikes."""
    _occasions: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        rng = random.Random(f"faults:{self.seed}")
        calm = rng.random() < 0.1  # a tenth of the seeds have moves and nothing else
        for kind, most in RATES.items():
            drawn, none = rng.random() * most, rng.random() < 0.5
            self.rates.setdefault(kind, 0.0 if none or calm or kind in self.mask else drawn)

    def strikes(self, kind: str) -> Dice | None:
        """Say whether a fault strikes at this occasion; then give its dice."""
        rate = self.rates[kind]
        if self.clear or not rate:
            return None
        occasion = self._occasions.get(kind, 0) + 1
        self._occasions[kind] = occasion
        name = f"{kind}:{occasion}"
        if xxh3_64_intdigest(name.encode(), self.seed) >= rate * SPAN or name in self.mask:
            return None
        self.fired.append(name)
        return Dice(self.seed, name)

    def dice(self, name: str) -> Dice:
        """Return dice for what is no fault: latencies, plans."""
        occasion = self._occasions.get(name, 0) + 1
        self._occasions[name] = occasion
        return Dice(self.seed, f"{name}/{occasion}")
