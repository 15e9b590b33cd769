"""The path between two hosts, or two processes of one: one plain TCP connection, straight into the own arena.

    source       listens; a ticket names address and port, and a secret token
    destination  connects, says the token, hears the arena's size                  before the freeze
                 asks for its extents, and takes them into its own arena           at the boundary

Nothing is encrypted: whoever can listen on the way can read the bytes and the token. That they are the right
bytes is shown afterwards, as for every path: TCP's own checksum has 16 bits.
"""

import asyncio
import ipaddress
import socket
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Annotated

import msgspec

from worldmove.errors import NoDescriptors, TransportError
from worldmove.state.arena import AnyArena, Arena
from worldmove.state.device_arena import DeviceArena
from worldmove.state.device_window import DeviceWindow
from worldmove.state.extent import Extent
from worldmove.transport.base import Blocking
from worldmove.transport.descriptors import TOKEN_BYTES
from worldmove.transport.pieces import check_extents
from worldmove.transport.shortage import THERE, unopened
from worldmove.transport.tcp_device import receive_runs
from worldmove.transport.tcp_serving import Serving
from worldmove.transport.tcp_stream import Stream
from worldmove.transport.tcp_words import AT_LIMIT, NUMBER_BYTES, hello, number_of, requests
from worldmove.transport.tickets import read_ticket

Take = Callable[[Sequence[Extent]], Awaitable[None]]


class TcpTicket(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Where an arena is to be had. The address is a numeric one: no name is looked up in a pause."""

    host: Annotated[str, msgspec.Meta(min_length=1, max_length=45)]
    port: Annotated[int, msgspec.Meta(ge=1, le=65535)]
    token: Annotated[bytes, msgspec.Meta(min_length=TOKEN_BYTES, max_length=TOKEN_BYTES)]
    size: Annotated[int, msgspec.Meta(gt=0, lt=1 << 50)]


@dataclass(frozen=True, slots=True, kw_only=True)
class TcpConfig:
    """Where a process lets its arenas be had, and how long it waits for the other end."""

    host: str = "127.0.0.1"
    """A numeric address of this machine, which tickets name: one that the other workers reach."""
    port: int = 0
    """0: any free one."""
    stall_s: float = 2.0
    """How long the other end may take to answer, or to go on."""

    def __post_init__(self) -> None:
        if _address(self.host).is_unspecified:
            raise TransportError(f"{self.host} is every address and none: name the one that other workers reach")


class Tcp:
    """Exports and connects for one process. ``start`` it before the first export, ``close`` it at the end."""

    name = "tcp"

    def __init__(self, *, config: TcpConfig, tokens: Callable[[], bytes], blocking: Blocking | None = None) -> None:
        """Take what it needs; ``tokens`` gives TOKEN_BYTES secret bytes, new each time. ``blocking``: for devices."""
        self._config = config
        self._tokens = tokens
        self._blocking = blocking
        self._exports: dict[bytes, AnyArena] = {}
        self._serving = Serving(self._exports, config.stall_s, blocking)

    async def start(self) -> None:
        """Listen. Raises TransportError if the address cannot be had."""
        await self._serving.start(self._config.host, self._config.port)

    async def close(self) -> None:
        """Listen no more, and end every export and connection. Idempotent."""
        self._exports.clear()
        await self._serving.close()

    async def export(self, arena: Arena) -> bytes:
        """Let ``arena`` be read by whoever holds the ticket returned."""
        return self._export(arena)

    async def export_device(self, arena: DeviceArena) -> bytes:
        """Let a slot on a device be read, through host memory."""
        if self._blocking is None:
            raise TransportError("this process reads no device's memory for others")
        return self._export(arena)

    def _export(self, arena: AnyArena) -> bytes:
        address = self._serving.address
        if address is None:
            raise TransportError("this process does not let its arenas be had: it was not started, or is closed")
        token = self._tokens()
        self._exports[token] = arena
        return msgspec.msgpack.encode(TcpTicket(*address, token, arena.size))

    async def withdraw(self, ticket: bytes) -> None:
        """End an export. Channels already connected go on. Idempotent."""
        self._exports.pop(read_ticket(ticket, TcpTicket, "TCP").token, None)

    async def connect(self, ticket: bytes) -> "TcpChannel":
        """Connect, and say the token. Raises TransportError."""
        wanted = read_ticket(ticket, TcpTicket, "TCP")
        stream = await self._dial(wanted)
        try:
            await stream.send([memoryview(hello(wanted.token))])
            size = number_of(await stream.receive(NUMBER_BYTES))
            if size == AT_LIMIT:
                raise NoDescriptors(THERE)
            if size != wanted.size:
                raise TransportError(f"the source's memory has {size} bytes, not {wanted.size}")
        except BaseException:
            stream.close()
            raise
        return TcpChannel(stream, size, self._blocking)

    async def _dial(self, wanted: TcpTicket) -> Stream:
        family = socket.AF_INET6 if _address(wanted.host).version == 6 else socket.AF_INET
        try:
            connection = socket.socket(family, socket.SOCK_STREAM)
        except OSError as error:  # no descriptor is left: others are played on
            raise unopened(error, "nothing can be connected here") from error
        try:
            connection.settimeout(0)
            async with asyncio.timeout(self._config.stall_s):
                await asyncio.get_running_loop().sock_connect(connection, (wanted.host, wanted.port))
            return Stream(connection, self._config.stall_s)
        except (OSError, TimeoutError) as error:
            connection.close()
            raise TransportError(f"no answer at {wanted.host} port {wanted.port}: {error}") from error
        except BaseException:
            connection.close()
            raise


class TcpChannel:
    """A connection to one exported arena."""

    def __init__(self, stream: Stream, size: int, blocking: Blocking | None) -> None:
        self._stream = stream
        self._blocking = blocking
        self._size = size
        self._one_at_a_time = asyncio.Lock()

    async def pull(self, extents: Sequence[Extent], into: memoryview) -> None:
        """Copy each extent to the same offset of ``into``. Raises TransportError.

        A pull that was cut short leaves bytes under way that the next would take for its own: so the connection
        is closed, and there is no next.
        """
        check_extents(extents, self._size, len(into))
        await self._pull(extents, lambda runs: self._stream.receive_into([into[run.offset : run.end] for run in runs]))

    async def pull_to_device(self, extents: Sequence[Extent], into: DeviceWindow) -> None:
        """Copy each extent to the same offset of a device's slot, through host memory. Raises TransportError."""
        check_extents(extents, self._size, into.size)
        blocking = self._blocking
        if blocking is None:
            raise TransportError("this process has no device")
        await self._pull(extents, lambda runs: receive_runs(self._stream, runs, into, blocking))

    async def _pull(self, extents: Sequence[Extent], take: Take) -> None:
        async with self._one_at_a_time:
            if self._stream.closed:
                raise TransportError("the channel is closed")
            try:
                for request, runs in requests(extents):
                    await self._fetch(request, runs, take)
            except BaseException:
                self._stream.close()
                raise

    async def close(self) -> None:
        """Close the connection. Idempotent."""
        self._stream.close()

    async def _fetch(self, request: bytes, runs: Sequence[Extent], take: Take) -> None:
        await self._stream.send([memoryview(request)])
        announced, expected = number_of(await self._stream.receive(NUMBER_BYTES)), sum(run.length for run in runs)
        if announced != expected:
            raise TransportError(f"the source announces {announced} bytes, where {expected} were asked for")
        await take(runs)


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    try:
        return ipaddress.ip_address(host)
    except ValueError as error:
        raise TransportError(f"not a numeric address: {host[:45]!r}") from error
