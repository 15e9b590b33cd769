"""The hosts of a run: they start workers' processes, and end them (a ``fleet.ports.Hosts``)."""

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec

from tests.simulation.net import SimLink, Wire
from tests.simulation.node import Node
from tests.simulation.path import Fabric
from tests.simulation.watch import Watch
from worldmove.errors import UserError
from worldmove.worker.config import WorkerConfig
from worldmove.worker.messages import ToServer

START_S = 30.0
STOP_S = 5.0


class SimHosts:
    """One machine. It outlives a server: its processes do not end with the one that started them."""

    def __init__(
        self,
        config: WorkerConfig,
        *,
        wire: Wire,
        fabric: Fabric,
        watch: Watch,
        decodes: bool = False,
        forgets: str = "",
    ) -> None:
        self.folder = ""
        """Where saved worlds may be written."""
        self.is_ledger_put_back = False
        """Whether a course has put an older ledger back: otherwise none is behind."""
        self._server = ""
        """Who starts processes now, and hears of their ends."""
        self._listens = False
        self.nodes: dict[str, Node] = {}
        """By worker: its newest process."""
        self.all: list[Node] = []
        self._config = config
        self._wire = wire
        self._fabric = fabric
        self._watch = watch
        watch.kept = self.kept
        self._decodes = decodes
        self._forgets = forgets

    def begin(self, server: str) -> None:
        """A server begins. Nobody reaches it before it listens."""
        self._server = server

    def server_died(self) -> None:
        """Every link ends with it."""
        self._listens = False
        for node in self.nodes.values():
            node.cut(0.0)

    def kept(self, session: str) -> dict[int, None]:
        """Return the blocks of a session that are kept by processes which have reported to the present server."""
        nodes = [node for node in self.nodes.values() if node.has_power and node.reported_to == self._server]
        return {block: None for node in nodes for block in node.kept(session)}

    def _serving(self) -> str | None:
        return self._server if self._listens else None

    def lists_with_power(self, session: str) -> frozenset[int]:
        """Return the blocks of a session whose lists some process with power holds."""
        held = [node.lists_of(session) for node in self.all if node.has_power]
        return frozenset().union(*held)

    def next_block_of(self, session: str, node: str) -> int:
        """Return the next block of a node's copy of a session."""
        (copy,) = [copy for process in self.all if process.node == node for copy in process.copies_of(session)]
        return copy.next_block

    def kept_block_of(self, session: str, node: str) -> int | None:
        """Return the boundary of the snapshot that a node keeps of a session, if it keeps one."""
        (process,) = [process for process in self.all if process.node == node]
        return process.kept_block(session)

    async def start(
        self,
        worker: str,
        incarnation: int,
        on_message: Callable[[ToServer], None],
        on_gone: Callable[[int | None], None],
    ) -> tuple[Node, SimLink]:
        """Start a process and return once it said hello. Raises UserError if it ends or stays silent before that."""
        self._listens = True
        node = Node(
            msgspec.structs.replace(self._config, worker=worker, incarnation=incarnation),
            wire=self._wire,
            fabric=self._fabric,
            watch=self._watch,
            decodes=self._decodes,
            forgets=self._forgets,
            on_message=on_message,
            on_gone=on_gone,
            server=self._server,
            serving=self._serving,
        )
        self.nodes[worker] = node
        self.all.append(node)
        ends: list[asyncio.Future[Any]] = [node.ready, node.status]
        try:
            async with asyncio.timeout(START_S):
                await _first_of(ends)
        except TimeoutError:
            node.kill()
        if not node.ready.done():
            raise UserError(f"{worker} did not start", code="worker_start", status=503)
        return node, node.link

    def adopt(
        self,
        worker: str,
        incarnation: int,
        pid: int,
        birth: str,
        on_message: Callable[[ToServer], None],
        on_gone: Callable[[int | None], None],
    ) -> tuple[Node, SimLink] | None:
        """Take over a process that an earlier server started; None if it is dead."""
        node = self.nodes.get(worker)
        if node is None or not node.has_power or (node.incarnation, node.pid, node.birth) != (incarnation, pid, birth):
            return None
        node.serve(self._server, on_message, on_gone)
        return node, node.link

    async def listen(self) -> None:
        """Let workers say hello."""
        self._listens = True

    async def close(self) -> None:
        """End what is left: SIGTERM, then SIGKILL. Idempotent."""
        left = [node for node in self.all if node.has_power]
        for node in left:
            node.terminate()
        try:
            async with asyncio.timeout(STOP_S):
                await asyncio.gather(*(node.ended() for node in left))
        except TimeoutError:
            for node in left:
                node.kill()


async def _first_of(futures: list["asyncio.Future[Any]"]) -> None:
    """Return once one of them is done."""
    one = asyncio.Event()
    for future in futures:
        future.add_done_callback(lambda _: one.set())
    await one.wait()
