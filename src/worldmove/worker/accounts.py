"""Accounts of a session's state, for its record: when one is owed, and when it is taken. Pure.

Rules:

1. An account is taken between two blocks, by the engine's thread, after the block before it was sent: no block's
   arrival waits for it.
2. While the next block's list is here, the account is put off to the next boundary, ``PATIENCE`` times at most.
"""

PATIENCE = 8


class Accounts:
    """What one copy owes. Blocks are numbers."""

    def __init__(self) -> None:
        self._asked: dict[int, None] = {}
        self._owed_since: int | None = None

    def ask(self, block: int) -> None:
        """An account is wanted after this block."""
        self._asked[block] = None

    def stepped(self, block: int) -> None:
        """A block has ended: what was asked up to it is owed now."""
        for asked in [asked for asked in self._asked if asked <= block]:
            del self._asked[asked]
            if self._owed_since is None:
                self._owed_since = block

    def forget_before(self, block: int) -> None:
        """What was asked after earlier blocks is another owner's to give."""
        self._asked = {asked: None for asked in self._asked if asked >= block}

    def is_due(self, next_block: int, *, list_waits: bool) -> bool:
        """Whether an account is to be taken at the boundary before ``next_block``."""
        if self._owed_since is None:
            return False
        return not list_waits or next_block > self._owed_since + PATIENCE

    def given(self) -> None:
        """It was taken, or the copy is no owner's any more."""
        self._owed_since = None
