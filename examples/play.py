"""Play a world, verify every frame, have it moved meanwhile, and say what was seen.

    python examples/play.py --server http://127.0.0.1:8787 --moves 2

Needs the package ``websockets`` alone: what travels is in docs/play-wire.md and docs/http.md. The exit status is 0
if every frame came once, in order, with the digest that its worker took of it, and every move was committed. Where no
more comes (the world is lost or closed, another has its keys, the server ends) that is said, and it ends with 1. So is
an answer that breaks off: what was asked for may have been done.
"""

import argparse
import asyncio
import hashlib
import json
import struct
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import ProxyHandler, Request, build_opener

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, WebSocketException

HEADER = struct.Struct("<4s4BHHI4Q2iQ32s8s")
"""Magic, version, kind, action, index; width, height; show_after_ms; epoch, block, frame, number; y, x; life; SHA."""
BLOCKS_BETWEEN_MOVES = 4
ANSWER_S = 60.0
"""For so long an answer may not come."""
SILENCE_S = 60.0
"""Nothing comes for so long of a world that rests, or waits for a worker that does not answer."""


class OverError(Exception):
    """No more will come, and why."""


class RefusedError(OverError):
    """The server says that it did not do it, and why."""


@dataclass
class Seen:
    """What of a world has come."""

    keys: tuple[str, ...] = ()
    next_number: int = 1
    next_frame: int | None = None
    num_frames: int = 0
    blocks: int = 0
    epochs: list[int] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    checks: list[bool | None] = field(default_factory=list)
    over: str = ""
    """Why no more comes."""

    def frame(self, message: bytes) -> tuple[int, int] | None:
        """Take a frame; return its block and the server's life. None for one of a throw-away copy."""
        magic, _, kind, *_, epoch, block, number, _, _, _, life, sha256, _ = HEADER.unpack_from(message)
        if magic != b"WMPF" or kind != 0:
            return None
        if hashlib.sha256(message[HEADER.size :]).digest() != sha256:
            self.faults.append(f"frame {number} has another digest than its worker took")
        if self.next_frame not in (None, number):
            self.faults.append(f"frame {number} came where {self.next_frame} was due")
        if epoch not in self.epochs:
            self.epochs.append(epoch)
        self.next_frame = number + 1
        self.num_frames += 1
        return block, life


