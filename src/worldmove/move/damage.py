"""What is not as it should be, in words."""

from collections.abc import Sequence

from worldmove.state.proof import Mismatch


def say_damage(differences: tuple[Mismatch, ...], num_groups: int, what: str) -> str:
    """Name what differs: the groups by number, ``what`` is the matter with them, and the leaves that lie in them.

    Or the first other thing.
    """
    groups = [difference.group for difference in differences if difference.group is not None]
    paths = list(dict.fromkeys(path for difference in differences for path in difference.paths))
    if not paths:
        return str(differences[0])
    which = f"group {_some(groups)} of {num_groups}" if len(groups) == 1 else f"groups {_some(groups)} of {num_groups}"
    return f"{which} {what}: {_some(paths)}"


def _some(items: Sequence[object]) -> str:
    """Write out the first few."""
    return ", ".join(map(str, items[:4])) + (f" and {len(items) - 4} more" if len(items) > 4 else "")
