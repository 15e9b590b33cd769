"""The blocks that a world plays although it might rest: after a change of owner (``serve.tempo``, rule 5). Pure."""


class Owed:
    """One session's. Blocks are the next to be shown."""

    def __init__(self, check_blocks: int) -> None:
        """``check_blocks``: how many are owed after each change."""
        self._check_blocks = check_blocks
        self._until = 0
        self._was_owned = False

    def owned(self, next_block: int) -> None:
        """Somebody owns the session from now on. The first owner changes nothing."""
        if self._was_owned:
            self._until = next_block + self._check_blocks
        self._was_owned = True

    def resumed(self, next_block: int, *, num_holders: int) -> None:
        """An earlier server's session goes on. A second holder is a move's retired copy, which waits for its checks."""
        self._was_owned = num_holders > 1
        self.owned(next_block)

    def is_owed(self, next_block: int) -> bool:
        """Whether the next block is."""
        return next_block < self._until
