"""What each strategy costs, phases overlapped as they run: measurements in, terms in seconds out. Pure.

    S state, B path, h hash at the source, h' at the destination, r rows, m memory; all rates in bytes per second

    boundary copy   freeze + boundary + left/B -> landed; its proofs, commit                        left = S
    pre-copy        freeze + S/r + boundary + reconcile + moved/m + left/B -> landed; its proofs, commit
    streaming       the same; left: what was final too late to travel before the boundary
    its proofs      max(landed + install + S/h', max(landed, freeze + S/h) + S/h)
    replay          max(freeze + 2 S/h, halt + S/h'), commit

What runs side by side: the source's first pass beside all until the landing; its second pass beside the destination's
install and pass; and of a replay both of the source's passes beside a follower that steps its last block and has its
pass, if it is late: the source waits for it while it rests. What the destination begins with before the state is
resolved (a boundary below zero) is landing beside the freeze.
What comes before the freeze costs no pause, and has to fit into the move's patience.
"""

from collections.abc import Mapping
from types import MappingProxyType

from worldmove.move.reckoning.base import Reckoner
from worldmove.move.reckoning.boundary_copy import BOUNDARY_COPY
from worldmove.move.reckoning.pre_copy import PRE_COPY
from worldmove.move.reckoning.replay import REPLAY
from worldmove.move.reckoning.streaming import STREAMING
from worldmove.move.strategy import Strategy

RECKONERS: Mapping[Strategy, Reckoner] = MappingProxyType(
    {
        Strategy.BOUNDARY_COPY: BOUNDARY_COPY,
        Strategy.PRE_COPY: PRE_COPY,
        Strategy.STREAMING: STREAMING,
        Strategy.REPLAY: REPLAY,
    }
)
"""Every strategy's, wired or not: the reckoning may be asked of one that is not built."""
