"""``open``, ``protect``, ``move``, ``cancel``, ``close``: what is done to a session."""

from pathlib import Path
from typing import Annotated, Any

import typer

from worldmove.cli.answers import Begun, Move, said_done
from worldmove.cli.client import Client
from worldmove.cli.context import output_of
from worldmove.cli.exits import BY_OUTCOME, ExitCode, epilog
from worldmove.cli.files import open_file
from worldmove.cli.no_answer import ServerError
from worldmove.cli.options import DEFAULT_SERVER, Json, Link, Server, Session, Strategy
from worldmove.cli.output import Output
from worldmove.errors import UserError
from worldmove.limits import MAX_COUNT, MAX_EVERY

HELP = epilog(ExitCode.DONE, ExitCode.USAGE, ExitCode.REFUSED, ExitCode.UNREACHABLE)
HELP_OF_MOVE = epilog(
    ExitCode.DONE,
    ExitCode.USAGE,
    ExitCode.REFUSED,
    ExitCode.ABORTED,
    ExitCode.IN_DOUBT,
    ExitCode.LOST,
    ExitCode.UNREACHABLE,
)

HELP_OF_CANCEL = epilog(
    ExitCode.DONE, ExitCode.USAGE, ExitCode.REFUSED, ExitCode.IN_DOUBT, ExitCode.LOST, ExitCode.UNREACHABLE
)
BY_CANCELLED = {
    **BY_OUTCOME,
    "refused": ExitCode.DONE,
    "aborted": ExitCode.DONE,
    "committed": ExitCode.REFUSED,
}
"""A move that was given up is what a cancel is for; one that had committed was not given up."""


def add(app: typer.Typer) -> None:
    """Add these commands."""
    app.command("open", epilog=HELP)(open_session)
    app.command(epilog=HELP)(protect)
    app.command(epilog=HELP_OF_MOVE)(move)
    app.command(epilog=HELP_OF_CANCEL)(cancel)
    app.command(epilog=HELP)(close)


def open_session(
    context: typer.Context,
    *,
    seed: Annotated[
        int | None, typer.Option("--seed", min=0, max=MAX_COUNT - 1, help="Equal seeds begin equal worlds.")
    ] = None,
    worker: Annotated[str | None, typer.Option("--worker", help="Where; left out: the one with most room.")] = None,
    saved: Annotated[
        Path | None, typer.Option("--from", metavar="FILE", help="Go on from what `worldmove save` wrote.")
    ] = None,
    protect: Annotated[
        int | None,
        typer.Option(
            "--protect", metavar="N", min=0, max=MAX_EVERY, help="Keep a snapshot in another worker; 0: none."
        ),
    ] = None,
    server: Server = DEFAULT_SERVER,
    as_json: Json = False,
) -> None:
    """Begin a world, or go on with a saved one, and print its name.

    \b
    worldmove open
    worldmove open --seed 7 --worker worker-2
    worldmove open --from world.saved
    """
    output = output_of(context, as_json=as_json)
    client = Client(server, on_interrupt=output.did)
    if saved is None:
        answer = client.post("sessions", body={"seed": seed, "worker": worker, "protect": protect})
    elif seed is None:
        with open_file(saved) as (file, size):
            answer = client.upload("sessions", "restore", query={"worker": worker}, file=file, num_bytes=size)
    else:
        raise UserError("A saved world has its seed; leave --seed or --from out.")
    said_done(answer, Begun)
    output.did(f"{answer['session']} was opened.")
    if saved is not None and protect is not None:
        answer = client.post("sessions", answer["session"], "protect", body={"every": protect})
        said_done(answer, Begun)
    output.document("session", answer)
    output.text(answer["session"])
    output.note(f"Play it at {client.server}/play/{answer['session']}")


def protect(
    context: typer.Context,
    session: Session,
    *,
    every: Annotated[int, typer.Option("--every", metavar="N", min=0, max=MAX_EVERY, help="In blocks; 0: no more.")],
    server: Server = DEFAULT_SERVER,
    as_json: Json = False,
) -> None:
    """Keep a snapshot of a world in another worker.

    Where its own is killed, the world goes on from it exactly.

    \b
    worldmove protect s-k3m9qa --every 8
    worldmove protect s-k3m9qa --every 0 --json
    """
    output = output_of(context, as_json=as_json)
    client = Client(server, on_interrupt=output.did)
    answer = said_done(client.post("sessions", session, "protect", body={"every": every}), Begun)
    how = f"{session}: a snapshot every {every} blocks" if every else f"{session}: no snapshot any more"
    output.did(f"{how}.")
    output.document("session", answer)
    output.text(how)
    if every and (why := answer.get("unprotected_why")):
        output.note(f"Not protected yet ({why})")


