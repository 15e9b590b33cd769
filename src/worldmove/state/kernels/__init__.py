"""Kernels over device memory: fingerprints of it, and copies of many pieces at once.

They work on addresses, so that a tensor, an arena and another process's mapping are the same to them. Everything is
planned once for a layout and launched at each boundary; a launch allocates nothing and waits for nothing.
"""

from worldmove.state.kernels.copies import Copies, CopyPlan
from worldmove.state.kernels.fingerprints import Fingerprints, Pending
from worldmove.state.kernels.leaves import leaf_bytes
from worldmove.state.kernels.plan import Plan
from worldmove.state.kernels.row_prints import RowPrints
from worldmove.state.kernels.tuning import Tuning

__all__ = ["Copies", "CopyPlan", "Fingerprints", "Pending", "Plan", "RowPrints", "Tuning", "leaf_bytes"]
