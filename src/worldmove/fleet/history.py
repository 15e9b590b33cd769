"""The last moves and how they ended, noted so that a later server knows of them, and of one that was under way."""

from collections.abc import Callable

import msgspec

from worldmove.errors import LedgerError
from worldmove.fleet.grants import is_granted
from worldmove.fleet.notes import MoveNote, Notes, instant
from worldmove.fleet.reports import MoveReport
from worldmove.fleet.tries import Plan
from worldmove.move.ledger_row import Row

ENDED = "the server ended in the middle of it, and the ledger does not say yet how it ended"


class History:
    """Reports in the order in which their moves began; the oldest make room."""

    def __init__(self, notes: Notes, *, limit: int, log: Callable[[str, dict[str, object]], None]) -> None:
        self._notes = notes
        self._limit = limit
        self._log = log
        self._reports: dict[int, MoveReport] = {}
        self._begun: dict[int, MoveNote] = {}
        self._ended: dict[int, MoveNote] = {}
        self._marked: dict[int, None] = {}
        """Moves without a report, with a mark that is not kept yet."""
        self._unreadable = set[int]()
        """Of what earlier servers have noted: they make room in their turn."""
        self._newest = 0

    def load(self) -> tuple[MoveNote, ...]:
        """Read what earlier servers have noted; return the moves of which no end is known. Raises LedgerError.

        What cannot be read is left out, and said: who owns a session is its row's to say, whatever became of a move.
        """
        notes, unreadable = self._notes.moves()
        for number, why in unreadable.items():
            self._log("move_not_read", {"number": number, "why": why})
        self._unreadable = set(unreadable)
        self._newest = max([*unreadable, *(note.number for note in notes)], default=0)
        for note in notes:
            self._reports[note.number] = note.report or note.unfinished(ENDED)
        unfinished = tuple(note for note in notes if note.report is None)
        self._begun = {note.number: note for note in unfinished}
        return unfinished

    def reports(self) -> tuple[MoveReport, ...]:
        """Return the last moves, oldest first; without those that this server conducts now."""
        return tuple(self._reports[number] for number in sorted(self._reports))

    def begin(self, plan: Plan, started_at: float, number: int | None = None) -> int:
        """Note a move, or its next try, before anything is said about it; return its number. Raises LedgerError."""
        number = self._newest + 1 if number is None else number
        note = MoveNote(
            number=number,
            session=plan.session,
            attempt=plan.attempt,
            source=plan.source.name,
            destination=plan.destination.name,
            epoch=plan.epoch,
            transport=plan.transport,
            strategy=plan.strategy.value,
            started_at=instant(started_at),
        )
        self._notes.keep_move(note)
        self._newest = max(self._newest, number)
        self._begun[number] = note
        return number

    def row_changed(self, row: Row) -> bool:
        """Mark what a row says of the moves without a report. Whether a mark is to be kept (``keep_marks``)."""
        for number, note in self._begun.items():
            granted = is_granted(note, row, before=note.granted)
            if note.session == row.session and granted != note.granted:
                self._begun[number] = msgspec.structs.replace(note, granted=granted)
                self._marked[number] = None
        return bool(self._marked)

    def keep_marks(self) -> None:
        """Keep the marks, before a later epoch begins. One that cannot be kept now is kept with the next."""
        for number in tuple(self._marked):
            note = self._begun.get(number)
            if note is None or self._kept(note):
                del self._marked[number]

    def unfinished(self, number: int) -> MoveNote | None:
        """Return a move without a report, as it is known by now."""
        return self._begun.get(number)

    def end(self, report: MoveReport, number: int | None) -> None:
        """Keep a move's report; one that was refused before it could be noted is kept in memory only."""
        if number is None:
            self._newest += 1
            number = self._newest
        self._reports[number] = report
        note = self._begun.pop(number, None)
        if note is not None:
            self._keep(note, report)
        for old in sorted(self._reports.keys() | self._unreadable)[: -self._limit]:
            self._reports.pop(old, None)
            self._unreadable.discard(old)
            self._drop(old)

    def settle(self, number: int, report: MoveReport, *, final: bool) -> None:
        """Keep what is known by now of a move whose server ended in the middle of it."""
        if final:
            self.end(report, number)
        else:
            self._reports[number] = report

    def amend(self, told: MoveReport) -> None:
        """Keep a report as it was told."""
        same = (told.session, told.attempt)
        for number in [number for number, known in self._reports.items() if (known.session, known.attempt) == same]:
            self._reports[number] = told
            if number in self._ended:
                self._keep(self._ended[number], told)

    def _keep(self, note: MoveNote, report: MoveReport) -> None:
        """Note an end. One that cannot be noted is found out from the row by the next server."""
        self._ended[note.number] = note
        self._kept(msgspec.structs.replace(note, report=report))

    def _kept(self, note: MoveNote) -> bool:
        try:
            self._notes.keep_move(note)
        except LedgerError as error:
            self._log("move_not_noted", {"session": note.session, "attempt": note.attempt, "why": str(error)})
            return False
        return True

    def _drop(self, number: int) -> None:
        self._ended.pop(number, None)
        try:
            self._notes.drop_move(number)
        except LedgerError as error:
            self._log("move_not_dropped", {"number": number, "why": str(error)})
