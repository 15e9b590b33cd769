"""What is asked of the ledger, and what it answers: typed, bounded values that also travel.

open      controller                         one attempt at a time may move a session
commit    destination                        the attempt's one compare-and-swap of the owner
close     source, controller, destination    an inquiry that closes the attempt
shown     gateway                            a frame of this epoch may leave
reclaim   holder of a complete copy          the owner is gone or suspected and has shown nothing
failover  controller, for a retired copy     the owner is dead, or suspected
lose      controller                         nobody holds a copy
"""

from typing import Annotated

import msgspec

from worldmove.limits import MAX_COUNT, MAX_NAME

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_NAME)]
Count = Annotated[int, msgspec.Meta(ge=0, lt=MAX_COUNT)]
AttemptId = Annotated[str, msgspec.Meta(pattern="^([0-9]{8}-[!-~]{1,55}|-)$")]
"""As ``ledger_row.attempt_id`` makes it; ``-`` where there is none. Ids are ordered, so one that is none is refused:
taken for the newest, it would leave no room for a newer one, and its session could never be moved again.
"""


class _Tagged(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="type"):
    session: Name


class OpenAttempt(_Tagged, frozen=True, kw_only=True, tag="open_attempt"):
    """Asked by the controller: one attempt at a time, new, the destination holds a shadow for it."""

    attempt: AttemptId
    epoch: Count
    destination: Name
    destination_incarnation: Count


class CommitAttempt(_Tagged, frozen=True, kw_only=True, tag="commit_attempt"):
    """Asked by the destination, and repeated for as long as it is in doubt."""

    attempt: AttemptId
    epoch: Count
    """The source's."""
    boundary: Count
    worker: Name
    incarnation: Count


class CloseAttempt(_Tagged, frozen=True, kw_only=True, tag="close_attempt"):
    """An inquiry, which closes: from the source, the controller, or a destination that has not asked to commit."""

    attempt: AttemptId
    epoch: Count
    """The asker's own epoch; that of the attempt, where it has none."""
    worker: Name
    incarnation: Count
    boundary: Count
    """The asker's next block: what it would play next if the session were its own."""


class MarkShown(_Tagged, frozen=True, kw_only=True, tag="mark_shown"):
    """Asked by the gateway before the first frame of an epoch leaves."""

    epoch: Count


class Reclaim(_Tagged, frozen=True, kw_only=True, tag="reclaim"):
    """Asked by a holder of a complete copy. ``acknowledged`` <= next block <= ``computed``."""

    epoch: Count
    acknowledged: Count
    computed: Count
    worker: Name
    incarnation: Count


class Failover(_Tagged, frozen=True, kw_only=True, tag="failover"):
    """Asked by the controller for a retired copy, the old epoch closed at the gateway first."""

    epoch: Count
    worker: Name
    incarnation: Count
    log_reaches: Count
    """The first block whose input list is not in the log."""


class Lose(_Tagged, frozen=True, kw_only=True, tag="lose"):
    """Asked by the controller, after a numbered poll that found no copy."""

    epoch: Count
    poll: Count
    copies_found: Count


Operation = OpenAttempt | CommitAttempt | CloseAttempt | MarkShown | Reclaim | Failover | Lose


class Opened(_Tagged, frozen=True, kw_only=True, tag="opened"):
    """The attempt is open."""

    attempt: AttemptId


class Closed(_Tagged, frozen=True, kw_only=True, tag="closed"):
    """The attempt is closed and the asker's epoch stands."""

    attempt: AttemptId


class Yours(_Tagged, frozen=True, kw_only=True, tag="yours"):
    """The asker owns it, in this epoch."""

    epoch: Count
    replay_to: Count | None = None
    """Where its retired copy was given it by a failover: the next block to be shown, up to which it replays the log."""


class Theirs(_Tagged, frozen=True, kw_only=True, tag="theirs"):
    """Another owns it. ``passed``: a block beyond the asker's boundary has been shown."""

    epoch: Count
    passed: bool


class Done(_Tagged, frozen=True, kw_only=True, tag="done"):
    """The row now says so (shown, failed over, lost)."""

    epoch: Count


class Denied(_Tagged, frozen=True, kw_only=True, tag="denied"):
    """A precondition does not hold; nothing changed."""

    reason: Name


Answer = Opened | Closed | Yours | Theirs | Done | Denied