def move(
    context: typer.Context,
    session: Session,
    *,
    to: Annotated[str | None, typer.Option("--to", metavar="WORKER", help="Left out: the roomiest other.")] = None,
    strategy: Strategy = None,
    link: Link = None,
    damage: Annotated[bool, typer.Option("--damage", help="Break it: damage the bytes of every try.")] = False,
    server: Server = DEFAULT_SERVER,
    as_json: Json = False,
) -> int:
    """Move a live world and wait for how that ends.

    \b
    worldmove move s-k3m9qa
    worldmove move s-k3m9qa --to worker-2 --strategy replay
    worldmove move s-k3m9qa --to worker-2 --json
    """
    output = output_of(context, as_json=as_json)
    wish = {"to": to, "damage": damage, "strategy": strategy, "link": link}
    try:
        answer = Client(server, on_interrupt=output.did).post("sessions", session, "move", body=wish)
    except ServerError as error:
        if "move" not in error.body:
            raise
        answer = error.body["move"]
    tell(output, answer)
    return BY_OUTCOME[answer["outcome"]]


def cancel(context: typer.Context, session: Session, *, server: Server = DEFAULT_SERVER, as_json: Json = False) -> int:
    """Give a world's move up, if that is still possible.

    \b
    worldmove cancel s-k3m9qa
    worldmove cancel s-k3m9qa --json
    """
    output = output_of(context, as_json=as_json)
    answer = Client(server, on_interrupt=output.did).post("sessions", session, "cancel", body={})
    tell(output, answer)
    return BY_CANCELLED[answer["outcome"]]


def close(context: typer.Context, session: Session, *, server: Server = DEFAULT_SERVER, as_json: Json = False) -> None:
    """End a world.

    \b
    worldmove close s-k3m9qa
    worldmove close s-k3m9qa --json
    """
    output = output_of(context, as_json=as_json)
    Client(server, on_interrupt=output.did).delete("sessions", session)
    output.did(f"{session} closed.")
    output.document("closed", {"session": session})
    output.text(f"{session} closed")


def tell(output: Output, answer: dict[str, Any]) -> None:
    """Write how a move ended: the line of data where it was done, the sentence where it was not."""
    said_done(answer, Move)
    line = _line(answer)
    output.did(f"{line}.")
    output.document("move", answer)
    output.text(line)
    if answer["outcome"] != "committed":
        output.note(answer["sentence"])
    elif answer.get("plain"):
        output.note(f"All of it was pulled at the boundary: {answer['plain']}")


def _line(answer: dict[str, Any]) -> str:
    """Say how a move ended in one line."""
    if answer["outcome"] != "committed":
        return f"{answer['session']} not moved: {answer['outcome']} ({answer['reason']})"
    gap = "nothing was due" if answer["gap_ms"] is None else f"gap {answer['gap_ms']:.1f} ms"
    pause = "-" if answer["pause_ms"] is None else f"{answer['pause_ms']:.1f} ms"
    size = f"{(answer['num_bytes'] or 0) / 1e6:.1f} MB in {answer['took_ms'] / 1000:.2f} s{_shares(answer)}"
    proof = str(answer["proof"])
    parts = f"{proof.removeprefix('checked ')} parts identical" if proof.startswith("checked ") else f"parts {proof}"
    by = _expectation(answer)
    return f"{answer['session']} moved to {answer['to']}: pause {pause}{by}, {gap}, {parts} ({size})"


def _shares(answer: dict[str, Any]) -> str:
    """Say how much of it was there at the boundary, where some was."""
    there = {name: answer.get(f"{name}_bytes") or 0 for name in ("in_place", "moved", "pulled")}
    if not there["in_place"] + there["moved"]:
        return ""
    return "".join(f", {num_bytes / 1e6:.1f} MB {name.replace('_', ' ')}" for name, num_bytes in there.items())


def _expectation(answer: dict[str, Any]) -> str:
    """Say by which strategy it was moved, and what was expected of it."""
    expected = answer["expected"]
    return "" if expected is None else f" ({expected['strategy']}, expected {expected['pause_ms']:.1f} ms)"
