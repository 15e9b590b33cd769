"""A player in a process of its own that starts at once: ``python -S client.py PORT SESSION``, standard library alone.

It takes the controls, keeps the world going, reads whatever comes, and writes one line when the first frame is here.
"""

import json
import os
import socket
import sys


def main(port: str, session: str) -> None:
    """Read until the connection ends."""
    with socket.create_connection(("127.0.0.1", int(port))) as connection:
        asked = (
            f"GET /api/sessions/{session}/play HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\n"
            "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        )
        connection.sendall(asked.encode())
        said = json.dumps({"type": "keep", "keep": True}).encode()
        mask = bytes(4)
        connection.sendall(bytes([0x81, 0x80 | len(said)]) + mask + said)
        told = False
        while data := connection.recv(1 << 16):
            if not told and b"WMPF" in data:
                os.write(1, b"watching\n")
                told = True


if __name__ == "__main__":
    main(*sys.argv[1:])
