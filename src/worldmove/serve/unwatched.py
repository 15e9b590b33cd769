"""Since when nobody has watched a session: which one may be closed for that, and which may make room. Pure."""


class Unwatched:
    """The sessions of one gateway that nobody watches. Times are those in which the server ran, seconds."""

    def __init__(self, *, keep_s: float, spare_s: float) -> None:
        """``keep_s``: how long one is kept; ``spare_s``: how long before another may have its room."""
        self._keep_s = keep_s
        self._spare_s = spare_s
        self._since: dict[str, float] = {}

    def look(self, session: str, now: float, *, watched: bool) -> bool:
        """Note whether a session is watched. Says whether it has been kept for nobody long enough."""
        if watched:
            self._since.pop(session, None)
            return False
        return now - self._since.setdefault(session, now) >= self._keep_s

    def spares(self, now: float) -> list[str]:
        """Return the sessions that nobody has watched for long enough, first the one for longest."""
        spare = [name for name, since in self._since.items() if now - since >= self._spare_s]
        return sorted(spare, key=lambda name: self._since[name])

    def forget(self, session: str) -> None:
        """A session has ended."""
        self._since.pop(session, None)
