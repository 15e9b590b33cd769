"""HTTP and WebSockets over real sockets, the fleet behind them a fake."""

import asyncio
import io
import json
import re
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from tests.serve.fakes import RECEIPTS, SPEC, FakeFleet, FakeIds
from worldmove.engine.facts import fields_of
from worldmove.errors import UserError
from worldmove.fleet.reports import Outcome
from worldmove.serve.app import Parts, build_app
from worldmove.serve.desk import Desk
from worldmove.serve.frames import unpack
from worldmove.serve.gateway import Gateway
from worldmove.serve.gateway_config import GatewayConfig
from worldmove.serve.limits import HttpLimits, PlayLimits
from worldmove.serve.listen import answering, bound, url_of
from worldmove.serve.live_config import LiveConfig
from worldmove.serve.metrics import Metrics
from worldmove.serve.origin import OwnOnly
from worldmove.serve.page import PageFile
from worldmove.serve.player import CloseCode
from worldmove.serve.record_entries import BlockEntry
from worldmove.serve.record_file import RecordReader
from worldmove.serve.spool import MOST_FILES
from worldmove.serve.tempo import NO_KEY
from worldmove.serve.wording import engine_info
from worldmove.worker.messages import Saved

PAGE = {
    "index.html": PageFile(content=b"<p>page</p>", media_type="text/html"),
    "app.js": PageFile(content=b"1", media_type="text/javascript"),
}


@dataclass
class Site:
    url: str
    fleet: FakeFleet
    gateway: Gateway
    http: httpx.AsyncClient

    async def open(self, **fields: object) -> str:
        answer = await self.http.post("/api/sessions", json=fields)
        assert answer.status_code == 201
        return str(answer.json()["session"])

    @asynccontextmanager
    async def play(self, session: str, query: str = "", **options: Any) -> AsyncIterator[ClientConnection]:
        address = f"{self.url.replace('http', 'ws')}/api/sessions/{session}/play{query}"
        waits = {"close_timeout": 0.5} | options  # who has not read what came never hears the server's farewell
        async with connect(address, compression=None, proxy=None, **waits) as socket:
            yield socket


def on_site(
    work: Callable[[Site], Awaitable[None]], *, play: PlayLimits | None = None, http: HttpLimits | None = None
) -> None:
    """Tell a story of a whole server. What the system keeps for a client that does not read is little here."""

    async def run() -> None:
        fleet, metrics = FakeFleet(), Metrics()
        live = LiveConfig(spec=SPEC, server_life=5, receipts=RECEIPTS, rest_after_s=0.3, limits=play or PlayLimits())
        gateway = Gateway(fleet=fleet, config=GatewayConfig(live=live), metrics=metrics)
        fleet.attach(gateway)
        desk = Desk(gateway, engine=engine_info(SPEC, None), ids=FakeIds())
        app = OwnOnly(build_app(Parts(desk=desk, gateway=gateway, metrics=metrics, page=PAGE)), names=("world.test",))
        with bound("127.0.0.1", 0) as listening:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 16 << 10)
            async with (
                answering(app, listening, farewell=gateway.end, limits=http, on_refused=metrics.refused),
                httpx.AsyncClient(base_url=url_of(listening), trust_env=False) as client,
            ):
                await work(Site(url=url_of(listening), fleet=fleet, gateway=gateway, http=client))

    asyncio.run(run())


async def message(socket: ClientConnection, kind: str) -> dict[str, Any]:
    async with asyncio.timeout(5):
        while True:
            received = await socket.recv()
            if isinstance(received, str) and json.loads(received)["type"] == kind:
                return dict(json.loads(received))


async def closing(socket: ClientConnection) -> tuple[int, str]:
    """Read to the end; return the code and reason with which the server closed."""
    async with asyncio.timeout(5):
        with suppress(ConnectionClosed):
            while True:
                await socket.recv()
    return socket.close_code or 0, socket.close_reason or ""


