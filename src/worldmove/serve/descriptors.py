"""How many descriptors this process may have, and how many of them may be its clients' connections.

Where there are none left nothing can be accepted, read or saved any more, and asyncio says so without end. So the
server has as many clients at most as there are descriptors for, beside its own.
"""

import resource

from worldmove.errors import UserError

AT_ONCE = 128
"""Connections that are accepted before the first of them is looked at: the listening socket's backlog."""
OWN = 192
"""For the ledger, the workers' links and memory, saved worlds and records."""
LEAST = 16
"""Clients; a server that could have no more is of no use."""


def for_clients(most: int) -> int:
    """Return how many connections there may be, ``most`` at the most; the soft limit is raised where that helps.

    Raises UserError where there could be hardly any.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = most + AT_ONCE + OWN
    if soft != resource.RLIM_INFINITY and soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return most
    if soft < LEAST + AT_ONCE + OWN:
        why = f"This process may open {soft} files and connections; a server needs {LEAST + AT_ONCE + OWN} (ulimit -n)."
        raise UserError(why, code="usage")
    return soft - AT_ONCE - OWN
