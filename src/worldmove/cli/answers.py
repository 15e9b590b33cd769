"""What of a server's answers the command line reckons with, by its types. They are written out as they came.

A server of another version, or something else at its address, may say anything under these names.
"""

from typing import Any, Literal, TypeVar

import msgspec

from worldmove.cli.no_answer import LOOK, NoServer, Unanswered

AnswerT = TypeVar("AnswerT", bound=dict[str, Any])
Number = int | float


class _Answer(msgspec.Struct, kw_only=True):
    """The root: there may be more fields than these."""


class Begun(_Answer):
    session: str


class _Expected(_Answer):
    strategy: str
    pause_ms: Number


class Move(_Answer):
    session: str
    outcome: Literal["committed", "refused", "aborted", "in_doubt", "lost"]
    reason: str
    sentence: str
    to: str | None
    pause_ms: Number | None
    gap_ms: Number | None
    took_ms: Number
    num_bytes: int | None
    proof: str
    expected: _Expected | None
    plain: str | None = None
    in_place_bytes: int | None = None
    moved_bytes: int | None = None
    pulled_bytes: int | None = None


class _Term(_Answer):
    name: str
    ms: Number
    how: str


class _Strategy(_Answer):
    strategy: str
    admitted: bool
    reason: str
    detail: str
    remedy: str | None
    pause_ms: Number | None
    before_ms: Number | None
    slack_ms: Number | None
    pause: list[_Term]
    before: list[_Term]
    spread_ms: Number | None = None


class Plan(_Answer):
    session: str
    admitted: bool
    strategy: str
    waited_for: bool
    horizon_ms: Number | None
    num_bytes: int
    strategies: list[_Strategy]

    def __post_init__(self) -> None:
        if self.strategy not in [each.strategy for each in self.strategies]:
            raise ValueError(f"the strategy {self.strategy!r} is none of its strategies")


class _Difference(_Answer):
    field: str


class Environment(_Answer):
    workers: dict[str, dict[str, str]]
    differences: list[_Difference]
    server: dict[str, str] = msgspec.field(default_factory=dict)


class _Leaf(_Answer):
    path: str
    kind: str
    shape: list[int]
    num_bytes: int


class Leaves(_Answer):
    block: int
    num_bytes: int
    num_parts: int
    num_others: int
    others_bytes: int
    leaves: list[_Leaf]


def said(answer: AnswerT, shape: Any) -> AnswerT:
    """Return an answer that can be read as this. Raises NoServer where it says something else."""
    try:
        msgspec.convert(answer, shape)
    except (msgspec.ValidationError, UnicodeError) as error:
        raise NoServer("there", f", or one of another version: {error}") from error
    return answer


def said_done(answer: AnswerT, shape: Any) -> AnswerT:
    """The same of what was asked to be done. Raises Unanswered: it may have been."""
    try:
        return said(answer, shape)
    except NoServer as error:
        raise Unanswered(f"{error} {LOOK}") from error
