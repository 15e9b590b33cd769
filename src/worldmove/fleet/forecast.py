"""What a move is expected to be, said before it is made: every strategy's terms, and which one it would get. Pure."""

from dataclasses import dataclass

from worldmove.move.choice import Choice
from worldmove.move.measured import Measured
from worldmove.move.remedy import Remedy, cheapest
from worldmove.move.strategy import Strategy


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """One session, one destination."""

    session: str
    source: str
    destination: str
    transport: str
    measured: dict[Strategy, Measured]
    """Of each strategy: what does not grow with the state is learned for each by itself."""
    choice: Choice

    def remedy(self, strategy: Strategy) -> Remedy | None:
        """Return the least change that alone would admit a rejected strategy, if one would."""
        return cheapest(self.measured[strategy], strategy)
