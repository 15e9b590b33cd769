"""Write docs/protocol.md from the tables and messages that the code runs. ``--check`` only compares."""

import sys
from collections.abc import Iterable, Mapping
from enum import Enum
from pathlib import Path
from typing import Any, get_args

ROOT = Path(__file__).parents[1]
sys.path[:0] = [path for path in (str(ROOT), str(ROOT / "src")) if path not in sys.path]

from tests.model.invariants import Broken  # noqa: E402 - found by the line above
from tests.model.mutations import HARMFUL, REDUNDANT, Mutation  # noqa: E402
from worldmove.move import ledger_messages, messages  # noqa: E402
from worldmove.move.protocol import DESTINATION_STEPS, SOURCE_STEPS  # noqa: E402

TARGET = Path(__file__).parent / "protocol.md"

HEAD = """\
# The protocol of a move

Written by `docs/generate_protocol.py` from `move/protocol.py`, `move/ledger_messages.py`, `move/messages.py` and the
exhaustive model's own list of invariants and mutations; a test compares. What must not be done:
[src/worldmove/move/README.md](../src/worldmove/move/README.md).

Two ends, one ledger. The **source** plays the session and freezes it; the **destination** pulls its bytes, installs
them and proves that they are the same; the **ledger** decides, in one transaction, whose the session is. Messages may
be lost, repeated and reordered, processes may die and come back empty, and may be taken for dead and wake up late. None
of this makes two owners, and none of it loses the only copy.

a is an attempt, with an id and a nonce of its own; e is an epoch of ownership, which changes only in the ledger;
closed(a), yours(e') and theirs(e') are the ledger's answers. *Passed* means that a block beyond the asker's boundary
was shown. Every message carries session, attempt, epoch and incarnation; what does not match is dropped before it
reaches a table. Only an offer is never dropped: one that comes while an earlier one is served is declined
(`copy_held`), and one that comes while the earlier one lets go of its path is taken once it has. An event that a table
has no row for is a bug.
"""

SOURCE = """\
## The source

From its proof on it is in doubt: the destination may own the session already, so silence is a question to the ledger
and never a reason to go on. A time-out while *superseded* and a cancel in *doubt* are inquiries too.
"""

DESTINATION = """\
## The destination

Until it asks for the commit it may give up; from then on it repeats its commit, which is idempotent, and holds. It
never inquires in doubt: an inquiry closes the attempt, and this may be the only copy left.
"""

LEDGER = """\
## The ledger

One row for each session: owner, its incarnation, epoch, whether a frame of the epoch was shown, the open attempt, what
granted the epoch, whether it is lost. One transaction for each operation, durable before its answer; all but
`open_attempt` may be repeated. The rules are `decide` in `move/ledger_rules.py`. Where an answer needs a fact that
the server does not know (whether the owner is dead, which block is next), there is no answer yet: the asker holds.
"""

CONDITIONS = (
    (
        "open_attempt",
        "controller",
        "the row has its epoch; no attempt is open; it is newer than any before; the owner is not known to be dead",
        "it is open: *opened*; else *denied*",
    ),
    (
        "commit_attempt",
        "destination",
        "its attempt is open for this worker and incarnation; **or** it was closed, the row still has its epoch, no "
        "attempt is open, the owner is dead, and the next block is its boundary",
        "the asker owns epoch e+1, unshown, no attempt open: *yours*",
    ),
    (
        "commit_attempt, else",
        "destination",
        "the owner lives, or the next block is past the boundary: *closed*. The row has a later epoch: *yours* or "
        "*theirs*. The owner is dead or suspected, and something is not known, or an attempt is open: no answer yet",
        "nothing changes",
    ),
    (
        "close_attempt",
        "source, controller, or a destination that has not asked to commit",
        "none",
        "the attempt is open no more, and never will be; *closed* where the row has the asker's epoch, else *yours* or "
        "*theirs*",
    ),
    ("mark_shown", "gateway", "the row has this epoch", "it is recorded as shown, and the frame may leave: *done*"),
    (
        "reclaim",
        "a holder of a complete copy",
        "the row has this epoch; another owns it, and is gone or suspected; it is not recorded as shown; "
        "acknowledged <= next block <= computed",
        "the asker owns epoch e+1, unshown, no attempt open: *yours*",
    ),
    (
        "failover",
        "controller, for a retired copy",
        "the row has this epoch; no attempt is open; the owner is dead, or suspected and recorded as shown; the epoch "
        "was closed at the gateway first; the input log reaches the next block",
        "that copy's worker owns epoch e+1, unshown: *done*",
    ),
    (
        "lose",
        "controller",
        "the row has this epoch; no attempt is open; the owner is dead; the newest poll, which every worker has "
        "answered or died in, found no copy",
        "the session is lost: *done*",
    ),
)

