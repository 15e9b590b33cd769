"""What differs from a state that is played on, when it was brought over twice and is brought level at boundaries. Pure.

    two rounds          all of it twice: one does not show what changes, and where that is too much, more would not help
    the first rest      whatever changed since the second round began differs: it is said, and comes over
    the next boundary   what did not come by then differs still, and what one block has made: that is what is left

The last but one takes the place of as many rounds as it would need, since all of what differs is known there. So rounds
end once as much may differ as is made up for until then (``bearable``), and a move is admitted where that is so.
"""

from dataclasses import dataclass, replace
from math import sqrt

from worldmove.move.measured import Measured


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """What comes of it: bytes, and seconds."""

    rounds_s: float
    """What the two rounds take."""
    changing: float
    """What changes in the second round and until the first boundary after it: more cannot differ there."""
    differs: float
    """What does: of that, what had changed before it came is not lacking."""
    new: float
    """What a block makes."""
    carried: float
    """By the path, from one boundary to the next."""

    @property
    def behind(self) -> float:
        """What of it has not come over by the next boundary."""
        return max(0.0, self.differs - self.carried)

    @property
    def still_behind(self) -> float:
        """What of that the next block does not write anew: it comes once, as that has left it.

        Which part is behind shows only over a path that makes up for something: of others all of it may be another.
        """
        is_gained = self.carried >= self.new and self.differs > 0.0
        return self.behind * (1.0 - self.new / self.differs) if is_gained else self.behind

    @property
    def left(self) -> float:
        """What differs at that next boundary; all of it over a path that carries less than a block makes."""
        return min(self.differs, self.new + self.still_behind)

    def at_worst(self) -> "Settled":
        """Return the same where all that has changed had come just before, whatever lies in between."""
        return replace(self, differs=self.changing)

    def bearable(self, left: float) -> float:
        """Return how much may differ at the first boundary for that much to be left at the next one.

        It is ``left`` turned round: of new + (D - carried) (1 - new / D) = left the greater D.
        """
        if self.carried < self.new or left < self.new:
            return left
        both = left + self.carried
        return (both + sqrt(max(0.0, both * both - 4.0 * self.carried * self.new))) / 2.0


def settled(measured: Measured, followed: float = 0.0) -> Settled:
    """Return what two rounds and a rest make of it. ``followed``: what of each block does not travel."""
    size, new = measured.num_bytes - followed, max(0.0, measured.rate("new_bytes") - followed)
    dirty = measured.rate("dirty_bytes") - followed
    further = measured.rate("dirty_bytes") if measured.further_bytes is None else measured.further_bytes
    # Of the blocks of a round the first one finds little that has come, and the last one all: half of what they change.
    num_further = round_s(measured, followed) / measured.rate("period_s") + 1.0
    return Settled(
        rounds_s=2.0 * round_s(measured, followed),
        changing=max(new, min(size, dirty + num_further * further)),
        differs=max(new, min(size, dirty + num_further / 2.0 * further)),
        new=new,
        carried=measured.rate("path_rate") * measured.rate("period_s"),
    )


def round_s(measured: Measured, followed: float = 0.0) -> float:
    """Return what bringing all of it over takes, and looking at what has come."""
    return (measured.num_bytes - followed) / measured.rate("path_rate") + measured.num_bytes / measured.rate("row_rate")
