"""What HTTP asks about a session's past and its state: its record, its leaves, its saved copy; and the way back."""

import asyncio
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from worldmove import __version__
from worldmove.errors import FileRefused, UserError
from worldmove.fleet.asking import bad_answer
from worldmove.fleet.ports import Beginning
from worldmove.fleet.views import SessionView
from worldmove.serve.desk import Desk
from worldmove.serve.gateway import Gateway
from worldmove.serve.live import Live
from worldmove.serve.live_config import Start
from worldmove.serve.spool import Spool
from worldmove.serve.wording import environment_of
from worldmove.state.checked_frame import MAX_HEADER_BYTES
from worldmove.state.manifest import MAX_MANIFEST_BYTES
from worldmove.state.saved import SavedHeader, pack_header, read_header
from worldmove.worker.messages import Described, Saved

LOOK_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedSession:
    """A saved world on its way out."""

    num_bytes: int
    parts: AsyncIterator[bytes]


class Records:
    """Raises UserError for what cannot be met."""

    def __init__(self, *, desk: Desk, gateway: Gateway, spool: Spool) -> None:
        self._desk = desk
        self._gateway = gateway
        self._fleet = gateway.fleet
        self._spool = spool

    def record(self, session: str, num_blocks: int | None, *, follow: bool) -> AsyncIterator[bytes]:
        """Yield a session's record: what there is, or until it has so many blocks or the session ends."""
        live = self._gateway.live(session)
        if not live.journal.begun:
            why = f"There is no record of {session}: its beginning is not known to this server."
            raise UserError(why, code="no_record", status=409)
        return live.journal.follow(num_blocks, wait=follow)

    async def leaves(self, session: str) -> Described:
        """Return a session's leaves as they are now."""
        self._gateway.live(session)
        return await self._fleet.describe(session)

    async def save(self, session: str) -> SavedSession:
        """Have a session's state written as it is at a boundary."""
        live = self._gateway.live(session)
        with self._spool.file() as file, _lists_kept(live):
            saved = await self._unless_held_up(session, self._fleet.save(session, str(file.path)))
            if file.num_bytes() != saved.manifest_bytes + saved.num_bytes:
                raise bad_answer(self._owner(session), f"its file of {session} has not as many bytes as it says")
            header = pack_header(self._header(live, saved))
            parts = file.send(header)
        return SavedSession(num_bytes=len(header) + saved.manifest_bytes + saved.num_bytes, parts=parts)

    async def restore(self, parts: AsyncIterator[bytes], num_bytes: int, *, on: str | None) -> SessionView:
        """Open a new session that goes on where a saved one, which comes as so many bytes, had come to."""
        largest = max((view.arena_bytes for view in self._fleet.workers()), default=0)
        if num_bytes > largest + MAX_MANIFEST_BYTES + MAX_HEADER_BYTES:
            why = f"The saved world has {num_bytes:,} bytes, and a slot here holds {largest:,}."
            raise UserError(why, code="too_large", status=413)
        with self._spool.file() as file:
            path = file.path
            await self._spool.write(path, parts, num_bytes)
            with file.open() as written:
                header = read_header(written, num_bytes)
            self._require_engine(header)
            start = Start(seed=header.seed, first_block=header.block, number=header.number, down=header.down)
            beginning = Beginning(path=str(path), environment=header.environment)
            return await self._desk.go_on(start, beginning, on=on)

    async def _unless_held_up(self, session: str, asked: Coroutine[Any, Any, Saved]) -> Saved:
        """Wait for a save, but not for an engine that does not return: others want the place that this one keeps."""
        saving = asyncio.ensure_future(asked)
        try:
            while not saving.done():
                with suppress(TimeoutError):
                    async with asyncio.timeout(LOOK_S):
                        return await asyncio.shield(saving)
                if self._desk.is_held_up(session):
                    why = f"{self._owner(session)}'s engine does not return, so {session} comes to no boundary."
                    raise UserError(why, code="silent", status=503)
            return saving.result()
        finally:
            saving.cancel()

    def _owner(self, session: str) -> str:
        owner = self._fleet.owner(session)
        return "" if owner is None else owner.worker

    def _require_engine(self, header: SavedHeader) -> None:
        spec = self._gateway.config.live.spec
        unknown = [key for key in header.down if key not in spec.keys]
        if unknown:
            raise FileRefused(f"This saved world holds the key {unknown[0]!r}, which {spec.name} does not have.")

    def _header(self, live: Live, saved: Saved) -> SavedHeader:
        number, down = live.sequencer.position(saved.block)
        worker = self._owner(live.name)
        return SavedHeader(
            worldmove=__version__,
            engine=live.config.engine or f"{live.spec.name}:{live.spec.preset}",
            num_threads=live.spec.num_threads,
            session=live.name,
            worker=worker,
            epoch=saved.epoch,
            seed=self._desk.view(live.name).seed,
            block=saved.block,
            number=number,
            down=down,
            environment=dict(environment_of(worker, self._fleet.workers())),
            state_digest=saved.state_digest,
            manifest_sha256=saved.manifest_sha256,
            manifest_bytes=saved.manifest_bytes,
            num_bytes=saved.num_bytes,
            remainders=saved.remainders,
        )


@contextmanager
def _lists_kept(live: Live) -> Iterator[None]:
    """Have every list from now on kept while inside: a large state takes long to write, and is told of only then."""
    block = live.screen.next_block
    live.sequencer.keep_from(block)
    try:
        yield
    finally:
        live.sequencer.let_go_from(block)
