"""Where a client's connections begin. Who serves them at the server's end is looked after until the client's end."""

import asyncio
from contextvars import Context
from typing import Any

from tests.simulation.loop import SimLoop
from tests.simulation.server import Server
from tests.simulation.sockets import SimSocket
from tests.simulation.trace import Trace
from tests.simulation.weather import Weather
from worldmove.serve.play_socket import play

LOOK_S = 0.05


class Door:
    """One client's way to one session."""

    def __init__(
        self,
        session: str,
        client_name: str,
        *,
        server: Server,
        loop: SimLoop,
        weather: Weather,
        trace: Trace,
        client: Context,
    ) -> None:
        self._session = session
        self._client_name = client_name
        self._server = server
        self._loop = loop
        self._weather = weather
        self._trace = trace
        self._client = client
        self._serving: list[asyncio.Task[Any]] = []
        server.on_death.append(self._serving.clear)

    def enter(self, *, controls: bool, received: str | None) -> SimSocket | None:
        """Open a connection. None where there is no server."""
        house = self._server.house
        if house is None:
            return None
        dice = self._weather.dice(f"socket of a {self._client_name}" if self._client_name != "tab" else "socket")
        socket = SimSocket(self._loop, self._weather, dice, client=self._client, server=house.context)
        serving = play(
            socket,  # type: ignore[arg-type]
            house.desk,
            self._session,
            controls=controls,
            received=received,
            on_closed=lambda code: None,
        )
        task = self._loop.run_in(house.context, serving, f"serve {self._session}")
        task.add_done_callback(self._served)
        self._serving[:] = [task for task in self._serving if not task.done()]
        self._serving.append(task)
        return socket

    async def closed(self) -> None:
        """Return once nobody is served any more: who served may also have died with its server."""
        while served := [task for task in self._serving if not task.done()]:
            await asyncio.wait(served, timeout=LOOK_S)

    def _served(self, task: "asyncio.Task[Any]") -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._trace.fail(f"serving {self._session} failed: {error!r}")
