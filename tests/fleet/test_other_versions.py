"""A worker of another version that says hello: seen at once, with both versions, and not with each of its tries."""

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from worldmove import __version__
from worldmove.fleet.local_door import LocalDoor
from worldmove.fleet.other_versions import UNSAID
from worldmove.serve.house import LEVELS
from worldmove.worker.link import WorkerEnd, frame
from worldmove.worker.messages import Hello

HELLO = Hello(
    worker="w", incarnation=1, pid=7, environment={}, num_slots=3, arena_bytes=1, copies=(), version=__version__
)
FIELDS: dict[str, Any] = msgspec.to_builtins(HELLO)
OTHER = {**FIELDS, "version": "9.9.9"}
WITHOUT = {name: value for name, value in FIELDS.items() if name != "version"}
Said = list[tuple[str, dict[str, object]]]


def come(folder: Path, *bodies: bytes) -> tuple[Said, list[str]]:
    """Let somebody come in once for each of these first words; return what is logged, and who is served."""

    async def run() -> tuple[Said, list[str]]:
        said, served = Said(), list[str]()

        async def serve(link: WorkerEnd, hello: Hello) -> None:
            served.append(hello.worker)

        door = LocalDoor(
            folder=folder, hello_s=5.0, log=lambda event, fields: said.append((event, fields)), serve=serve
        )
        path = await door.open(())
        for body in bodies:
            reader, writer = await asyncio.open_unix_connection(path)
            writer.write(frame(body))
            assert await reader.read() == b""
            writer.close()
        door.close()
        return [one for one in said if one[0] != "link_broken"], served

    return asyncio.run(run())


def packed(fields: dict[str, Any]) -> bytes:
    return msgspec.msgpack.encode(fields)


@pytest.mark.parametrize(
    ("fields", "version", "is_understood"),
    [
        (OTHER, "9.9.9", True),
        ({**OTHER, "a_field_of_later": 1}, "9.9.9", False),
        ({**WITHOUT, "a_field_of_earlier": 1}, UNSAID, False),
        (WITHOUT, UNSAID, True),
    ],
)
def test_both_versions_are_said_once_for_each_process(
    tmp_path: Path, fields: dict[str, Any], version: str, *, is_understood: bool
) -> None:
    another = packed({**fields, "pid": 8})
    said, served = come(tmp_path, packed(fields), packed(fields), another, packed(fields))
    assert served == (["w"] * 4 if is_understood else [])
    versions = {"its_version": version, "our_version": __version__, "is_understood": is_understood}
    assert said == [("worker_of_another_version", {"worker": "w", "pid": pid, **versions}) for pid in ("7", "8")]


@pytest.mark.parametrize(
    "body",
    [packed(FIELDS), packed({"type": "another"}), packed({}), packed({"type": [1]}), b"\xc1", b"", b"\x93" * 4000],
)
def test_nothing_is_said_of_one_of_the_same_version_nor_of_what_is_no_hello(tmp_path: Path, body: bytes) -> None:
    assert come(tmp_path, body)[0] == []


def test_it_is_seen_without_being_asked_for() -> None:
    assert LEVELS["worker_of_another_version"] == "warning"
