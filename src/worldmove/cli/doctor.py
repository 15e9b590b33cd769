"""``doctor``: what decides whether two workers compute the same bytes, and whether this machine can serve."""

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from worldmove.cli.answers import Environment, said
from worldmove.cli.client import Client
from worldmove.cli.context import output_of
from worldmove.cli.exits import ExitCode, epilog
from worldmove.cli.options import DEFAULT_ENGINE, Engine, Json, Threads
from worldmove.cli.output import Output

HELP = epilog(ExitCode.DONE, ExitCode.USAGE, ExitCode.REFUSED, ExitCode.UNREACHABLE, refused="a check failed")
Workers = Mapping[str, dict[str, str]]
"""Each one's environment."""
ServerOrNone = Annotated[
    str | None,
    typer.Option("--server", metavar="URL", envvar="WORLDMOVE_SERVER", help="Ask a server's workers instead."),
]


def add(app: typer.Typer) -> None:
    """Add this command."""
    app.command(epilog=HELP)(doctor)


def doctor(
    context: typer.Context,
    *,
    server: ServerOrNone = None,
    engine: Engine = DEFAULT_ENGINE,
    threads: Threads = 1,
    as_json: Json = False,
) -> int:
    """Show the environment and its differences.

    \b
    worldmove doctor
    worldmove doctor --server http://127.0.0.1:8787
    """
    output = output_of(context, as_json=as_json)
    if server is not None:
        return _of_server(said(Client(server).get("environment"), Environment), output)
    # torch takes seconds to import: only the commands that compute pay for it.
    from worldmove.cli.local_checks import examine  # noqa: PLC0415

    found = examine(engine, threads)
    output.document("doctor", {"environment": found.environment, "checks": found.checks})
    output.table(("FIELD", "VALUE"), sorted(found.environment.items()), nothing="Nothing is known.")
    return _told(found.checks, output)


def _of_server(answer: dict[str, Any], output: Output) -> int:
    server, workers = answer.get("server", {}), answer["workers"]
    checks = [_alike(workers), _served(server, workers), _canaries(workers)]
    output.document("doctor", {**answer, "checks": checks})
    fields = sorted({name for environment in workers.values() for name in environment})
    different = [difference["field"] for difference in answer["differences"]]
    rows = [
        (
            name,
            "differs" if name in different else "equal",
            *(environment.get(name) for environment in workers.values()),
        )
        for name in fields
    ]
    output.table(("FIELD", "", *workers), rows, nothing="No worker has said hello.")
    return _told(checks, output)


def _alike(workers: Workers) -> dict[str, Any]:
    """Compare the workers with each other."""
    fields = sorted({name for environment in workers.values() for name in environment})
    different = [name for name in fields if len({environment.get(name) for environment in workers.values()}) > 1]
    return {
        "name": "workers compute alike",
        "ok": not different,
        "detail": f"{len(different)} of the fields differ" if different else f"{len(workers)} workers",
    }


def _served(server: Mapping[str, str], workers: Workers) -> dict[str, Any]:
    """Compare the workers' engine with the server's: it shows their worlds as its own would be."""
    others = [
        f"{name} is {value} at the server and {environment.get(name, 'not set')} at {worker}"
        for name, value in server.items()
        for worker, environment in workers.items()
        if environment.get(name) != value
    ]
    return {
        "name": "workers have the server's engine",
        "ok": not others,
        "detail": "; ".join(others) or f"{len(server)} fields equal",
    }


def _canaries(workers: dict[str, dict[str, str]]) -> dict[str, Any]:
    """Compare the one fixed block that every worker stepped before its hello."""
    canaries = {
        name: tuple(sorted((field, value) for field, value in fields.items() if "canary" in field))
        for name, fields in workers.items()
    }
    known, first = all(canaries.values()), next(iter(canaries.values()), ())
    different = [name for name, canary in canaries.items() if canary != first]
    detail = f"{', '.join(different)} stepped it differently" if different else f"{len(canaries)} workers"
    return {
        "name": "the canary is the same everywhere",
        "ok": known and not different,
        "detail": detail if known else "a worker has not said how it stepped it",
    }


def _told(checks: list[dict[str, Any]], output: Output) -> int:
    for check in checks:
        output.note(f"{'ok  ' if check['ok'] else 'FAIL'} {check['name']}: {check['detail']}")
    return ExitCode.DONE if all(check["ok"] for check in checks) else ExitCode.REFUSED
