"""What one client may take of a server, in one place: docs/http.md lists it."""

from dataclasses import dataclass, field, replace
from functools import partial

from worldmove.serve.allowance import Pace
from worldmove.serve.client_messages import MAX_CLIENT_BYTES

LEAST_BYTES_PER_S = 256 << 10
"""A saved world comes, or is read, at this rate at least, where others wait."""

WAITING_BLOCKS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayLimits:
    """Of one play connection, and of one session's watchers."""

    messages: Pace = field(default_factory=partial(Pace, burst=512, per_s=64))
    """A page that is used hastily sends some 30 a second."""
    key_changes: Pace = field(default_factory=partial(Pace, burst=1024, per_s=64))
    """Each stands in the record of the session for as long as that lives: hands make some 30 a second."""
    max_waiting: int = 64
    """Messages that may wait for one watcher, each frame one; frames are shared among those of a session."""
    max_watchers: int = 64
    """Of one session. One more, and the oldest of those that only watch is dropped."""

    def for_blocks_of(self, num_frames: int) -> "PlayLimits":
        """Return these for blocks of so many frames: some blocks may wait at least, for one comes all at once."""
        return replace(self, max_waiting=max(self.max_waiting, WAITING_BLOCKS * num_frames))


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpLimits:
    """Of one connection, and of all together. Seconds and bytes."""

    max_connections: int = 512
    """Open at once, play connections among them. What comes beyond is closed unread, unless one of them is quiet."""
    quiet_s: float = 30.0
    """Who has said nothing for so long makes room where no place is left: nobody locks others out by staying."""
    new_connections: Pace = field(default_factory=partial(Pace, burst=512, per_s=100))
    """Of all clients together: a handshake takes the loop a millisecond."""
    requests: Pace = field(default_factory=partial(Pace, burst=100, per_s=50))
    """Of one connection. Beyond, its next request waits for its turn."""
    loop: Pace = field(default_factory=partial(Pace, burst=0.1, per_s=0.3))
    """Seconds of the server's loop, of all clients together: what they ask for, and handshakes of players. Beyond,
    whoever asks waits, and who has taken least is next."""
    play_loop: Pace = field(default_factory=partial(Pace, burst=0.1, per_s=0.3))
    """The same, of what players say."""
    request_s: float = 10.0
    """From the first moment that a request is awaited until its last byte is here; a long one may go on for as long as
    it brings ``least_bytes_per_s`` in each such time."""
    least_bytes_per_s: float = LEAST_BYTES_PER_S
    max_head_bytes: int = 16 << 10
    """Request line and headers."""
    max_message_bytes: int = MAX_CLIENT_BYTES
    """One message of the play wire, all its fragments together."""
    control_frames: Pace = field(default_factory=partial(Pace, burst=64, per_s=16))
    """Pings, pongs and fragments of one play connection: a browser sends next to none."""
