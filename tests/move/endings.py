"""What an end of a move says at its end, for tests of what is made of it."""

from worldmove.move.messages import Ended


def ended(side: str, clock: float, *phases: tuple[str, float, float]) -> Ended:
    """Say that a move was committed; phases are (name, begin, end) in seconds since ``clock``."""
    return Ended(
        to="controller",
        sender="a",
        incarnation=1,
        session="s",
        attempt="00000001-x",
        epoch=1,
        side=side,
        outcome="committed",
        reason="done",
        detail="",
        phases=phases,
        clock=clock,
        num_bytes=100,
        num_leaves=3,
        num_groups=1,
        state_digest=f"digest of the {side}",
    )