def ask(server: str, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
    """Ask the server for something, as docs/http.md has it; a refused move is an answer too.

    Raises RefusedError for any other refusal, URLError where nothing was asked for, and OverError where that may have
    been done: the request has left, and its answer did not come whole.
    """
    data = None if body is None else json.dumps(body).encode()
    request = Request(server + path, data=data, method=method, headers={"Content-Type": "application/json"})
    try:
        try:
            with build_opener(ProxyHandler({})).open(request, timeout=ANSWER_S) as answer:
                return whole(answer.read()) if method == "POST" else {}
        except HTTPError as error:
            said = json.loads(error.read())
            if "move" in said:
                return dict(said["move"])
            refused = RefusedError(str(said["error"]["message"]))
    except URLError:
        raise
    except (OSError, HTTPException, ValueError, KeyError, TypeError) as error:
        why = " ".join(str(error).split())
        raise OverError(f"{method} {path} may have been done: its answer did not come whole ({why})") from error
    raise refused


def whole(content: bytes) -> dict[str, Any]:
    """Return an answer. Raises ValueError, KeyError or TypeError where it is none of such a server's."""
    said = json.loads(content)
    return {**said, "session": str(said["session"])}


async def move(server: str, session: str) -> dict[str, Any]:
    """Have a world moved; return how that ended. Raises OverError where that is not known, or it was not asked for."""
    try:
        return await asyncio.to_thread(ask, server, "POST", f"/api/sessions/{session}/move", {})
    except URLError as error:
        raise OverError(f"the move was not asked for: {error.reason}") from error


async def listen(socket: ClientConnection, seen: Seen, more: asyncio.Event) -> None:
    """Take what comes, acknowledge each block, until no more does."""
    try:
        await take(socket, seen, more)
        seen.over = seen.over or "the server has ended the connection"
    except ConnectionClosed as error:
        seen.over = seen.over or f"the connection has ended: {error}"
    finally:
        more.set()


async def take(socket: ClientConnection, seen: Seen, more: asyncio.Event) -> None:
    block = -1
    async for message in socket:
        if isinstance(message, bytes):
            found = seen.frame(message)
            if found is not None and found[0] != block:
                if block >= 0:
                    await socket.send(json.dumps({"type": "received", "block": block, "server_life": found[1]}))
                block, seen.blocks = found[0], seen.blocks + 1
        else:
            said = json.loads(message)
            if said["type"] == "hello":
                seen.keys, seen.next_number = tuple(said["engine"]["keys"]), said["next_number"]
            if said["type"] == "check":
                seen.checks.append(said["equal"])
            if said["type"] == "lost":
                seen.over = f"the world is lost: {said['sentence']}"
            if said["type"] == "taken_over":  # its keys are released, so it rests sooner or later
                seen.over = "another connection has the controls"
        more.set()


async def until(seen: Seen, more: asyncio.Event, holds: Any, silence_s: float) -> None:
    """Return once something holds. Raises OverError where it never will."""
    while not holds():
        if seen.over:
            raise OverError(seen.over)
        more.clear()
        try:
            await asyncio.wait_for(more.wait(), silence_s)
        except TimeoutError as error:
            raise OverError(f"nothing has come for {silence_s:g} s") from error


async def play(server: str, moves: int, silence_s: float = SILENCE_S) -> tuple[Seen, list[dict[str, Any]]]:
    """Open a world, hold its first key down, and have it moved so often.

    Raises OSError, WebSocketException, OverError.
    """
    session = str((await asyncio.to_thread(ask, server, "POST", "/api/sessions", {}))["session"])
    seen, more, moved = Seen(), asyncio.Event(), []
    address = f"{server.replace('http', 'ws', 1)}/api/sessions/{session}/play"
    async with connect(address, compression=None, proxy=None) as socket:
        listening = asyncio.create_task(listen(socket, seen, more))
        try:
            await until(seen, more, lambda: seen.keys, silence_s)
            await socket.send(json.dumps({"type": "keys", "changes": [[seen.next_number, seen.keys[0], True]]}))
            for turn in range(moves + 1):
                goal = seen.blocks + BLOCKS_BETWEEN_MOVES
                await until(seen, more, lambda goal=goal: seen.blocks >= goal, silence_s)
                if turn < moves:
                    moved.append(await move(server, session))
        except (OverError, ConnectionClosed) as error:
            seen.faults.append(seen.over or str(error))
        listening.cancel()
        await asyncio.gather(listening, return_exceptions=True)
    with suppress(OSError, OverError):  # it may have ended, or its server has
        await asyncio.to_thread(ask, server, "DELETE", f"/api/sessions/{session}")
    return seen, moved


def tell(seen: Seen, moved: list[dict[str, Any]]) -> int:
    """Say what was seen; return the exit status."""
    say = sys.stdout.write
    for move in moved:
        say(f"{move['sentence']} pause {move['pause_ms']} ms, {move['proof']}\n")
    say(f"{seen.num_frames} frames of {seen.blocks} blocks in epochs {seen.epochs}, every digest verified\n")
    say(f"{seen.checks.count(True)} of {len(seen.checks)} check blocks equal, {seen.checks.count(False)} not\n")
    for fault in seen.faults:
        say(f"FAULT: {fault}\n")
    committed = all(move["outcome"] == "committed" for move in moved)
    return 0 if committed and not seen.faults and False not in seen.checks else 1


def main() -> None:
    parser = argparse.ArgumentParser(description="Play a world and verify every frame.")
    parser.add_argument("--server", default="http://127.0.0.1:8787")
    parser.add_argument("--moves", type=int, default=1)
    told = parser.parse_args()
    try:
        status: int | str = tell(*asyncio.run(play(told.server, told.moves)))
    except OverError as error:
        status = f"FAULT: {error}"
    except (OSError, WebSocketException) as error:
        status = f"FAULT: {told.server} did not do what was asked of it: {error}"
    sys.exit(status)


if __name__ == "__main__":
    main()