PASSED = """\
*Passed* is said of a *theirs* where the next block is past the asker's boundary, or the present epoch is recorded as
shown: from then on nobody may reclaim it, so a holder retires, and can be given the session by a failover. A *yours*
that follows from a failover names the block up to which the log is to be replayed first.
"""

INVARIANTS = """\
## What holds, and what shows it

`tests/model` explores the tables and rules above exhaustively, with a channel that loses, repeats and reorders, dying
and restarting processes, and false suspicion. `tests/model/test_model.py` shows that nothing below is ever broken, and
that from every state, without a further fault, the owner plays on or the session is reported lost. Beside each
invariant stand the changes of a single rule that break it: `tests/model/test_mutations.py` shows that each is caught.
The suite explores small bounds; `make model` the large ones. Bounds, counts, and what is not modelled:
[tests/model/README.md](../tests/model/README.md).

**Not built: computing one block ahead while in doubt.** With that row for the destination nothing below is broken and
nobody is stuck, *provided that I7 is read narrowly*: the block computed ahead counts for nothing, and the copy is that
of its boundary. Read widely, with that block as part of the copy, I7 **is** broken: the source thaws on *closed*, shows
that very block and dies, and the destination is told to discard the only copy that could show the next one. It loses
nothing that it would have kept without the row, but it does not save what it could; a test shows both readings.
"""

ANSWERS = """\
### Answers
"""

MESSAGES = """\
## Messages

Typed and bounded; unknown fields are refused. The server carries those between workers.

**Before the boundary there is no row.** `begin`, `base`, `fetched`, `ready`, `meet` and `still` travel while the source
is *live* (`meet` and `still` once it is *frozen* by its table: it plays up to the block that it has named, and then no
more) and the destination's copy a *shadow*. Neither table knows of them: none of them decides anything, each may be
lost, repeated or late, and whatever fails there is the *abandon* or the *time-out* that the tables have. A snapshot is
no copy of the session: nothing is played from its slot. A shadow that follows its owner (`following` in a worker's
report) counts as the shadow that it is: it owns nothing, sends nothing that could be shown, and only the proof makes it
more. So the exhaustive model covers a replay with its *shadow*, which may be matched at any time or never, and needed
no new row.
"""

TAIL = """\
## Thirteen rules

1. The source's doubt begins when it sends its proof; from then on it thaws only on *closed*, and a cancel is an
   inquiry.
2. The proof is the source's last message, sent only when its two passes agree.
3. Only the source, the controller, and a destination that has not asked for the commit close an attempt.
4. A commit for a closed attempt is granted all the same if the row still has its epoch, no attempt is open, the owner
   is dead and the next block is the proof's boundary; while one of these is not known it is not answered.
5. A reclaim is asked by a holder of a complete copy whose boundary is the gateway's next block. The loser keeps its
   copy and may reclaim back.
6. A frame is judged by the ledger's row; before an owner that was not frozen is replaced, its epoch is closed at the
   gateway.
7. That an epoch was shown is recorded before its first frame leaves.
8. A retired copy is freed only when a block past its boundary has left the gateway.
9. After a restart inquiries are answered at once; only showing waits, until owner and client have reported.
10. Time frees a shadow only before it asked for the commit. A lapsed lease makes an owner suspected, never lost.
11. The write window is sealed before the verifying pass begins, and closed before that counts, on success too.
12. The proof is not sent before the gateway has taken every frame up to the boundary.
13. Incarnations are in the row, in every offer and report. Who is told that it owns what it no longer holds answers
    *gone*.
"""


