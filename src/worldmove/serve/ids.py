"""Names, seeds and the server's life number, from the operating system's randomness. An edge."""

import secrets

from worldmove.fleet.given_names import GivenNames

LETTERS = "abcdefghjkmnpqrstuvwxyz23456789"
"""Nothing that is read as something else."""
NAME_LETTERS = 6
SEED_BITS = 31
LIFE_BITS = 48
"""JavaScript counts exactly up to 53."""


class RandomIds:
    """Names that nobody guesses and no second session gets: 30 bits in six letters."""

    def __init__(self) -> None:
        self.given = GivenNames()

    def session(self) -> str:
        """Return a session's name, like ``s-k3m9qa``."""
        return self.given.new(lambda: "s-" + salt())

    def seed(self) -> int:
        """Return a world's seed."""
        return secrets.randbits(SEED_BITS)

    def life(self) -> int:
        """Return the number of this server's life."""
        return secrets.randbits(LIFE_BITS)


def salt() -> str:
    """Return a short random text."""
    return "".join(secrets.choice(LETTERS) for _ in range(NAME_LETTERS))


def nonce() -> bytes:
    """Return a move's secret."""
    return secrets.token_bytes(32)
