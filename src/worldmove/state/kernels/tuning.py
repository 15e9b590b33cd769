"""The sizes that the device programs are compiled for."""

from collections.abc import Mapping
from dataclasses import dataclass

from worldmove.state.wmf1 import ROW_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuning:
    """Measured on an H200; any values give the same bytes."""

    stages: int = 3
    """Rows that each warp has on their way."""
    warps: int = 8
    blocks: int = 1
    """Blocks of so many warps on each multiprocessor."""
    unroll: int = 4
    """Loads that each thread of a copy has on their way."""
    copy_threads: int = 512
    copy_blocks: int = 2
    share_rows: int = 8
    """How many rows' time a group costs a warp beside its rows: 180 leaves of 8 bytes made one warp the last by far."""
    share_loads: int = 4
    """How many rounds of loads a piece costs a block of a copy beside its own."""

    @property
    def constants(self) -> Mapping[str, int]:
        """What the programs call them."""
        return {
            "STAGES": self.stages,
            "WARPS": self.warps,
            "BLOCKS": self.blocks,
            "UNROLL": self.unroll,
            "COPY_THREADS": self.copy_threads,
        }

    @property
    def shared_bytes(self) -> int:
        """The rows of one block that are on their way."""
        return self.warps * self.stages * ROW_BYTES