def test_a_session_is_opened_played_moved_and_closed_over_http() -> None:
    async def work(site: Site) -> None:
        session = await site.open(seed=7)
        async with site.play(session) as socket:
            hello = await message(socket, "hello")
            assert (hello["session"], hello["controls"]) == (session, True)
            await socket.send(json.dumps({"type": "keys", "changes": [[1, "up", True]]}))
            assert (await message(socket, "keys"))["number"] == 1
            numbers: list[int] = []
            while len(numbers) < 8:
                received = await socket.recv()
                if isinstance(received, bytes):
                    numbers.append(unpack(received)[0].frame)
            assert numbers == list(range(numbers[0], numbers[0] + 8))
            moved = await site.http.post(f"/api/sessions/{session}/move", json={"to": "b"})
            assert moved.status_code == 200
            body = moved.json()
            assert (body["outcome"], body["from"], body["to"], body["epoch"]) == ("committed", "a", "b", 2)
            assert body["proof"] == "checked 4/4"
            assert body["gap_ms"] is not None
            listed = (await site.http.get("/api/sessions")).json()["sessions"]
            assert [(row["session"], row["worker"], row["num_watchers"]) for row in listed] == [(session, "b", 1)]
            assert (await site.http.delete(f"/api/sessions/{session}")).status_code == 204
            assert (await closing(socket))[0] == CloseCode.SESSION_ENDED
        assert (await site.http.get(f"/api/sessions/{session}")).status_code == 404

    on_site(work)


def test_a_refused_move_is_a_409_with_its_fields_and_an_aborted_one_a_200() -> None:
    async def work(site: Site) -> None:
        session = await site.open()
        site.fleet.outcome = Outcome.REFUSED
        refused = await site.http.post(f"/api/sessions/{session}/move", json={})
        assert refused.status_code == 409
        assert refused.json()["error"]["code"] == "refused"
        assert refused.json()["error"]["session_runs"] is True
        assert refused.json()["move"]["reason"] == "environment"
        site.fleet.gone = {"a"}
        dead = (await site.http.post(f"/api/sessions/{session}/move", json={"to": "b"})).json()
        assert dead["error"]["session_runs"] is False
        assert "goes on" not in dead["move"]["sentence"]
        assert dead["move"]["runs_at"] is None
        site.fleet.gone = set()
        broken = await site.http.post(f"/api/sessions/{session}/move", json={"damage": True})
        assert broken.status_code == 200
        assert (broken.json()["outcome"], broken.json()["tries"]) == ("aborted", 3)
        assert broken.json()["sentence"].startswith("Not moved, nothing changed.")
        moves = (await site.http.get("/api/moves")).json()["moves"]
        assert [move["outcome"] for move in moves] == ["refused", "refused", "aborted"]

    on_site(work)


def test_a_move_under_way_is_cancelled_and_nothing_that_rests_is() -> None:
    async def work(site: Site) -> None:
        session = await site.open()
        nothing = await site.http.post(f"/api/sessions/{session}/cancel")
        assert (nothing.status_code, nothing.json()["error"]["code"]) == (409, "not_moving")
        site.fleet.holds_moves = True
        moving = asyncio.create_task(site.http.post(f"/api/sessions/{session}/move", json={"to": "b"}))
        while site.fleet.held is None:  # noqa: ASYNC110
            await asyncio.sleep(0.005)
        cancelled = await site.http.post(f"/api/sessions/{session}/cancel")
        assert (cancelled.status_code, cancelled.json()["outcome"]) == (200, "aborted")
        assert (await moving).json()["attempt"] == cancelled.json()["attempt"]

    on_site(work)


