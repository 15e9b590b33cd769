"""A row that is not built yet: in doubt, a destination computes one block ahead.

Nothing of it is sent before the grant, and it goes with the copy where the attempt is closed.
"""

from dataclasses import replace

from tests.model.ends import Ahead
from tests.model.rules import SHIPPED, Steps
from worldmove.move.protocol import DESTINATION_STEPS, DestinationPhase

STEPS: Steps = {
    **DESTINATION_STEPS,
    (DestinationPhase.DOUBT, Ahead.ONE_BLOCK): (DestinationPhase.DOUBT, Ahead.COMPUTE),
}
COMPUTES_AHEAD = replace(SHIPPED, destination_steps=STEPS)
