"""What a worker and its server say to each other, beside the messages of a move.

One ordered link joins each worker to the server. The server also carries messages between workers: it
forwards a ``MoveMessage`` to the worker that its ``to`` names. Ledger operations travel as ``LedgerAsk``.

A session's life:   Open -> Opened | Failed;  Inputs(b) -> BlockDone(b) -> Acknowledge(b);  Close -> Freed
A new link:         Hello, then for each copy Held(b)... and Left(b)..., then Reported, then BlockDone(b) once more
A worker's lease:   Beat(n) -> Alive(n)
"""

from worldmove.worker.message import (
    Change,
    Copy,
    Message,
    Note,
)
from worldmove.worker.orders import (
    Acknowledge,
    Beat,
    Close,
    Describe,
    Inputs,
    LedgerAnswer,
    Open,
    Poll,
    Refused,
    Save,
    SendAgain,
    Shutdown,
    TakeOver,
    ToWorker,
)
from worldmove.worker.reports import (
    Alive,
    BlockDone,
    CheckDone,
    Copies,
    Described,
    Failed,
    Fault,
    Followed,
    Freed,
    Held,
    Hello,
    LedgerAsk,
    Left,
    NotDone,
    Opened,
    Reported,
    Saved,
    StateDone,
    ToServer,
)

__all__ = [
    "Acknowledge",
    "Alive",
    "Beat",
    "BlockDone",
    "Change",
    "CheckDone",
    "Close",
    "Copies",
    "Copy",
    "Describe",
    "Described",
    "Failed",
    "Fault",
    "Followed",
    "Freed",
    "Held",
    "Hello",
    "Inputs",
    "LedgerAnswer",
    "LedgerAsk",
    "Left",
    "Message",
    "NotDone",
    "Note",
    "Open",
    "Opened",
    "Poll",
    "Refused",
    "Reported",
    "Save",
    "Saved",
    "SendAgain",
    "Shutdown",
    "StateDone",
    "TakeOver",
    "ToServer",
    "ToWorker",
]
