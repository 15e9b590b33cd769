"""``plan``: what a move would take, term by term, without making one."""

from typing import Annotated

import typer

from worldmove.cli.answers import Plan, said
from worldmove.cli.client import Client
from worldmove.cli.context import output_of
from worldmove.cli.exits import ExitCode, epilog
from worldmove.cli.options import DEFAULT_SERVER, Json, Link, Server, Session, Strategy
from worldmove.cli.plan_sheet import sheet

HELP = epilog(ExitCode.DONE, ExitCode.USAGE, ExitCode.REFUSED, ExitCode.UNREACHABLE)


def add(app: typer.Typer) -> None:
    """Add this command."""
    app.command(epilog=HELP)(plan)


def plan(
    context: typer.Context,
    session: Session,
    *,
    to: Annotated[str | None, typer.Option("--to", metavar="WORKER", help="Left out: the roomiest other.")] = None,
    strategy: Strategy = None,
    link: Link = None,
    server: Server = DEFAULT_SERVER,
    as_json: Json = False,
) -> int:
    """Say what a move would take by each strategy; move nothing.

    It shows each one's terms, the choice, and what would admit a rejected one.
    Ends with 3 where no move would be admitted.

    \b
    worldmove plan s-k3m9qa --to worker-2
    worldmove plan s-k3m9qa --link 100mbit --json
    """
    output = output_of(context, as_json=as_json)
    query = {"to": to, "strategy": strategy, "link": link}
    answer = said(Client(server).get("sessions", session, "plan", query=query), Plan)
    output.document("plan", answer)
    output.rich(sheet(answer))
    return ExitCode.DONE if answer["admitted"] else ExitCode.REFUSED
