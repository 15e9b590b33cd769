"""Who keeps a session's snapshots: a worker that computes as its owner does, and needs its lists meanwhile.

What is said here of each is in the session's record; what each has come to keep is what it reports.
"""

from collections.abc import Collection, Sequence

from worldmove.errors import UserError
from worldmove.fleet.books import Books
from worldmove.fleet.holders import Holders
from worldmove.fleet.keeper_choice import KeeperChoice
from worldmove.fleet.sessions import EarlierKeeper, SessionRecord
from worldmove.fleet.succession import is_full
from worldmove.fleet.workers import WorkerRecord
from worldmove.move.ledger_row import Row
from worldmove.worker.messages import KEPT, Expect, LetGo, Pass


class Keepers:
    """Of all protected sessions of one server."""

    def __init__(self, books: Books, holders: Holders) -> None:
        self._books = books
        self._holders = holders
        self._choice = KeeperChoice(books)

    def kept(self, record: SessionRecord, worker: str) -> int | None:
        """Return the boundary of what a worker keeps of a session; None where it has said nothing of one."""
        kept = self._choice.kept_by(record.name, worker)
        return None if kept is None else kept.block

    def is_in_the_way(self, record: SessionRecord, row: Row) -> bool:
        """Whether a move waits for what only goes for a newer snapshot: a retired copy, or what a full worker keeps.

        The copy stays until one is kept that was taken after it had retired: in the row's epoch.
        """
        there = None if record.waits_for is None else self._books.workers.find(record.waits_for)
        kept = None if record.keeper is None else self._choice.kept_by(record.name, record.keeper[0])
        if there is None or kept is None:
            return False
        is_held = any((copy.session, copy.phase) == (record.name, "retired") for copy in there.copies)
        if is_held:
            return kept.epoch < row.epoch
        return record.keeper == (there.name, there.incarnation) and there.slots_free == 0

    def expecting(
        self, record: SessionRecord, owner: WorkerRecord, still_at: Collection[str] = frozenset()
    ) -> WorkerRecord:
        """Return a keeper that is a holder of the session's lists. Raises UserError where there can be none now.

        ``still_at``: workers that may still be at an earlier snapshot, for which nobody waits: others are asked first.
        """
        row, before = self._books.desk.row(record.name), record.keeper
        is_good = before is not None and row is not None and self._choice.is_good(before, row)
        keeper = self._books.workers.get(before[0]) if before is not None and is_good else self._chosen(record, owner)
        if keeper.room <= 0 or keeper.name in still_at:  # left for one with room alone: what it keeps relieves
            chosen = self._chosen(record, owner, still_at)
            keeper = chosen if chosen.room > 0 and chosen.name not in still_at else keeper
        if (keeper.name, keeper.incarnation) != before:
            self._keep_instead(record, (keeper.name, keeper.incarnation))
        # Also one whose snapshot has become a copy, or was to be let go: of what it keeps yet it expects no less.
        is_new = self.kept(record, keeper.name) is None or keeper.is_giving_up(record.name, KEPT)
        if is_new:
            self._books.workers.send(keeper.name, Expect(session=record.name))
        self._holders.refresh()
        if keeper.name not in record.holders:
            raise UserError("The ledger cannot be written now.", code="ledger", status=503)
        next_block = self._books.gateway().next_block(record.name)
        if is_new and next_block is not None:
            self._books.gateway().linked_again(record.name, keeper.name, next_block)
        return keeper

    def linked_again(self, record: SessionRecord, worker: str) -> None:
        """A worker has made a new link: what it was to keep it expects no more, unless it has a snapshot."""
        record.earlier_keepers = tuple(one for one in record.earlier_keepers if one.worker != worker)
        if record.keeper is not None and record.keeper[0] == worker and self.kept(record, worker) is None:
            record.keeper = None

    def let_go(self, record: SessionRecord) -> None:
        """Have nobody keep a snapshot any more."""
        keeping = [worker.name for worker, _ in self._books.workers.holders(record.name, (KEPT,))]
        keeping += [earlier.worker for earlier in record.earlier_keepers]  # also what is still on its way there
        keeping += [] if record.keeper is None else [record.keeper[0]]
        record.earlier_keepers, record.keeper, record.confirmed = (), None, None
        for name in dict.fromkeys(keeping):
            self._books.workers.send(name, LetGo(session=record.name))
        self.give_up(record)
        self._holders.refresh()

    def make_room(self, record: SessionRecord) -> None:
        """Let go of what takes room and saves the session from nothing, its owner's own snapshot, or else from little:
        its retired copies, of which the last may be all that there is beside the owner until there is room elsewhere.

        Those where they take the last room, if that is what is lacking: where there is room beside them, or their owner
        can copy nothing aside, they are in nobody's way.
        """
        row = self._books.desk.row(record.name)
        owner = None if row is None else self._books.workers.find(row.owner)
        if owner is None:
            return
        if self.kept(record, owner.name) is not None:
            self._books.workers.send(owner.name, LetGo(session=record.name))
        elif not is_full(owner):
            full = [worker for worker in self._books.workers.holding(record.name) if not worker.slots_free]
            self._let_pass(record, [worker.name for worker in full if worker is not owner])

    def give_up(self, record: SessionRecord) -> None:
        """No newer snapshot will ever be kept: nothing waits for it."""
        self._let_pass(record, [worker.name for worker in self._books.workers.holding(record.name)])

    def let_pass_staying(self, record: SessionRecord) -> None:
        """A session is protected no more: let what has retired pass though it says that it stays.

        The word for that may have come while it was played, and before one that had it stay. Not where it was granted
        the session, and has yet to hear of that.
        """
        row = self._books.desk.row(record.name)
        held = self._books.workers.holders(record.name, ("retired",))
        staying = [worker.name for worker, copy in held if copy.stays]
        self._let_pass(record, [name for name in staying if row is not None and name != row.owner])

    def _keep_instead(self, record: SessionRecord, keeper: tuple[str, int]) -> None:
        """Have another keep snapshots. What the earlier one may still come to keep counts until another is kept."""
        before, earlier = record.keeper, list(record.earlier_keepers)
        if before is not None and self.kept(record, before[0]) is None:
            earlier = [one for one in earlier if one.worker != before[0]]
            earlier.append(EarlierKeeper(worker=before[0], incarnation=before[1]))
        record.earlier_keepers = tuple(one for one in earlier if one.worker != keeper[0])
        record.keeper = keeper

    def _chosen(self, record: SessionRecord, owner: WorkerRecord, but: Collection[str] = frozenset()) -> WorkerRecord:
        """Return a worker that can keep it: one of ``but`` only where no other can. Raises UserError: there is none."""
        able = self._choice.able(owner)
        able = [worker for worker in able if worker.name not in but] or able
        chosen = self._choice.best(record.name, able)
        if chosen is None:
            why = f"No other worker has room for a snapshot of {record.name}, and computes as {owner.name} does."
            raise UserError(why, code="no_slot" if able else "no_keeper", status=409)
        return chosen

    def _let_pass(self, record: SessionRecord, workers: Sequence[str]) -> None:
        """Let retired copies go that were to stay until a newer snapshot is kept; an owner's own is to, later."""
        for name in workers:
            self._books.workers.send(name, Pass(session=record.name))
