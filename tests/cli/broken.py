"""An engine whose weights are not there."""

from typing import Any

from worldmove.engine.base import Engine
from worldmove.errors import WeightsError


def engine(_num_threads: int) -> Engine[Any]:
    raise WeightsError("The weights /nowhere cannot be read; install worldmove again.")
