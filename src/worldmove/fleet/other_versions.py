"""Workers of another version than their server's: said once for each process, however often it comes again."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from worldmove import __version__
from worldmove.worker.messages import Hello

UNSAID = "one that does not say which it is"
MAX_WORDS = 64
"""Of what a stranger says of itself, in characters."""
MAX_PROCESSES = 4096

Log = Callable[[str, dict[str, object]], None]


class OtherVersions:
    """Of one server's door."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._said: dict[tuple[str, str], None] = {}

    def came(self, hello: Hello) -> None:
        """A worker has said hello, and was understood."""
        if hello.version != __version__:
            self._say(hello.worker, str(hello.pid), hello.version, is_understood=True)

    def is_not_understood(self, body: bytes) -> None:
        """The first word over a link was no message of ours: a hello of another version has the same names in it."""
        try:
            said = msgspec.msgpack.decode(body)
        except (msgspec.DecodeError, RecursionError, ValueError):
            return
        if isinstance(said, Mapping) and said.get("type") == Hello.__struct_config__.tag:
            self._say(_word(said, "worker"), _word(said, "pid"), _word(said, "version"), is_understood=False)

    def _say(self, worker: str, pid: str, version: str, *, is_understood: bool) -> None:
        if (worker, pid) in self._said or len(self._said) >= MAX_PROCESSES:
            return
        self._said[worker, pid] = None
        said: dict[str, object] = {"worker": worker, "pid": pid, "its_version": version or UNSAID}
        self._log("worker_of_another_version", {**said, "our_version": __version__, "is_understood": is_understood})


def _word(said: Mapping[str, Any], name: str) -> str:
    return str(said.get(name, ""))[:MAX_WORDS]
