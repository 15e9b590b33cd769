"""What a destination has installed, and proven equal to what was frozen."""

from dataclasses import dataclass

from worldmove.state.capture import Capture


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """What is installed, and proven equal to what was frozen."""

    block: int
    capture: Capture
    num_groups: int
