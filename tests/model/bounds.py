"""How much the exploration may do: the one place where its bounds stand."""

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """What may happen at most. Messages are not bounded: any may be lost, repeated and reordered at any time."""

    num_workers: int = 2
    num_attempts: int = 2
    num_blocks: int = 2
    num_crashes: int = 1
    """Worker processes that die and come back empty, under their next incarnation."""
    num_suspicions: int = 1
    """Live workers that are taken for dead, wrongly."""
    num_restarts: int = 0
    """Servers that die: the gateway and the controller forget, the ledger does not."""
    num_snapshots: int = 0
    """Snapshots of the owner's state that another worker comes to keep."""
    ledger_loses_a_write: bool = False
    """Whether the ledger may come back as it was before its last write."""


S = Bounds()
S_3_BLOCKS = replace(S, num_blocks=3)
B = replace(S, num_attempts=1)
R = replace(B, num_restarts=1)
L = replace(S, num_restarts=1)
W = replace(S, num_workers=3, num_suspicions=0)

CALM = replace(B, num_crashes=0, num_suspicions=0)
"""One attempt, and no fault but what the channel does."""
CALM_3_BLOCKS = replace(CALM, num_attempts=2, num_blocks=3)
CALM_TWICE = replace(CALM, num_attempts=2)
CRASH = replace(B, num_suspicions=0)
CRASH_1_BLOCK = replace(CRASH, num_blocks=1)
CALM_AGAIN = replace(CALM_TWICE, num_blocks=1)
"""A second attempt after a situation that the first led to."""
THREE = replace(CALM_AGAIN, num_workers=3, num_crashes=1)
SUSPICION = replace(B, num_crashes=0)
SUSPICION_1_BLOCK = replace(SUSPICION, num_blocks=1)
T_1_BLOCK = replace(B, num_blocks=1, num_crashes=0, num_suspicions=0, num_restarts=1, ledger_loses_a_write=True)
"""A ledger that may lose its last write."""
RESTART = replace(B, num_crashes=0, num_suspicions=0, num_restarts=1)
RESTART_1_BLOCK = replace(RESTART, num_blocks=1)
RESTART_AND_CRASH = replace(RESTART_1_BLOCK, num_crashes=1)
RESTART_AND_CRASH_2 = replace(RESTART_AND_CRASH, num_blocks=2)

KEPT_1_BLOCK = replace(B, num_blocks=1, num_snapshots=1, num_suspicions=0)
"""A worker keeps a snapshot of the session, beside whatever else it holds of it."""
KEPT_2_BLOCKS = replace(KEPT_1_BLOCK, num_blocks=2)
KEPT_SUSPICION = replace(KEPT_2_BLOCKS, num_attempts=0, num_suspicions=1)
KEPT_RESTART = replace(KEPT_1_BLOCK, num_attempts=0, num_restarts=1)
KEPT_SILENCE = replace(KEPT_1_BLOCK, num_workers=3, num_crashes=0, num_suspicions=2)
"""Both ends of a move fall silent, one after the other, while a third worker keeps a snapshot."""
SILENCE = replace(KEPT_SILENCE, num_suspicions=0, num_snapshots=0)
"""The same, from a situation on in which they are silent, and it keeps one."""
P = replace(KEPT_2_BLOCKS, num_suspicions=1)

NAMED = {"P": P, "Q": KEPT_SILENCE, "S": S, "S, 3 blocks": S_3_BLOCKS, "B": B, "R": R, "L": L, "W": W}
"""The bounds of the large runs."""
