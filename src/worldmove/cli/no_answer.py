"""What a client raises where it has no answer to go by: nothing was asked, or nobody knows what came of it."""

from collections.abc import Mapping
from typing import Any

from worldmove.errors import Fault, UserError

LOOK = (
    "What was asked for may have been done, or still go on there: `worldmove sessions` and `worldmove moves` say how "
    "things are."
)
"""Of a request that changes something, and of which all has left."""


class NoAnswer(UserError):
    """The root."""

    fault = Fault.REMOTE


class Unreachable(NoAnswer):
    """The server does not answer, and was asked for nothing, or for nothing that changes anything."""

    def __init__(self, server: str, why: str) -> None:
        super().__init__(
            f"The server at {server} does not answer ({why}). Start one with `worldmove serve`, or name it with "
            "--server or WORLDMOVE_SERVER.",
            code="unreachable",
            status=503,
        )


class NoServer(NoAnswer):
    """What answers is something else. ``why``: how that is seen."""

    def __init__(self, where: str, why: str = "") -> None:
        what = f"What answers {where} is no WorldMove server{why}."
        super().__init__(what, code="unreachable", status=502)


class Unanswered(NoAnswer):
    """The server has been asked, and what came of it is not known."""

    def __init__(self, sentence: str) -> None:
        super().__init__(sentence, code="unanswered", status=504)


def late(server: str, within_s: float) -> Unanswered:
    """Return the error of an answer that has not begun, or not gone on, in time."""
    return Unanswered(
        f"The server at {server} has not answered within {within_s:.0f} s. It may still be at it: "
        "`worldmove sessions` says how things are."
    )


def broken(server: str, why: str) -> Unanswered:
    """Return the error of an answer that broke off, to a request that changes something."""
    return Unanswered(f"The answer of the server at {server} did not come whole ({why}). {LOOK}")


class ServerError(UserError):
    """What the server answered instead of doing it. ``body`` is its whole answer."""

    fault = Fault.REMOTE

    def __init__(self, status: int, body: Mapping[str, Any]) -> None:
        said = body.get("error")
        fields = said if isinstance(said, dict) else {}
        message = str(fields.get("message", f"The server answered with status {status}."))
        super().__init__(message, code=str(fields.get("code", "internal")), status=status)
        self.session_runs = fields.get("session_runs")
        self.retry_after_s = fields.get("retry_after_s")
        self.body = body
