"""A newer snapshot of a protected session: its owner takes it, its keeper pulls it over a path that has not lied."""

import asyncio
from collections.abc import Callable

from worldmove.errors import UserError
from worldmove.fleet.asking import Asking
from worldmove.fleet.books import Books
from worldmove.fleet.keeper_choice import KeeperChoice
from worldmove.fleet.keepers import Keepers
from worldmove.fleet.path_health import PathHealth, available, measured
from worldmove.fleet.sessions import SessionRecord
from worldmove.fleet.workers import WorkerRecord
from worldmove.worker.messages import DropSnapshot, Keep, Kept, SnapshotTaken, TakeSnapshot

TOO_LARGE = "state_too_large"
"""The code of what is so whatever room there is."""

MANY = 8
"""So many snapshots in a row that were not kept: what is in the way does not go by itself."""

Log = Callable[[str, dict[str, object]], None]


class Renewal:
    """Of all protected sessions of one server."""

    def __init__(
        self,
        books: Books,
        asking: Asking,
        keepers: Keepers,
        *,
        nonce: Callable[[], bytes],
        log: Log,
    ) -> None:
        self._books = books
        self._asking = asking
        self._keepers = keepers
        self._choice = KeeperChoice(books)
        self._nonce = nonce
        self._log = log
        self._paths = PathHealth(quarantine_s=books.config.quarantine_s)

    async def renew(self, record: SessionRecord) -> None:
        """Have one more kept; where that fails, note why, and wait for a while.

        Not where another worker plays it by then: what was in the way says nothing of the next one.
        """
        before = self._books.desk.row(record.name)
        try:
            await self._kept_anew(record)
            said, record.num_unkept = "", 0
        except UserError as error:
            row = self._books.desk.row(record.name)
            if row is not None and before is not None and row.owner != before.owner:
                return
            record.num_unkept += 1
            said = f"{error.code}: {error}"
            if error.code == TOO_LARGE:
                self._keepers.give_up(record)
            elif row is not None and (not self._choice.may_renew(row) or self._is_stubborn(record, error)):
                self._keepers.make_room(record)
            if said != record.unkept_why:
                self._log("not_protected", {"session": record.name, "code": error.code, "why": str(error)})
        record.unkept_why = said
        if said:
            await asyncio.sleep(self._books.config.protect_again_s)

    def _is_stubborn(self, record: SessionRecord, error: UserError) -> bool:
        """Whether room that was to come has not: two full workers may wait for each other's retired copies."""
        return error.code == "no_slot" and record.num_unkept >= MANY

    async def _kept_anew(self, record: SessionRecord) -> None:
        """Have one snapshot taken and kept. Raises UserError."""
        row = self._books.desk.row(record.name)
        if row is None:
            return
        owner = self._books.workers.get(row.owner)
        still_at = self._asking.still_at(record.name)
        keeper = self._keepers.expecting(record, owner, still_at)
        if keeper.name in still_at:  # one beside it would take another slot, and be no faster
            why = f"{keeper.name} is still at an earlier snapshot of {record.name}."
            raise UserError(why, code="silent", status=503)
        if keeper.room <= 0:  # the older one stays until the newer one is proven
            raise UserError(f"{keeper.name} has no room for another snapshot.", code="no_slot", status=409)
        nonce, transport, within_s = self._nonce(), self._transport(owner, keeper), self._books.config.snapshot_s
        asked = TakeSnapshot(session=record.name, request=self._asking.number(), transport=transport, nonce=nonce)
        try:
            taken = await self._asking.of_worker(owner, asked, SnapshotTaken, within_s)
            keep = Keep(
                session=record.name,
                request=self._asking.number(),
                snapshot=taken.snapshot,
                transport=transport,
                nonce=nonce,
            )
            record.keeping = True
            kept = await self._asking.of_worker(keeper, keep, Kept, within_s)
        except UserError as error:
            if error.code == "mismatch":
                now = asyncio.get_running_loop().time()
                self._paths.lied((owner.name, keeper.name), transport, now)
            raise
        finally:
            record.keeping = False
            self._books.workers.send(owner.name, DropSnapshot(session=record.name, request=asked.request))
        self._log("snapshot_kept", {"session": record.name, "worker": keeper.name, "block": kept.block})

    def _transport(self, owner: WorkerRecord, keeper: WorkerRecord) -> str:
        rates = [worker.hello.rates if worker.hello else {} for worker in (owner, keeper)]
        wanted = available(self._books.config.transport, *rates)
        now = asyncio.get_running_loop().time()
        return self._paths.choose((owner.name, keeper.name), wanted, now, measured(*rates))