def page() -> str:
    """Return the whole document."""
    parts = [
        HEAD,
        SOURCE,
        diagram(SOURCE_STEPS),
        steps(SOURCE_STEPS),
        DESTINATION,
        diagram(DESTINATION_STEPS),
        steps(DESTINATION_STEPS),
        LEDGER,
        structs(get_args(ledger_messages.Operation), ("operation", "what it is", "it carries")),
        table_of(("operation", "asked by", "precondition", "postcondition, answer"), conditions()),
        PASSED,
        ANSWERS,
        structs(get_args(ledger_messages.Answer), ("answer", "what it says", "it carries")),
        MESSAGES,
        structs(get_args(messages.AnyMoveMessage), ("message", "what it says", "it carries")),
        TAIL,
        INVARIANTS,
        table_of(("invariant", "", "broken where"), invariants()),
    ]
    return "\n".join(parts)


def conditions() -> Iterable[tuple[str, ...]]:
    """Return the rows of the ledger's conditions. Raises ValueError if an operation has none."""
    told = {name.partition(",")[0] for name, *_ in CONDITIONS}
    missing = {kind.__struct_config__.tag for kind in get_args(ledger_messages.Operation)} - told
    if missing:
        raise ValueError(f"no conditions are written of {sorted(missing)}")
    return ((f"`{name}`", *rest) for name, *rest in CONDITIONS)


def invariants() -> Iterable[tuple[str, ...]]:
    """Return each invariant with the changes of a rule that break it."""
    for broken in Broken:
        yield broken.name, broken.value, _joined(m for m in HARMFUL if broken in m.breaks)
    yield "liveness", "from every state the owner plays on, or lost is said", _joined(m for m in HARMFUL if m.sticks)
    yield "-", "redundant: without it nothing breaks, since another guard does the same", _joined(REDUNDANT)


def _joined(found: Iterable[Mutation]) -> str:
    return "; ".join(mutation.name for mutation in found) or "no change of one rule that was tried"


def steps(table: Mapping[tuple[Any, Any], tuple[Any, Any]]) -> str:
    """Return a table of both ends' form: phase, event, next phase, effect."""
    rows = [
        (before.value, event.value, after.value, effect.value) for (before, event), (after, effect) in table.items()
    ]
    return table_of(("phase", "event", "next", "effect"), rows)


def diagram(table: Mapping[tuple[Any, Any], tuple[Any, Any]]) -> str:
    """Return the phases and the events that lead from one to another, without those that stay."""
    arrows: dict[tuple[Enum, Enum], list[str]] = {}
    for (before, event), (after, _) in table.items():
        if before is not after and event.name != "DIED":
            arrows.setdefault((before, after), []).append(event.name.lower().replace("_", " "))
    lines = [f"    {before.value} --> {after.value}: {', '.join(events)}" for (before, after), events in arrows.items()]
    return "\n".join(["```mermaid", "stateDiagram-v2", *lines, "```", ""])


def structs(kinds: Iterable[type], head: tuple[str, ...]) -> str:
    """Return a table of messages: tag, first sentence, own fields."""
    common = {"session", "to", "sender", "incarnation", "attempt", "epoch"} if "message" in head else {"session"}
    rows = []
    for kind in kinds:
        info = kind.__struct_config__  # type: ignore[attr-defined]
        fields = [name for name in kind.__struct_fields__ if name not in common]  # type: ignore[attr-defined]
        sentence = " ".join((kind.__dict__.get("__doc__") or "").split("\n\n")[0].split()).replace("``", "`")
        rows.append((f"`{info.tag}`", sentence, ", ".join(fields) or "-"))
    return table_of(head, rows)


def table_of(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """Return a table in Markdown."""
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def main() -> int:
    """Write the page, or with ``--check`` say whether it is up to date."""
    if "--check" in sys.argv[1:]:
        return 0 if TARGET.read_text(encoding="utf-8") == page() else 1
    TARGET.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
