"""Which workers need a session's lists: noted before they are sent any, and told to the gateway."""

from worldmove.errors import LedgerError
from worldmove.fleet.books import Books
from worldmove.fleet.sessions import HOLDING, SessionRecord


class Holders:
    """Every session's, as the gateway was last told."""

    def __init__(self, books: Books) -> None:
        self._books = books

    def refresh(self) -> None:
        """Tell the gateway which workers need a session's lists, whenever that has changed."""
        for record in self._books.sessions.all():
            row = self._books.desk.row(record.name)
            if row is None or row.lost or record.resuming:
                continue
            held = {worker.name: worker.incarnation for worker, _ in self._books.workers.holders(record.name, HOLDING)}
            expecting = [(earlier.worker, earlier.incarnation) for earlier in record.earlier_keepers]
            expecting += [] if record.keeper is None else [record.keeper]
            held |= {name: number for name, number in expecting if self._books.workers.is_there(name, number)}
            holders = tuple(dict.fromkeys((row.owner, *held)))
            if holders != record.holders and self._note(record, {row.owner: row.incarnation, **held}):
                record.holders = holders
                self._books.gateway().holders(record.name, holders)

    def _note(self, record: SessionRecord, holders: dict[str, int]) -> bool:
        """Note who may hold lists, before they are sent any. False where that cannot be noted and is more than is."""
        noted, record.noted = record.noted, tuple(holders.items())
        if noted == record.noted:
            return True
        try:
            self._books.notes.keep_session(self._books.sessions.note_of(record, closing=record.closing))
        except LedgerError as error:
            self._books.desk.fail(record.name, error)
            added = [holder for holder in record.noted if holder not in noted]
            record.noted = noted
            return not added
        return True
