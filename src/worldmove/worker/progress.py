"""How a worker says that it gets on with what it was asked for: what takes long is waited for while this grows.

No time is right for all of it: a state is of some KB or some GB, a path or a disk fast or slow, and what waits for one
engine waits for whatever was asked for before. So whoever waits counts from the last piece that was done.

Bytes of other workers' states come also where the engine returns from nothing: who waits for the engine is told
nothing by them, so they have a number of their own. And a move that hangs gets on by nothing that others are at: so it
is said beside both of which moves a piece was.
"""

from worldmove.worker.message import MAX_COPIES


class Progress:
    """One worker's, in pieces of no set size. What a number is says nothing; that it has changed since does.

    Any thread may count: where two do at once, one of them may go uncounted.
    """

    def __init__(self) -> None:
        self.num_done = 0
        """What was done for who waits for the engine, or for a file: openings, answers, blocks that a copy follows.

        And pieces of a state that was copied aside there.
        """
        self.num_pulled = 0
        """Pieces of other workers' states."""
        self._attempts: dict[str, None] = {}

    def one_more(self, attempt: str = "") -> None:
        """Another piece is done: of a move's attempt, or of something else."""
        self.num_done += 1
        self._note(attempt)

    def one_more_pulled(self, attempt: str = "") -> None:
        """Another piece of a state has come here, was made room for, or was compared; as above."""
        self.num_pulled += 1
        self._note(attempt)

    def attempts(self) -> tuple[str, ...]:
        """Return the attempts of which a piece was done since this was asked last."""
        found, self._attempts = self._attempts, {}
        return tuple(found)[:MAX_COPIES]

    def _note(self, attempt: str) -> None:
        if attempt:
            self._attempts[attempt] = None
