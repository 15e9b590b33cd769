"""What the benches of moves share: options, the server that they measure, and how they tell what they found."""

from collections.abc import Mapping
from typing import Annotated, Any, Protocol

import typer

from worldmove.cli.exits import ExitCode
from worldmove.cli.options import engine_named
from worldmove.cli.output import Output
from worldmove.cli.start import Start
from worldmove.fleet.gpus import gpus_named

Profile = Annotated[
    bool, typer.Option("--profile", help="Look into the workers' threads, too: JSON tells where. It slows them down.")
]
Check = Annotated[bool, typer.Option("--check", help="End with 3 where a figure misses its goal.")]


class Found(Protocol):
    """What a bench brings."""

    def rows(self) -> list[tuple[object, ...]]: ...

    def sentence(self) -> str: ...

    def misses(self) -> list[str]:
        """Return which figures miss their goals."""
        ...


def two_workers(preset: str, *, threads: int, gpus: str, slots: int = 3, checks: int = 2, accounts: int = 16) -> Start:
    """Return the server that is measured: on this host alone, at any port.

    ``checks``, ``accounts``: as ``Start`` has ``check_blocks`` and ``account_every``.
    """
    return Start(
        host="127.0.0.1",
        port=0,
        workers=2,
        engine=engine_named(preset),
        threads=threads,
        slots=slots,
        keep_s=600.0,
        gpus=gpus_named(gpus),
        check_blocks=checks,
        account_every=accounts,
    )


def told(output: Output, kind: str, found: Found, fields: Mapping[str, Any], high: str, *, check: bool) -> ExitCode:
    """Tell what was found, with the last but one of its columns named; return the command's exit status."""
    output.document(kind, fields)
    output.table(("", "MEDIAN", high, "MAX"), found.rows(), nothing="Nothing was measured.")
    output.note(found.sentence())
    return ExitCode.REFUSED if check and found.misses() else ExitCode.DONE
