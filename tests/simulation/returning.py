"""Who has come back to a session of an earlier server before it goes on, and what they say that they have."""

from dataclasses import dataclass, field

CLIENT_S = 10.0
"""How long who comes back later than the first is waited for (docs/guarantee.md)."""


@dataclass(slots=True, kw_only=True)
class Returning:
    """Those of one server's life."""

    claims: list[int] = field(default_factory=list)
    first_at: float | None = None
    """When the first of them came, in virtual time."""
    believed: int = -1
    """The newest block that a client says it has, where a server and the owner have died."""

    def came(self, received: int | None, now: float) -> None:
        """Somebody is at the door."""
        self.first_at = now if self.first_at is None else self.first_at
        if received is not None:
            self.claims.append(received)

    def waited_long(self, now: float) -> bool:
        """Whether everybody has had the time to come back that they are promised."""
        return self.first_at is not None and now - self.first_at >= CLIENT_S

    def believe(self) -> None:
        """The world goes on without its owner: nobody can tell a false word from a true one."""
        self.believed = max(self.claims, default=-1)
