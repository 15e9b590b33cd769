"""The ledger's rules, pure: ``decide(row, operation, facts) -> (row, answer)``.

The protocol of record: who owns a session changes only here, by one compare-and-swap keyed on the open
attempt. All operations but ``OpenAttempt`` are idempotent.
"""

from typing import Annotated

import msgspec

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=64)]
Count = Annotated[int, msgspec.Meta(ge=0, lt=1 << 62)]


class _Tagged(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="type"):
    session: Name


class OpenAttempt(_Tagged, tag="open_attempt"):
    """Asked by the controller: one attempt at a time, new, the destination holds a shadow for it."""

    attempt: Name
    epoch: Count
    destination: Name
    destination_incarnation: Count


class CommitAttempt(_Tagged, tag="commit_attempt"):
    """Asked by the destination, and repeated for as long as it is in doubt."""

    attempt: Name
    epoch: Count
    boundary: Count
    worker: Name
    incarnation: Count


class CloseAttempt(_Tagged, tag="close_attempt"):
    """An inquiry, which closes: from the source, the controller, or a destination that has not asked to commit."""

    attempt: Name
    worker: Name
    incarnation: Count
    boundary: Count


class MarkShown(_Tagged, tag="mark_shown"):
    """Asked by the gateway before the first frame of an epoch leaves."""

    epoch: Count


class Reclaim(_Tagged, tag="reclaim"):
    """Asked by a holder of a complete copy. ``acknowledged`` <= next block <= ``computed``."""

    epoch: Count
    acknowledged: Count
    computed: Count
    worker: Name
    incarnation: Count


class Failover(_Tagged, tag="failover"):
    """Asked by the controller for a retired copy, the old epoch closed at the gateway first."""

    epoch: Count
    worker: Name
    incarnation: Count
    log_reaches: Count


class Lose(_Tagged, tag="lose"):
    """Asked by the controller, after a numbered poll that found no copy."""

    epoch: Count
    poll: Count
    copies_found: Count


Operation = OpenAttempt | CommitAttempt | CloseAttempt | MarkShown | Reclaim | Failover | Lose


class Opened(_Tagged, tag="opened"):
    attempt: Name


class Closed(_Tagged, tag="closed"):
    """The attempt is closed and the asker's epoch stands."""

    attempt: Name


class Yours(_Tagged, tag="yours"):
    epoch: Count


class Theirs(_Tagged, tag="theirs"):
    """Another owns it. ``passed``: a block beyond the asker's boundary has been shown."""

    epoch: Count
    passed: bool


class Done(_Tagged, tag="done"):
    """The row now says so (shown, lost)."""

    epoch: Count


class Denied(_Tagged, tag="denied"):
    """A precondition does not hold; nothing changed."""

    reason: Name


Answer = Opened | Closed | Yours | Theirs | Done | Denied