MISTAKES: tuple[tuple[str, str, object, int, str], ...] = (
    ("GET", "/api/sessions/s-9", None, 404, "unknown_session"),
    ("DELETE", "/api/sessions/s-9", None, 404, "unknown_session"),
    ("POST", "/api/sessions/s-9/move", {"to": "b"}, 404, "unknown_session"),
    ("POST", "/api/sessions/s-9/cancel", {}, 404, "unknown_session"),
    ("POST", "/api/sessions/s-9/recover", {}, 404, "unknown_session"),
    ("POST", "/api/sessions", {"worker": "zzz"}, 404, "unknown_worker"),
    ("POST", "/api/sessions", {"seed": -1}, 422, "usage"),
    ("POST", "/api/sessions", {"sede": 1}, 422, "usage"),
    ("POST", "/api/sessions", {"seed": True}, 422, "usage"),
    ("POST", "/api/sessions", {"seed": "1"}, 422, "usage"),
    ("POST", "/api/sessions/s-1/move", {"damage": 1}, 422, "usage"),
    ("GET", "/api/nothing", None, 404, "not_found"),
    ("GET", "/viewer/%2e%2e/app.py", None, 404, "not_found"),
    ("GET", "/viewer/secret", None, 404, "not_found"),
    ("PUT", "/api/sessions", {}, 405, "http"),
)


def test_every_error_has_the_one_shape() -> None:
    async def work(site: Site) -> None:
        for method, path, body, status, code in MISTAKES:
            answer = await site.http.request(method, path, json=body)
            assert answer.status_code == status, path
            assert set(answer.json()["error"]) == {"code", "message", "fault", "session_runs", "retry_after_s"}
            assert answer.json()["error"]["code"] == code, path

    on_site(work)


def test_the_page_and_its_files_are_served_under_a_policy_that_keeps_them_to_themselves() -> None:
    async def work(site: Site) -> None:
        for path in ("/", "/play/s-1"):
            page = await site.http.get(path)
            assert page.content == b"<p>page</p>"
            assert page.headers["content-type"].startswith("text/html")
        answer = await site.http.get("/viewer/app.js")
        assert answer.headers["content-type"].startswith("text/javascript")
        assert answer.headers["x-content-type-options"] == "nosniff"
        policy = answer.headers["content-security-policy"]
        host = site.url.removeprefix("http://")
        assert policy.startswith("default-src 'none';")
        assert f"connect-src 'self' ws://{host} wss://{host};" in policy
        assert "unsafe" not in policy

    on_site(work)


CALLERS: tuple[tuple[dict[str, str], int], ...] = (
    ({}, 200),
    ({"host": "localhost:1234"}, 200),
    ({"host": "[::1]:8787"}, 200),
    ({"host": "world.test"}, 200),
    ({"host": "evil.example"}, 403),
    ({"host": "127.0.0.1.evil.example"}, 403),
    ({"host": "192.168.1.4"}, 403),
    ({"host": ""}, 403),
    ({"host": "localhost:1234; script-src *"}, 403),
    ({"host": "localhost; script-src *"}, 403),
    ({"host": "localhost:1234/x"}, 403),
    ({"host": "a@localhost"}, 403),
    ({"host": "localhost:99999"}, 403),
    ({"host": "LOCALHOST:1234"}, 200),
    ({"host": "localhost:1234", "origin": "http://localhost:1234"}, 200),
    ({"host": "localhost:1234", "origin": "http://localhost:4321"}, 403),
    ({"host": "localhost:1234", "origin": "http://evil.example"}, 403),
    ({"origin": "null"}, 403),
)


def test_a_request_under_another_name_or_from_another_page_is_refused() -> None:
    async def work(site: Site) -> None:
        for headers, status in CALLERS:
            assert (await site.http.get("/healthz", headers=headers)).status_code == status, headers

    on_site(work)


async def in_pieces(count: int) -> AsyncIterator[bytes]:
    for _ in range(count):
        yield b" " * 8192


