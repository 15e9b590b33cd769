"""One corruption: where it strikes, how, and under which seed; and what became of the move that it struck."""

from dataclasses import dataclass
from enum import Enum


class Where(Enum):
    """What is made to lie."""

    FIELD = "a field of a message"
    AHEAD = "a message of a move that goes ahead while the session is played"
    STREAM = "a message of a move that streams, and has a part of the session followed"
    FOLLOW = "a message of a move that follows a snapshot by the lists"
    MESSAGE = "a whole message"
    PATH = "bytes on their way"
    LANDED = "installed memory, between landing and verification"
    INSTALLED = "the installed session, before it is verified"
    WINDOW = "memory that a path was lent, after its window was closed"
    ENGINE = "the source's engine, after its boundary"
    DIGEST = "a digest"
    QUESTION = "a question to the ledger"


class Verdict(Enum):
    """What became of it. ACCEPTED and STUCK are failures."""

    REFUSED = "refused"
    """Before a byte travelled."""
    ABORTED = "aborted"
    HARMLESS = "harmless"
    """The move was committed, and what is played is bit for bit what was frozen."""
    ACCEPTED = "accepted"
    STUCK = "stuck"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """``how`` at ``target``; everything left open is drawn from ``seed``."""

    where: Where
    target: str
    how: str
    seed: int = 0

    def __str__(self) -> str:
        return f"{self.where.value}: {self.target}, {self.how}, seed {self.seed}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """``struck``: the corruption took place and changed something; else the case proves nothing and is not counted."""

    case: Case
    struck: bool
    verdict: Verdict
    why: str = ""
    complaints: tuple[str, ...] = ()
    """What the case shows to be wrong, in sentences; empty for a case that went as it must."""
