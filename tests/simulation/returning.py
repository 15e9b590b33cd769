"""Who has come back to a session of an earlier server before it goes on, and what they say that they have."""

from dataclasses import dataclass, field

CLIENT_S = 10.0
"""How long who comes back later than the first is waited for (docs/guarantee.md)."""
MOST_BELIEVED = 2
"""Blocks beyond every list that anybody holds, of which a client's word is believed (docs/guarantee.md)."""


@dataclass(slots=True, kw_only=True)
class Returning:
    """Those of one server's life."""

    claims: list[int] = field(default_factory=list)
    first_at: float | None = None
    """When the first of them came, in virtual time."""
    believed: int = -1
    """The newest block that the server has to believe a client has, whose world's owner died with a server."""

    def came(self, received: int | None, now: float) -> None:
        """Somebody is at the door."""
        self.first_at = now if self.first_at is None else self.first_at
        if received is not None:
            self.claims.append(received)

    def waited_long(self, now: float) -> bool:
        """Whether everybody has had the time to come back that they are promised."""
        return self.first_at is not None and now - self.first_at >= CLIENT_S

    def believe(self, reaches: int) -> None:
        """The world goes on without its owner; ``reaches``: the first block of which nobody has anything."""
        self.believed = max((claim for claim in self.claims if claim < reaches + MOST_BELIEVED), default=-1)
