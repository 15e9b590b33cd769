"""Workers that compute as another does: only they go on with its states bit for bit. Pure."""

from collections.abc import Iterable, Mapping
from typing import Protocol, TypeVar

from worldmove.state.environment import Environment


class Computes(Protocol):
    """Something that computes in an environment (``state.environment``)."""

    @property
    def environment(self) -> Mapping[str, str]: ...


W = TypeVar("W", bound=Computes)


def alike(workers: Iterable[W], environment: Mapping[str, str]) -> list[W]:
    """Return the workers of which no field differs from an environment, in their order."""
    wanted = Environment(fields=environment)
    return [worker for worker in workers if not wanted.difference(Environment(fields=worker.environment))]
