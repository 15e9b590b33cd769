"""``doctor --server``: what it says of a server's workers, among each other and beside the server itself."""

import pytest

from tests.cli.command import worldmove
from tests.serve.fakes import SPEC
from tests.views import worker_view
from worldmove.cli.client import Client
from worldmove.cli.exits import ExitCode
from worldmove.engine.facts import fields_of
from worldmove.serve.answers import environment_body

FIELDS = {**fields_of(SPEC), "canary.frames": "c0", "torch": "2"}


def told(monkeypatch: pytest.MonkeyPatch, *environments: dict[str, str]) -> tuple[int, str, str]:
    """Ask a server of such workers; return status, what was printed and what was noted."""
    workers = [worker_view(f"w{number}", environment=environment) for number, environment in enumerate(environments)]
    answer = environment_body(fields_of(SPEC), workers).model_dump()
    monkeypatch.setattr(Client, "_object_of", lambda self, *_: answer)
    ran = worldmove("doctor", "--server", "http://x")
    return ran.status, ran.out, ran.err


def test_workers_that_are_all_as_the_server_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    status, out, err = told(monkeypatch, FIELDS, FIELDS)
    assert status == ExitCode.DONE
    assert "differs" not in out
    assert f"ok   workers have the server's engine: {len(fields_of(SPEC))} fields equal" in err


@pytest.mark.parametrize("field", fields_of(SPEC))
def test_workers_alike_whose_engine_is_not_the_servers_fail_and_the_field_is_named(
    monkeypatch: pytest.MonkeyPatch, field: str
) -> None:
    other = {**FIELDS, field: "other"}
    status, out, err = told(monkeypatch, other, other)
    assert status == ExitCode.REFUSED
    assert f"{field} differs" in " ".join(out.split())
    assert "ok   workers compute alike: 2 workers" in err
    assert f"FAIL workers have the server's engine: {field} is {fields_of(SPEC)[field]} at the server" in " ".join(
        err.split("\n")
    )


def test_workers_that_say_nothing_of_their_engine_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    status, _, err = told(monkeypatch, {"canary.frames": "c0"})
    assert status == ExitCode.REFUSED
    assert "engine.keys is " in err


def test_workers_that_differ_beside_their_engine_fail_by_that_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    status, _, err = told(monkeypatch, FIELDS, {**FIELDS, "torch": "3"})
    assert status == ExitCode.REFUSED
    assert "FAIL workers compute alike: 1 of the fields differ" in err
    assert "ok   workers have the server's engine" in err
