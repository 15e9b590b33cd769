"""How a worker says that it gets on with what it was asked for: what takes long is waited for while this grows.

No time is right for all of it: a state is of some KB or some GB, a path or a disk fast or slow, and what waits for one
engine waits for whatever was asked for before. So whoever waits counts from the last piece that was done.
"""


class Progress:
    """One worker's: openings, files, and bytes of other workers' states, in pieces of no set size."""

    def __init__(self) -> None:
        self._num_done = 0

    @property
    def num_done(self) -> int:
        """How many pieces were done. What it is says nothing; that it has changed since does."""
        return self._num_done

    def one_more(self) -> None:
        """Another piece is done. Any thread may say so: where two do at once, one of them may go uncounted."""
        self._num_done += 1
