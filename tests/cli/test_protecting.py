"""What ``worldmove protect`` says: that snapshots are asked for is not yet that the world outlives its worker."""

from pathlib import Path

import pytest

from tests.cli.command import worldmove
from tests.cli.test_unwritten import answering


@pytest.mark.parametrize(
    ("why", "every", "said"),
    [
        ("no_keeper: there is no other worker.", 4, "Not protected yet (no_keeper: there is no other worker.)"),
        (None, 4, ""),
        ("no_keeper: there is no other worker.", 0, ""),
    ],
)
def test_why_a_session_is_not_protected_yet_is_said(why: str | None, every: int, said: str, tmp_path: Path) -> None:
    with answering({"session": "s-1", "unprotected_why": why}, tmp_path) as url:
        ran = worldmove("protect", "s-1", "--every", str(every), "--server", url)
    assert ran.status == 0
    assert ran.err.strip() == said
