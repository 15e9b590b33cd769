"""Handing a descriptor from one process to another, and mapping it so that it can only be read."""

import asyncio
import fcntl
import mmap
import os
import socket
import struct

import numpy as np

from worldmove.errors import NoDescriptors, TransportError
from worldmove.transport.shortage import FULL, HERE, THERE, unopened
from worldmove.units import PAGE_BYTES

TOKEN_BYTES = 32

_PEER = struct.Struct("3i")  # pid, uid, gid
# The standard library of Python 3.11 does not name these.
_F_GET_SEALS = 1034
_SEAL_SHRINK, _SEAL_WRITE, _SEAL_FUTURE_WRITE = 0x02, 0x08, 0x10
_MADV_POPULATE_READ = 22


def check_peer(connection: socket.socket) -> int:
    """Return the process at the other end. Raises TransportError unless it runs as this one's user.

    The kernel says so.
    """
    data = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size)
    process, user, _ = _PEER.unpack(data)
    if user != os.geteuid():
        raise TransportError(f"the other end runs as user {user}, not as {os.geteuid()}")
    return int(process)


async def receive_token(connection: socket.socket) -> bytes:
    """Return what a non-blocking connection says first; longer than a token, it is none."""
    return await asyncio.get_running_loop().sock_recv(connection, TOKEN_BYTES + 1)


def send_descriptor(connection: socket.socket, descriptor: int) -> None:
    """Give a descriptor away; this process keeps its own. Raises OSError."""
    socket.send_fds(connection, [b"\0"], [descriptor])


async def fetch(path: str, token: bytes, answer_s: float) -> int:
    """Return the descriptor that is given for a token; it is the caller's to close. Raises TransportError."""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
            connection.settimeout(0)
            async with asyncio.timeout(answer_s):
                _, descriptors = await exchange(connection, path, token, 1)
    except TimeoutError as error:
        raise TransportError(f"no answer at {path} within {answer_s:g} s") from error
    except OSError as error:
        raise unopened(error, f"no answer at {path}") from error
    if not descriptors:
        raise TransportError("the source lets nothing be read under this ticket any more")
    return descriptors[0]


async def exchange(connection: socket.socket, path: str, token: bytes, most: int) -> tuple[bytes, list[int]]:
    """Connect, say a token, and return the answer, of ``most`` bytes, with its descriptor. Raises OSError.

    Raises NoDescriptors where either end may open no more files.
    """
    loop = asyncio.get_running_loop()
    await loop.sock_connect(connection, path)
    check_peer(connection)
    await loop.sock_sendall(connection, token)
    readable = asyncio.Event()
    loop.add_reader(connection, readable.set)
    try:
        await readable.wait()
    finally:
        loop.remove_reader(connection)
    said, descriptors, flags, _ = socket.recv_fds(connection, most, 1)
    if flags & socket.MSG_CTRUNC and not descriptors:  # it was given, and there was no number left for it
        raise NoDescriptors(HERE)
    if said == FULL and not descriptors:
        raise NoDescriptors(THERE)
    return said, descriptors


def map_sealed(descriptor: int, size: int) -> mmap.mmap:
    """Map ``size`` bytes for reading, touch every page, and close the descriptor. Raises TransportError.

    Refused is memory of another size, memory that its owner could shrink (reading what is gone kills the
    reader), and memory that another reader could write.
    """
    try:
        _check_sealed(descriptor, size)
        mapping = mmap.mmap(descriptor, size, flags=mmap.MAP_SHARED, prot=mmap.PROT_READ)
    except OSError as error:
        raise unopened(error, "the source's memory cannot be mapped") from error
    finally:
        os.close(descriptor)
    _touch(mapping)
    return mapping


def _check_sealed(descriptor: int, size: int) -> None:
    found = os.fstat(descriptor).st_size
    if found != size:
        raise TransportError(f"the source's memory has {found} bytes, not {size}")
    seals = fcntl.fcntl(descriptor, _F_GET_SEALS)
    if not seals & _SEAL_SHRINK or not seals & (_SEAL_WRITE | _SEAL_FUTURE_WRITE):
        raise TransportError("the source's memory is not sealed")


def _touch(mapping: mmap.mmap) -> None:
    """Make every page present now, rather than one by one during the freeze."""
    try:
        mapping.madvise(_MADV_POPULATE_READ)
    except OSError:  # a kernel before 5.14
        np.frombuffer(mapping, dtype=np.uint8)[::PAGE_BYTES].sum()