def test_a_body_above_64_kib_is_refused_before_it_is_read_however_it_is_sent() -> None:
    async def work(site: Site) -> None:
        session = await site.open()
        path, kind = f"/api/sessions/{session}/move", {"content-type": "application/json"}
        for content in (b" " * 65_537, in_pieces(9)):
            answer = await site.http.post(path, content=content, headers=kind)
            assert (answer.status_code, answer.json()["error"]["code"]) == (413, "too_large")
            assert answer.headers["content-security-policy"]
        assert site.fleet.moves() == ()
        whole = b'{"to": "b"}'
        for content in (whole + b" " * (65_536 - len(whole)), after(whole, in_pieces(7))):
            answer = await site.http.post(path, content=content, headers=kind)
            assert answer.status_code in (200, 409)
        assert [move.outcome for move in site.fleet.moves()] == [Outcome.COMMITTED]

    on_site(work)


async def after(first: bytes, rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    async for piece in rest:
        yield piece


def test_another_site_cannot_open_the_socket() -> None:
    async def work(site: Site) -> None:
        session = await site.open()
        with pytest.raises(InvalidStatus) as refused:
            async with site.play(session, origin="http://evil.example"):
                pass
        assert refused.value.response.status_code == 403

    on_site(work)


def test_a_socket_for_no_session_is_closed_with_its_code() -> None:
    async def work(site: Site) -> None:
        async with site.play("s-9") as socket:
            code, reason = await closing(socket)
            assert code == CloseCode.NO_SESSION
            assert "s-9" in reason

    on_site(work)


def test_one_who_only_watches_does_not_take_the_controls() -> None:
    async def work(site: Site) -> None:
        session = await site.open()
        async with site.play(session) as first, site.play(session, "?watch=true") as second:
            assert (await message(second, "hello"))["controls"] is False
            await second.send(json.dumps({"type": "keys", "changes": [[1, "up", True]]}))
            assert (await message(second, "error"))["code"] == "watching_only"
            await first.send(json.dumps({"type": "keys", "changes": [[1, "up", True]]}))
            assert (await message(first, "keys"))["number"] == 1

    on_site(work)


def test_a_binary_message_closes_the_connection() -> None:
    async def work(site: Site) -> None:
        session = await site.open()
        async with site.play(session) as socket:
            await socket.send(b"\x00")
            assert (await closing(socket))[0] == CloseCode.BAD_MESSAGE

    on_site(work)


def test_a_connection_that_breaks_releases_its_keys() -> None:
    async def work(site: Site) -> None:
        session = await site.open()
        async with site.play(session) as socket:
            await socket.send(json.dumps({"type": "keys", "changes": [[1, "up", True]]}))
            await message(socket, "keys")
            socket.transport.abort()
        async with site.play(session) as socket:
            assert (await message(socket, "hello"))["next_number"] == 2
            while (await message(socket, "rest"))["why"] != NO_KEY:
                pass  # a key that were still down would keep the world going
        log = site.gateway.live(session).sequencer
        changes = [change for block in range(log.reaches) for change in log.closed(block)]
        assert [(change.number, change.down) for change in changes] == [(1, True), (1, False)]

    on_site(work)


def test_a_worker_without_a_process_has_no_pid_in_any_view_nor_in_the_schema() -> None:
    async def work(site: Site) -> None:
        site.fleet.gone.add("b")
        rows = (await site.http.get("/api/workers")).json()["workers"]
        assert {row["worker"]: row["pid"] for row in rows} == {"a": 100, "b": None}
        async with site.play(await site.open()) as socket:
            told = (await message(socket, "workers"))["workers"]
            assert {row["name"]: row["pid"] for row in told} == {"a": 100, "b": None}
        schema = (await site.http.get("/openapi.json")).json()["components"]["schemas"]["Worker"]["properties"]["pid"]
        assert {"type": "null"} in schema["anyOf"]

    on_site(work)


def test_environment_names_each_field_in_which_two_workers_differ() -> None:
    async def work(site: Site) -> None:
        body = (await site.http.get("/api/environment")).json()
        assert set(body["workers"]) == {"a", "b"}
        assert body["differences"] == [{"field": "worker_specific", "values": {"a": "0", "b": "1"}}]

    on_site(work)


@pytest.mark.parametrize("field", ["engine.keys", "engine.frames_per_s", "engine.name"])
def test_environment_says_where_all_workers_have_another_engine_than_the_server(field: str) -> None:
    async def work(site: Site) -> None:
        site.fleet.environment = {field: "other"}
        body = (await site.http.get("/api/environment")).json()
        assert body["server"] == fields_of(SPEC)
        found = {difference["field"]: difference["values"] for difference in body["differences"]}
        assert found[field] == {"a": "other", "b": "other", "server": fields_of(SPEC)[field]}

    on_site(work)


def test_health_metrics_and_the_schema_say_what_is_served() -> None:
    async def work(site: Site) -> None:
        health = (await site.http.get("/healthz")).json()
        assert (health["status"], health["server_life"], health["preset"]) == ("ok", 5, "counting")
        session = await site.open()
        async with site.play(session) as socket:
            while not isinstance(await socket.recv(), bytes):
                pass
        assert re.search(r"^worldmove_blocks_shown_total [1-9]", (await site.http.get("/metrics")).text, re.MULTILINE)
        schema = (await site.http.get("/openapi.json")).json()
        routes = {path for path in schema["paths"] if path.startswith("/api")}
        assert routes == {
            "/api/environment",
            "/api/failovers",
            "/api/moves",
            "/api/sessions",
            "/api/sessions/restore",
            "/api/sessions/{session}",
            "/api/sessions/{session}/cancel",
            "/api/sessions/{session}/leaves",
            "/api/sessions/{session}/move",
            "/api/sessions/{session}/plan",
            "/api/sessions/{session}/protect",
            "/api/sessions/{session}/record",
            "/api/sessions/{session}/recover",
            "/api/sessions/{session}/saved",
            "/api/workers",
        }
        assert "from" in schema["components"]["schemas"]["Move"]["properties"]

    on_site(work)


def test_a_record_is_streamed_from_the_first_block_and_ends_after_as_many_as_were_asked_for() -> None:
    async def work(site: Site) -> None:
        session = await site.open(seed=7)
        async with site.play(session) as socket:
            await message(socket, "hello")
            await socket.send(json.dumps({"type": "keys", "changes": [[1, "up", True]]}))
            data = (
                await site.http.get(f"/api/sessions/{session}/record", params={"blocks": 5, "follow": True})
            ).content
        reader = RecordReader(io.BytesIO(data), len(data))
        blocks = [entry.block for entry in reader if isinstance(entry, BlockEntry)]
        assert blocks == [0, 1, 2, 3, 4]
        assert (reader.header.seed, reader.header.environment["device"]) == (7, "cpu")
        assert reader.progress.why == "5 blocks were asked for"
        so_far = (await site.http.get(f"/api/sessions/{session}/record")).content
        assert so_far.startswith(data[: reader.progress.num_bytes - 60])
        assert (await site.http.get(f"/api/sessions/{session}/record", params={"blocks": 0})).status_code == 422

    on_site(work)


def test_leaves_are_listed_and_what_cannot_be_saved_says_why() -> None:
    async def work(site: Site) -> None:
        session = await site.open()
        leaves = (await site.http.get(f"/api/sessions/{session}/leaves")).json()
        assert leaves["leaves"][0] == {"path": "state", "kind": "bytes", "shape": [], "num_bytes": 32}
        assert [leaves[name] for name in ("num_bytes", "num_parts", "num_others", "others_bytes")] == [33, 2, 0, 0]
        saved = await site.http.get(f"/api/sessions/{session}/saved")
        assert (saved.status_code, saved.json()["error"]["code"]) == (409, "moving")
        assert (await site.http.get("/api/sessions/s-none/record")).status_code == 404

    on_site(work)


def test_saves_of_a_world_whose_engine_does_not_return_keep_no_place_from_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def never(_session: str, _path: str) -> Saved:
        raise await asyncio.get_running_loop().create_future()

    async def work(site: Site) -> None:
        session = await site.open()
        views = tuple(replace(view, is_stuck=True) for view in site.fleet.workers())
        monkeypatch.setattr(site.fleet, "save", never)
        monkeypatch.setattr(site.fleet, "workers", lambda: views)
        async with asyncio.timeout(10):
            asked = (site.http.get(f"/api/sessions/{session}/saved") for _ in range(MOST_FILES))
            answers = [*await asyncio.gather(*asked), await site.http.get(f"/api/sessions/{session}/saved")]
        said = [(answer.status_code, answer.json()["error"]["code"]) for answer in answers]
        assert said == [(503, "silent")] * (MOST_FILES + 1)

    on_site(work)


@pytest.mark.parametrize("written", [None, b"", b"xx", b"xxxx"])
def test_a_worker_that_has_not_saved_what_it_says_is_blamed(written: bytes | None) -> None:
    async def work(site: Site) -> None:
        session = await site.open()

        async def save(session: str, path: str) -> Saved:
            if written is not None:
                Path(path).write_bytes(written)
            about = {"session": session, "request": 1, "epoch": 1, "block": 0, "state_digest": "d", "remainders": b""}
            return Saved(manifest_sha256=bytes(32), manifest_bytes=2, num_bytes=1, **about)  # type: ignore[arg-type]

        site.fleet.save = save  # type: ignore[method-assign]
        saved = await site.http.get(f"/api/sessions/{session}/saved")
        assert (saved.status_code, saved.json()["error"]["code"]) == (502, "bad_answer")
        assert saved.json()["error"]["message"].startswith("a has answered what is no answer: ")

    on_site(work)


def test_what_is_no_saved_session_is_not_opened_and_nothing_of_it_stays() -> None:
    async def work(site: Site) -> None:
        async def restore(data: bytes, **headers: str) -> tuple[int, str]:
            answer = await site.http.post("/api/sessions/restore", content=data, headers=headers)
            return answer.status_code, answer.json()["error"]["code"]

        async def pieces() -> AsyncIterator[bytes]:
            yield b"no length is said"

        assert await restore(b"no saved session") == (422, "bad_file")
        assert await restore(b"") == (422, "bad_file")
        chunked = await site.http.post("/api/sessions/restore", content=pieces())
        assert (chunked.status_code, chunked.json()["error"]["code"]) == (411, "usage")
        host = site.url.removeprefix("http://")
        reader, writer = await asyncio.open_connection(*host.split(":"))
        request = ("POST /api/sessions/restore HTTP/1.1", f"Host: {host}", f"Content-Length: {1 << 40}", "", "")
        writer.write("\r\n".join(request).encode())
        assert (await reader.readline()).startswith(b"HTTP/1.1 413")
        writer.close()
        assert (await restore(b"x", origin="http://elsewhere.test"))[0] == 403
        assert site.gateway.lives == {}

    on_site(work)


def test_a_taken_port_is_said_in_one_sentence_and_an_unknown_host_in_another() -> None:
    with bound("127.0.0.1", 0) as listening:
        port = listening.getsockname()[1]
        with pytest.raises(UserError, match=f"Port {port} .* choose another with --port"), bound("127.0.0.1", port):
            pass
    with pytest.raises(UserError, match="There is no host"), bound("no such host", 0):
        pass


def test_the_end_of_the_server_closes_every_connection_with_its_code() -> None:
    async def work(site: Site) -> None:
        session = await site.open()
        async with site.play(session) as socket:
            await message(socket, "hello")
            await site.gateway.end()
            assert (await closing(socket))[0] == CloseCode.SERVER_ENDS

    on_site(work)
