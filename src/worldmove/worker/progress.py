"""How a worker says that it gets on with what it was asked for: what takes long is waited for while this grows.

No time is right for all of it: a state is of some KB or some GB, a path or a disk fast or slow, and what waits for one
engine waits for whatever was asked for before. So whoever waits counts from the last piece that was done.

Bytes of other workers' states come also where the engine returns from nothing: who waits for the engine is told
nothing by them, so they have a number of their own.
"""


class Progress:
    """One worker's, in pieces of no set size. What a number is says nothing; that it has changed since does.

    Any thread may count: where two do at once, one of them may go uncounted.
    """

    def __init__(self) -> None:
        self.num_done = 0
        """What was done for who waits for the engine, or for a file: openings, answers, blocks that a copy follows."""
        self.num_pulled = 0
        """Pieces of other workers' states."""

    def one_more(self) -> None:
        """Another piece is done."""
        self.num_done += 1

    def one_more_pulled(self) -> None:
        """Another piece of a state has come."""
        self.num_pulled += 1
