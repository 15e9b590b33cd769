"""The edge at which a link's socket gets room for a block's pictures, so that they go in few pieces."""

import asyncio
import socket

READ_BYTES = 4 << 20
"""How much may wait to be taken before a reader is paused: at asyncio's 64 KiB a block's pictures pause it 64 times."""
SOCKET_BYTES = 4 << 20
"""Asked of the kernel for what is sent: at its default 8 MB go in forty pieces, each a turn of the event loop."""


def widen(writer: asyncio.StreamWriter) -> None:
    """Ask for room; the kernel gives what it allows."""
    end = writer.get_extra_info("socket")
    if end is not None:
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SOCKET_BYTES)
