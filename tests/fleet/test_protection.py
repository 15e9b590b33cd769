"""Whose snapshot is let go, and when: not before another is kept by a worker that stays."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import pytest

from tests.fleet.fakes import Server, copy_of, server_of
from tests.move import virtual
from worldmove.errors import UserError
from worldmove.fleet.asking import Asking
from worldmove.fleet.config import FleetConfig
from worldmove.fleet.holders import Holders
from worldmove.fleet.notes import MemoryNotes, Notes
from worldmove.fleet.protection import Protection
from worldmove.fleet.sessions import Confirmed, SessionRecord, SessionTable, view
from worldmove.fleet.workers import WorkerRecord
from worldmove.move.ledger_messages import Failover
from worldmove.worker.background import Background
from worldmove.worker.message import SnapshotFacts
from worldmove.worker.messages import Copy, Expect, Keep, Kept, LetGo, NotDone, Pass, SnapshotTaken, TakeSnapshot

FACTS = SnapshotFacts(epoch=1, block=5, manifest=b"", placement=(), ticket=b"", groups=b"")


@dataclass(slots=True, kw_only=True)
class Fleet:
    """``a`` plays ``s``, of which a snapshot is kept after every block; ``b`` or ``c`` is to keep it."""

    server: Server
    record: SessionRecord
    asking: Asking
    protection: Protection
    failed: list[BaseException]
    logged: list[tuple[str, dict[str, object]]]
    beat: int = 0

    def asked(self, worker: str) -> list[Keep]:
        found: list[Keep] = self.server.wires[worker].of(Keep)
        return found

    def let_go(self, worker: str) -> int:
        return len(self.server.wires[worker].of(LetGo))

    async def until_asked(self, worker: str, times: int = 1) -> None:
        for _ in range(600):
            if len(self.asked(worker)) >= times:
                return
            await asyncio.sleep(0.05)
        raise AssertionError(f"{worker} was not asked {times} times")

    def falls_silent(self, worker: str) -> None:
        self.server.workers.get(worker).suspected = True
        self.asking.suspected(worker)
        self.protection.look()

    def answers_again(self, worker: str) -> WorkerRecord:
        record = self.server.workers.find(worker)
        assert record is not None
        record.suspected = False
        return record

    def keeps(self, worker: str, block: int = 5) -> None:
        """A worker says that it keeps what it was last asked to."""
        record = self.answers_again(worker)
        self.server.holds(worker, copy_of("s", "kept", block))
        self.asking.heard(record, Kept(session="s", request=self.asked(worker)[-1].request, block=block))
        self.protection.look()

    def answers_beat(self, *workers: str, sent_s_ago: float = 0.0) -> None:
        """Everybody was sent another beat, which these answer."""
        self.beat += 1
        for worker in self.server.workers.all():
            worker.beat_sent = self.beat
            if worker.name in workers:
                worker.beat_answered = self.beat
                worker.alive_at = asyncio.get_running_loop().time() - sent_s_ago
        self.protection.look()

    def why(self) -> str:
        """Why there is no newer snapshot, as it is listed."""
        return view(self.record, None).not_renewed_why

    def plays_on(self, block: int) -> None:
        self.protection.computed("s", block)

    def is_played_by(self, worker: str, block: int) -> None:
        """It was granted the session, of which it keeps a snapshot."""
        row = self.server.desk.row("s")
        assert row is not None
        self.server.desk._rows["s"] = replace(row, owner=worker)
        self.server.holds(worker, copy_of("s", "live"), copy_of("s", "kept", block))

    def refuses(self, asked: Any) -> None:
        """The owner has no room for another snapshot."""
        if isinstance(asked, TakeSnapshot):
            why = NotDone(session="s", request=asked.request, code="no_slot", message="all 3 slots are taken")
            self.asking.heard(self.server.workers.get("a"), why)

    def gives_snapshot(self, asked: Any, owner: str = "a") -> None:
        if isinstance(asked, TakeSnapshot):
            taken = SnapshotTaken(session="s", request=asked.request, snapshot=FACTS)
            self.asking.heard(self.server.workers.get(owner), taken)


@dataclass(frozen=True, slots=True, kw_only=True)
class Books:
    """What protection reads and writes."""

    config: FleetConfig
    workers: Any
    sessions: SessionTable
    desk: Any
    notes: Notes
    gateway: Callable[[], Any]


async def fleet(*workers: str) -> Fleet:
    server, sessions, config = await server_of(*workers), SessionTable(), FleetConfig()
    server.gateway.block = server.gateway.reaches = 64  # every list is here
    record = sessions.add(SessionRecord(name="s", seed=1, worker="a", incarnation=1, throwaway=False))
    record.protect_every = 1
    asking = Asking(config=config, workers=server.workers, sessions=sessions, desk=server.desk)
    books: Any = Books(
        config=config,
        workers=server.workers,
        sessions=sessions,
        desk=server.desk,
        notes=Notes(MemoryNotes()),
        gateway=lambda: server.gateway,
    )
    failed: list[BaseException] = []
    logged: list[tuple[str, dict[str, object]]] = []
    protection = Protection(
        books,
        asking,
        Holders(books),
        Background(lambda name, error: failed.append(error)),
        nonce=lambda: b"n" * 16,
        log=lambda event, fields: logged.append((event, fields)) if event == "renewal_waits" else None,
    )
    made = Fleet(server=server, record=record, asking=asking, protection=protection, failed=failed, logged=logged)
    server.wires["a"].react = made.gives_snapshot
    server.holds("a", copy_of("s", "live"))
    protection.look()
    return made


def played(course: Callable[[Fleet], Any], *workers: str) -> None:
    async def run() -> None:
        made = await fleet(*(workers or ("a", "b", "c")))
        await course(made)
        assert not made.failed

    virtual.run(run())


def test_a_silent_keepers_first_snapshot_is_let_go_when_another_is_kept_and_not_when_it_is_asked_for() -> None:
    async def course(made: Fleet) -> None:
        await made.until_asked("b")
        made.falls_silent("b")
        await made.until_asked("c")
        assert (made.let_go("b"), made.record.holders) == (0, ("a", "b", "c"))  # it needs the lists meanwhile
        made.keeps("c")
        await asyncio.sleep(0.1)
        made.answers_beat("c")
        await asyncio.sleep(0.1)
        assert (made.let_go("b"), made.let_go("c"), made.record.holders) == (1, 0, ("a", "b", "c"))
        made.answers_beat("b", "c")  # the word has reached it
        await asyncio.sleep(0.1)
        assert made.record.earlier_keepers == ()

    played(course)


def test_what_a_silent_keeper_says_late_counts_where_nobody_else_keeps_one() -> None:
    async def course(made: Fleet) -> None:
        await made.until_asked("b")
        made.falls_silent("b")
        await made.until_asked("c")
        made.keeps("b")
        why = NotDone(session="s", request=made.asked("c")[-1].request, code="mismatch", message="It differs.")
        made.asking.heard(made.server.workers.get("c"), why)
        await asyncio.sleep(0.1)
        assert made.protection.newest("s") == ("b", 5)
        assert made.let_go("b") == 0

    played(course)


def test_one_that_made_a_new_link_expects_nothing_and_needs_no_lists() -> None:
    async def course(made: Fleet) -> None:
        await made.until_asked("b")
        made.falls_silent("b")
        await made.until_asked("c")
        made.server.wires["b"].sent.clear()
        made.protection.linked_again("b")
        made.keeps("c")
        await asyncio.sleep(0.1)
        made.answers_beat("b", "c")
        await asyncio.sleep(0.1)
        assert (made.let_go("b"), len(made.server.wires["b"].of(Expect))) == (0, 0)
        assert made.record.earlier_keepers == ()

    played(course)


def test_a_snapshot_stays_until_a_newer_one_is_kept_by_a_worker_that_does_not_end() -> None:
    async def course(made: Fleet) -> None:
        await made.until_asked("b")
        made.keeps("b")
        await asyncio.sleep(0.1)
        made.falls_silent("b")
        made.plays_on(6)
        await made.until_asked("c")
        made.server.workers.get("c").leaving = True
        made.keeps("c", 6)
        await asyncio.sleep(0.1)
        made.answers_beat("b", "c")
        await asyncio.sleep(0.1)
        assert made.let_go("b") == 0
        made.answers_again("b")  # and takes the next one
        made.protection.look()
        await made.until_asked("b", 2)
        made.keeps("b", 7)
        await asyncio.sleep(0.1)
        made.answers_beat("b", "c")
        await asyncio.sleep(0.1)
        assert (made.let_go("b"), made.let_go("c")) == (0, 1)

    played(course)


def test_an_older_snapshot_is_let_go_once_the_newer_ones_keeper_has_answered_a_later_beat_and_lately() -> None:
    async def course(made: Fleet) -> None:
        await made.until_asked("b")
        made.keeps("b")
        made.answers_beat("a", "b", "c")
        made.falls_silent("b")
        made.plays_on(6)
        await made.until_asked("c")
        made.keeps("c", 6)
        await asyncio.sleep(0.1)
        assert made.let_go("b") == 0  # it has answered none since
        made.answers_beat("b")
        await asyncio.sleep(0.1)
        assert made.let_go("b") == 0
        made.answers_beat("c", sent_s_ago=0.6)
        await asyncio.sleep(0.1)
        assert made.let_go("b") == 0  # too long ago for a word that is to reach b in time
        made.answers_beat("c", sent_s_ago=0.25)
        await asyncio.sleep(0.1)
        (told,) = made.server.wires["b"].of(LetGo)
        assert (told.only.beat, told.only.within_s) == (2, pytest.approx(0.75))
        await asyncio.sleep(0.1)
        assert made.let_go("b") == 1
        made.answers_beat("b", "c")
        await asyncio.sleep(0.1)
        assert made.let_go("b") == 2  # that word may have come too late: it holds it yet
        b = made.server.workers.find("b")
        assert b is not None
        b.copies = ()
        made.answers_beat("b", "c")
        await asyncio.sleep(2.0)
        assert made.let_go("b") == 2

    played(course)


def test_a_renewal_waits_for_a_move_and_says_so_but_not_for_one_that_waits_itself_or_takes_long() -> None:
    """What is due is taken in any of these: a move may take an hour, and its keeper forgets what is too old."""

    async def course(made: Fleet) -> None:
        await made.until_asked("b")
        made.keeps("b")
        await asyncio.sleep(0.1)
        conducted: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        made.record.conducted = conducted
        made.plays_on(5)  # the next one is due
        await asyncio.sleep(3.0)
        assert (len(made.asked("b")), made.logged) == (1, [("renewal_waits", {"session": "s", "kept_block": 5})])
        assert made.why() == "moving: a newer snapshot is due, and is kept once the move has ended."
        attempt: Any = SimpleNamespace(takes_long=True, plan=SimpleNamespace(attempt="00000001-x"))
        for made.record.waits_for, made.record.attempt, times in (("c", None, 2), (None, attempt, 3)):
            made.protection.look()
            await made.until_asked("b", times)
            made.keeps("b", 4 + times)
            made.plays_on(4 + times)
            made.record.waits_for, made.record.attempt = None, None
            await asyncio.sleep(0.1)
            assert len(made.asked("b")) == times
            assert made.why() != ""  # it is due again, and waits again
        made.record.conducted = None
        made.protection.look()
        await made.until_asked("b", 4)
        assert made.why() == ""

    played(course)


@pytest.mark.parametrize("how", ["kept", "not done", "linked again", "died"])
def test_beside_a_snapshot_that_was_given_up_and_goes_on_no_next_one_is_begun_there(how: str) -> None:
    """It would take another slot, and be no faster. Others are asked meanwhile, and nothing is copied aside in vain."""

    async def course(made: Fleet) -> None:
        await made.until_asked("b")
        await made.until_asked("c")  # b has got nothing done for all of the time
        assert len(made.asked("b")) == 1
        await asyncio.sleep(60.0)
        assert (len(made.asked("b")), len(made.asked("c")), len(made.server.wires["a"].of(TakeSnapshot))) == (1, 1, 2)
        assert made.why().startswith("silent: ")
        b = made.server.workers.get("b")
        if how == "kept":
            made.keeps("b", 5)
            made.plays_on(6)
        elif how == "not done":
            why = NotDone(session="s", request=made.asked("b")[-1].request, code="transport", message="It broke.")
            made.asking.heard(b, why)
        elif how == "linked again":
            made.protection.linked_again("b")
        else:
            made.asking.died("b", 1)
        await made.until_asked("b", 2)
        made.keeps("b", 6)
        await asyncio.sleep(0.1)
        assert made.why() == ""

    played(course)


@pytest.mark.parametrize(("to", "ends"), [("b", True), ("c", False)])
def test_a_snapshot_that_its_keeper_is_to_pull_ends_at_once_where_that_comes_to_play_its_session(
    to: str, *, ends: bool
) -> None:
    """It would be waited for until it had got nothing done for long. For any other owner it is as good as before."""

    async def course(made: Fleet) -> None:
        await made.until_asked("b")
        made.server.dies("a")
        made.asking.died("a", 1)
        made.server.holds(to, copy_of("s", "live", epoch=2))
        made.server.wires[to].react = lambda asked: made.gives_snapshot(asked, to)
        await made.server.desk.fail_over(Failover(session="s", epoch=1, worker=to, incarnation=1, log_reaches=64))
        row = made.server.desk.row("s")
        assert row is not None
        assert row.owner == to
        made.protection.look()
        await asyncio.sleep(0.1)
        assert (len(made.asked("c")) == 1) == ends
        assert made.why() == ""  # nothing has failed

    played(course)


@pytest.mark.parametrize(("worker", "ends"), [("a", True), ("b", False)])
def test_a_snapshot_that_is_to_be_taken_ends_at_once_where_another_plays_the_session(
    worker: str, *, ends: bool
) -> None:
    async def run() -> float:
        server, sessions = await server_of("a", "b"), SessionTable()
        asking = Asking(config=FleetConfig(), workers=server.workers, sessions=sessions, desk=server.desk)
        asked = TakeSnapshot(session="s", request=1, transport="shm", nonce=b"n" * 16)
        begun = asyncio.get_running_loop().time()
        asyncio.get_running_loop().call_later(0.1, asking.owned, "s", "b")
        with pytest.raises(UserError):
            await asking.of_worker(server.workers.get(worker), asked, SnapshotTaken, 5.0)
        return asyncio.get_running_loop().time() - begun

    assert (virtual.run(run()) < 0.2) == ends


def retired(*, stays: bool) -> Copy:
    return Copy(session="s", phase="retired", epoch=1, block=5, stays=stays)


@pytest.mark.parametrize("stays", [True, False])
def test_a_copy_that_says_that_it_stays_is_let_pass_once_its_session_is_protected_no_more(*, stays: bool) -> None:
    """It had not retired when that was asked for, and what had it stay came after the word that let it pass."""

    async def course(made: Fleet) -> None:
        made.protection.protect("s", 0)
        await asyncio.sleep(0.1)
        made.server.wires["b"].sent.clear()
        made.server.holds("b", retired(stays=stays))
        made.protection.look()
        assert len(made.server.wires["b"].of(Pass)) == stays

    played(course)


@pytest.mark.parametrize("why", ["protected", "orphan", "granted"])
def test_a_copy_that_may_be_needed_is_not_let_pass(why: str) -> None:
    async def course(made: Fleet) -> None:
        made.protection.protect("s", 1 if why == "protected" else 0)
        await asyncio.sleep(0.1)
        for wire in made.server.wires.values():
            wire.sent.clear()
        if why == "orphan":
            made.falls_silent("a")
        name = "a" if why == "granted" else "b"  # and it has yet to hear that it owns the session
        made.server.holds(name, retired(stays=True))
        made.protection.look()
        assert made.server.wires[name].of(Pass) == []

    played(course)


EXPECTED = {
    "who keeps the newest": ("b", None),
    "one that keeps an older": ("c", None),
    "one that keeps none": ("d", None),
    "nobody": ("", None),
    "an older one's, which was confirmed": ("b", "c"),
    "none's, and an older one was confirmed": ("d", "e"),
}
"""Who is expected to keep the next one, and whose snapshot was found to be the newest before."""


@pytest.mark.parametrize("name", EXPECTED)
@pytest.mark.parametrize("is_due", [True, False])
def test_older_snapshots_go_for_the_newest_whoever_is_to_keep_the_next_one_and_though_none_can_be_taken(
    name: str, *, is_due: bool
) -> None:
    """Its owner is full. They take the room that other sessions lack, whatever has become of the words of each."""
    to, confirmed = EXPECTED[name]

    async def course(made: Fleet) -> None:
        full = [copy_of("t", "live"), copy_of("u", "live")]
        made.server.holds("a", copy_of("s", "live"), *full)
        made.server.wires["a"].react = made.refuses
        made.record.keeper = (to, 1) if to else None
        made.record.confirmed = None if confirmed is None else Confirmed(worker=confirmed, incarnation=1, beat=0)
        for worker, block in (("c", 30), ("b", 44), ("e", 36)):
            made.server.holds(worker, copy_of("s", "kept", block), *full[:1])
        if is_due:
            made.plays_on(60)
        for _ in range(3):
            await asyncio.sleep(0.4)
            made.answers_beat("a", "b", "c", "d", "e")
        assert [made.let_go(worker) > 0 for worker in "bcde"] == [False, True, False, True]

    played(course, "a", "b", "c", "d", "e")


CERTAIN: dict[str, Callable[[Fleet], Any]] = {
    "it is certain": lambda made: None,
    "it does not answer": lambda made: made.falls_silent("b"),
    "it is to end": lambda made: setattr(made.server.workers.get("b"), "leaving", True),
    "it was told to let go itself": lambda made: made.server.workers.send("b", LetGo(session="s")),
    "its engine does not return": lambda made: setattr(made.server.workers.get("b"), "taken_s", 60.0),
    "it plays the session": lambda made: made.is_played_by("b", 44),
    "what it keeps was not shown": lambda made: setattr(made.server.gateway, "block", 40),
    "lists since are lost": lambda made: setattr(made.server.gateway, "reaches", None),
    "its session is played by nobody": lambda made: made.falls_silent("a"),
    "not all have reported to a new server": lambda made: setattr(made.record, "resuming", True),
}


@pytest.mark.parametrize("name", CERTAIN)
def test_nothing_older_goes_for_one_of_which_it_is_not_certain_that_it_saves_the_session(name: str) -> None:
    async def course(made: Fleet) -> None:
        made.record.protect_every = 40
        for worker, block in (("b", 44), ("c", 30)):
            made.server.holds(worker, copy_of("s", "kept", block))
        made.record.keeper = ("b", 1)
        CERTAIN[name](made)
        for _ in range(2):
            await asyncio.sleep(0.4)
            made.answers_beat("a", "b", "c")
        assert (made.let_go("c") > 0) == (name == "it is certain")

    played(course)


@pytest.mark.parametrize(("newer", "older"), [((1, 44), (1, 30)), ((1, 44), (1, 44)), ((1, 44), (2, 30))])
def test_of_snapshots_whose_lists_are_lost_that_of_the_latest_block_stays_alone(
    newer: tuple[int, int], older: tuple[int, int]
) -> None:
    """Neither saves anything, and one of them takes the room that the next one lacks. No retired copy goes for it."""

    async def course(made: Fleet) -> None:
        made.server.gateway.reaches = 30
        made.server.wires["a"].react = made.refuses
        made.server.holds("b", copy_of("s", "kept", epoch=newer[0], block=newer[1]))
        made.server.holds("c", copy_of("s", "kept", epoch=older[0], block=older[1]))
        made.server.holds("d", Copy(session="s", phase="retired", epoch=1, block=20, stays=True))
        for _ in range(3):
            await asyncio.sleep(0.4)
            made.answers_beat("a", "b", "c", "d")
        let_go = [made.let_go("b") > 0, made.let_go("c") > 0]
        assert let_go == [False, True] or (newer == older and sum(let_go) == 1)
        assert made.server.wires["d"].of(Pass) == []

    played(course, "a", "b", "c", "d")


def test_of_two_equal_snapshots_one_goes_and_the_other_stays_though_its_keeper_falls_silent_just_then() -> None:
    async def course(made: Fleet) -> None:
        made.record.protect_every = 40
        for worker in ("b", "c"):
            made.server.holds(worker, copy_of("s", "kept", 44))
        for _ in range(3):
            await asyncio.sleep(0.4)
            made.answers_beat("a", "b", "c")
        (stays, goes) = ("b", "c") if made.let_go("c") else ("c", "b")
        assert (made.let_go(stays), made.let_go(goes) > 0) == (0, True)
        made.falls_silent(stays)
        made.answers_beat("a", goes)
        await asyncio.sleep(0.1)
        assert made.let_go(stays) == 0

    played(course)


def test_who_was_told_to_let_go_is_told_to_expect_the_next_one_where_that_is_asked_of_it() -> None:
    """It may have let go by then, and the lists of the next one would go by it."""

    async def course(made: Fleet) -> None:
        await made.until_asked("b")
        made.keeps("b")
        await asyncio.sleep(0.1)
        made.server.wires["b"].sent.clear()
        made.server.workers.send("b", LetGo(session="s"))
        made.plays_on(7)
        await made.until_asked("b")
        order = [type(message) for message in made.server.wires["b"].sent if isinstance(message, LetGo | Expect | Keep)]
        assert order == [LetGo, Expect, Keep]

    played(course)


@pytest.mark.parametrize(("newer", "older"), [("b", "c"), ("c", "b")])
@pytest.mark.parametrize("blocks", [(13, 10), (13, 13)])
def test_a_server_that_finds_two_snapshots_lets_the_needless_one_go_though_none_newer_can_be_kept(
    newer: str, older: str, blocks: tuple[int, int]
) -> None:
    """An earlier server has died before it had said so; its room is the very room that the next one lacks."""

    async def course(made: Fleet) -> None:
        made.record.protect_every = 40
        for name, block in zip((newer, older), blocks, strict=True):
            made.server.holds(name, copy_of("s", "kept", block), copy_of("t", "live"), copy_of("u", "live"))
        made.plays_on(60)
        await asyncio.sleep(2.0)
        made.answers_beat("a", "b", "c")
        await asyncio.sleep(1.1)
        assert made.why().startswith("no_slot: ")
        made.answers_beat("a", "b", "c")
        await asyncio.sleep(0.1)
        kept_on = made.record.keeper[0] if made.record.keeper else ""
        assert kept_on == newer or blocks[0] == blocks[1]
        assert made.let_go({"b": "c", "c": "b"}[kept_on]) > 0
        assert made.let_go(kept_on) == 0

    played(course)
