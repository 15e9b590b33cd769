"""Work on a GPU that is under way, as whoever asked for it sees it."""

from collections.abc import Sequence

import torch

from worldmove.errors import TransportError
from worldmove.state.cuda_plan import PartedPlan
from worldmove.state.kernels import Pending


class CudaCopy:
    """A copy on the kit's stream."""

    def __init__(self, event: torch.cuda.Event, kept: object) -> None:
        self._event = event
        self._kept = kept

    def is_done(self) -> bool:
        """Whether every byte has landed. Raises TransportError if the device has failed."""
        try:
            return bool(self._event.query())
        except RuntimeError as error:
            raise TransportError(f"the device has failed: {error}") from error

    def precedes(self, stream: torch.cuda.Stream) -> None:
        """Let what comes on a stream wait for it."""
        stream.wait_event(self._event)

    def wait(self) -> None:
        """Return when every byte has landed; others run meanwhile. Raises TransportError."""
        try:
            self._event.synchronize()
        except RuntimeError as error:
            raise TransportError(f"the device has failed: {error}") from error


class CudaDigests:
    """Digests on the kit's stream."""

    def __init__(self, plan: PartedPlan, parts: Sequence[Pending]) -> None:
        self._plan = plan
        self._parts = parts

    def joined(self) -> bytes:
        """Wait, and return them; others run meanwhile. Raises TransportError if the device has failed."""
        try:
            return self._plan.joined([part.joined() for part in self._parts])
        except torch.AcceleratorError as error:
            raise TransportError(f"the device has failed: {error}") from error


def finished(stream: torch.cuda.Stream, kept: object = None) -> CudaCopy:
    """Return the end of what a stream was asked for until now; ``kept`` stays alive with it."""
    event = torch.cuda.Event()
    event.record(stream)
    return CudaCopy(event, kept)
