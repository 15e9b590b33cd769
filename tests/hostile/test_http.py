"""Requests made out of /openapi.json, right ones and wrong ones: each answer is one that the schema announces."""

import asyncio
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.serve.fakes import RECEIPTS, SPEC, FakeFleet, FakeIds
from worldmove.serve.app import Parts, build_app
from worldmove.serve.desk import Desk
from worldmove.serve.gateway import Gateway
from worldmove.serve.gateway_config import GatewayConfig
from worldmove.serve.live_config import LiveConfig
from worldmove.serve.metrics import Metrics
from worldmove.serve.origin import OwnOnly
from worldmove.serve.wording import engine_info

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
BASE = "http://localhost"


class Site:
    """A server without sockets, in a loop of its own."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.loop.run_until_complete(self._build())
        schema = schemathesis.openapi.from_dict(self.ask("GET", "/openapi.json").json())
        schema.config.update(base_url=BASE)
        operations = [found.ok() for found in schema.get_all_operations() if isinstance(found, Ok)]
        self.operations = {f"{one.method.upper()} {one.path}": one for one in operations}

    async def _build(self) -> None:
        fleet, metrics = FakeFleet(), Metrics()
        self.gateway = Gateway(
            fleet=fleet,
            config=GatewayConfig(live=LiveConfig(spec=SPEC, server_life=5, receipts=RECEIPTS)),
            metrics=metrics,
        )
        fleet.attach(self.gateway)
        fleet.num_places = 4
        desk = Desk(self.gateway, engine=engine_info(SPEC, None), ids=FakeIds())
        app = OwnOnly(build_app(Parts(desk=desk, gateway=self.gateway, metrics=metrics, page={})))
        transport = httpx.ASGITransport(app=app, raise_app_exceptions=True)
        self.http = httpx.AsyncClient(transport=transport, base_url=BASE)

    def ask(self, method: str, url: str, **fields: Any) -> httpx.Response:
        async def asking() -> httpx.Response:
            async with asyncio.timeout(10):
                return await self.http.request(method, url, **fields)

        return self.loop.run_until_complete(asking())

    def session(self) -> str:
        """A session that is open."""
        if not self.gateway.lives:
            assert self.ask("POST", "/api/sessions").status_code == 201
        return next(iter(self.gateway.lives))

    def close(self) -> None:
        self.loop.run_until_complete(self.gateway.end())
        self.loop.run_until_complete(self.http.aclose())
        self.loop.close()


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    made = Site()
    yield made
    made.close()


OPERATIONS = (
    "GET /api/sessions",
    "POST /api/sessions",
    "GET /api/sessions/{session}",
    "DELETE /api/sessions/{session}",
    "POST /api/sessions/{session}/move",
    "GET /api/sessions/{session}/plan",
    "POST /api/sessions/{session}/protect",
    "POST /api/sessions/{session}/cancel",
    "POST /api/sessions/{session}/recover",
    "GET /api/workers",
    "GET /api/moves",
    "GET /api/failovers",
    "GET /api/environment",
    "GET /healthz",
    "GET /metrics",
)


BY_WORKERS = (
    "GET /api/sessions/{session}/leaves",
    "GET /api/sessions/{session}/record",
    "GET /api/sessions/{session}/saved",
    "POST /api/sessions/restore",
)
"""Answered by a worker, which the fake has none of: they are tested with real ones."""


def test_every_operation_of_the_schema_is_asked_below(site: Site) -> None:
    assert sorted(site.operations) == sorted((*OPERATIONS, *BY_WORKERS))


@pytest.mark.parametrize("name", OPERATIONS)
@settings(
    max_examples=15,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
@given(data=st.data())
def test_an_answer_is_one_that_the_schema_announces(site: Site, name: str, data: st.DataObject) -> None:
    mode = data.draw(st.sampled_from([GenerationMode.POSITIVE, GenerationMode.NEGATIVE]))
    operation = site.operations[name]
    try:
        strategy = operation.as_strategy(generation_mode=mode)
        case = data.draw(strategy)
    except schemathesis.errors.SchemathesisError:
        return  # nothing of this operation can be wrong
    if "session" in (case.path_parameters or {}) and data.draw(st.booleans()):
        case.path_parameters["session"] = site.session()
    asked = case.as_transport_kwargs()
    asked.pop("cookies", None)
    asked["content"] = asked.pop("data", None)
    answer = site.ask(asked.pop("method"), asked.pop("url"), **asked)
    case.validate_response(answer, checks=CHECKS)
    if answer.status_code >= 400:
        error = answer.json()["error"]
        assert error["code"]
        assert error["message"].endswith((".", "?", "!"))
