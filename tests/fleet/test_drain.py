"""A worker that was told to end: every session that can go does, whatever holds another up."""

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from tests.fleet.fakes import Server, copy_of, server_of
from tests.move import virtual
from worldmove.errors import UserError
from worldmove.fleet.config import FleetConfig
from worldmove.fleet.drain import AT_ONCE, LONG_TRIES, NO_ROOM, Drain
from worldmove.fleet.reports import Outcome
from worldmove.fleet.sessions import SessionRecord, SessionTable
from worldmove.fleet.views import WorkerState
from worldmove.fleet.worker_table import STUCK_S, WorkerTable
from worldmove.move.ledger_row import Row
from worldmove.move.strategy import Strategy
from worldmove.worker.background import Background
from worldmove.worker.messages import KEPT, Copy, LetGo, ToWorker

MOVE_S, LEASE_S = 2.5, 5.0
CONFIG = FleetConfig(workers=("a", "b", "c"))
Refuses = Callable[[str, str], str]
"""Why a session does not come to a worker; "" where it does."""


class Moves:
    """A mover: each move takes a time, and changes the row. ``slow``: sessions that only a boundary copy moves."""

    def __init__(
        self,
        refuses: Refuses = lambda session, to: "",
        slow: tuple[str, ...] = (),
        install_s: float = 0.0,
        bears_s: float = 1e9,
        *,
        fetch_s: float = 0.0,
        fails_after_fetch: bool = False,
        refusal_s: float = 0.0,
    ) -> None:
        """``install_s``: what the destination's one engine takes for each, also for one that is given up by then.

        ``bears_s``: how long of it the pause of a boundary copy bears; any other does it before. ``fetch_s``: how long
        a state is on its way, piece by piece, before a pause that is short; a boundary copy is refused for that.
        ``refusal_s``: what it takes to refuse one.
        """
        self.steps = Counter[str]()
        self._fetch_s, self._fails, self._refusal_s = fetch_s, fails_after_fetch, refusal_s
        self.rows: dict[str, Row] = {}
        self.asked: list[tuple[str, str, Strategy | None]] = []
        self.most_at_once = 0
        self._under_way: dict[str, asyncio.Event] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._refuses = refuses
        self._slow = slow
        self._install_s, self._bears_s, self._engine = install_s, bears_s, asyncio.Lock()

    async def move(self, session: str, to: str, *, damage: bool, strategy: Strategy | None) -> Any:
        self.asked.append((session, to, strategy))
        if session in self._under_way:
            raise UserError("it moves already", code="moving", status=409)
        if why := self._refuses(session, to):
            await asyncio.sleep(self._refusal_s)
            return SimpleNamespace(outcome=Outcome.REFUSED, reason=why, detail="")
        if self._fetch_s and strategy is not None:
            return SimpleNamespace(outcome=Outcome.REFUSED, reason="too_slow", detail="")
        given_up = self._under_way[session] = asyncio.Event()
        self.most_at_once = max(self.most_at_once, len(self._under_way))
        try:
            bears_s = LEASE_S if strategy is None else self._bears_s
            if self._install_s and not await self._installed(min(LEASE_S, bears_s)):
                return SimpleNamespace(outcome=Outcome.ABORTED, reason="closed", detail="")
            if not await self._fetched(session, given_up):
                return SimpleNamespace(outcome=Outcome.ABORTED, reason="cancelled", detail="")
            async with asyncio.timeout(1e9 if session in self._slow and strategy is None else MOVE_S):
                await given_up.wait()
                return SimpleNamespace(outcome=Outcome.ABORTED, reason="cancelled", detail="")
        except TimeoutError:
            self.rows[session] = replace(self.rows[session], owner=to, epoch=2)
            return SimpleNamespace(outcome=Outcome.COMMITTED, reason="done", detail="")
        finally:
            self._under_way.pop(session, None)

    async def _fetched(self, session: str, given_up: asyncio.Event) -> bool:
        """Say whether all of it came: the destination says twice a second how it gets on."""
        for _ in range(int(self._fetch_s / 0.5)):
            await asyncio.sleep(0.5)
            if given_up.is_set():
                return False
            self.steps[session] += 1
        return not (self._fetch_s and self._fails)

    async def _installed(self, within_s: float) -> bool:
        """Say whether it was. What has begun goes on when it is given up; what waits for the engine does not."""
        begun = asyncio.get_running_loop().time()
        has_begun = asyncio.Event()

        async def install() -> None:
            async with self._engine:
                has_begun.set()
                await asyncio.sleep(self._install_s)

        installing = asyncio.create_task(install())
        self._tasks.append(installing)
        await asyncio.wait([installing], timeout=within_s)
        if not has_begun.is_set():
            installing.cancel()
        return asyncio.get_running_loop().time() - begun < within_s

    def num_steps(self, session: str) -> int:
        return self.steps[session] if session in self._under_way else 0

    def begin_for_ever(self, session: str) -> None:
        """Somebody moves it over a path that hardly carries anything."""
        self._under_way[session] = asyncio.Event()

    async def cancel(self, session: str) -> None:
        if session not in self._under_way:
            raise UserError("no move is under way", code="not_moving", status=409)
        self._under_way.pop(session).set()


def drained(
    num_sessions: int,
    moves: Moves,
    room: dict[str, int],
    other: dict[str, dict[str, str]] | None = None,
    *,
    stalled: tuple[str, ...] = (),
    kept: tuple[str, ...] = (),
    is_busy: bool = False,
    at_block: bool = True,
    yields: list[ToWorker] | None = None,
) -> tuple[set[str], float, list[str]]:
    """Drain ``a``; return which sessions it still has, how long that took, and what was said of those not moved.

    ``is_busy``: every other worker gets on with what others have asked for, all the time.

    ``room``: free slots of the other workers; ``other``: what of a worker's environment is otherwise. ``stalled``:
    sessions whose engine does not return, from a block where ``at_block``; ``kept``: those of which the first other
    worker keeps a snapshot. ``yields``: ``b`` keeps one of what ``c`` plays, lets it go as it is told, and notes that.
    """

    async def run() -> tuple[set[str], float, list[str]]:
        server, said = await server_of("a", *room), list[str]()
        for name, slots in room.items():
            server.workers.get(name).slots_free = slots
            environ(server, name, (other or {}).get(name, {}))
        sessions, failures = SessionTable(), list[BaseException]()
        for number in range(num_sessions):
            name = f"s-{number}"
            sessions.add(SessionRecord(name=name, seed=1, worker="a", incarnation=1, throwaway=False))
            moves.rows[name] = Row(session=name, owner="a", incarnation=1, epoch=1)
        desk = SimpleNamespace(row=moves.rows.get, owner_is_missing=lambda row: False)
        gateway = server.gateway
        gateway.stalled, server.workers.is_stalled = stalled, stalled.__contains__
        copies = tuple(Copy(session=name, phase=KEPT, epoch=1, block=4) for name in kept)
        server.workers.get(next(iter(room))).copies = copies
        books: Any = SimpleNamespace(
            config=CONFIG, workers=server.workers, sessions=sessions, desk=desk, gateway=lambda: gateway
        )
        if yields is not None:
            one_yields(server, sessions, moves, yields)
        background = Background(lambda name, error: failures.append(error))
        mover: Any = moves
        leaving = server.workers.get("a")
        leaving.leaving, leaving.taken_s, leaving.at_block = True, STUCK_S * bool(stalled), at_block
        busy = asyncio.create_task(getting_on(server.workers, tuple(room) if is_busy else ()))
        begun = asyncio.get_running_loop().time()
        left = await Drain(
            books,
            mover,
            background,
            leaving,
            lambda event, fields: said.extend(str(fields[key]) for key in fields if key == "why"),
        ).run()
        took_s = asyncio.get_running_loop().time() - begun
        busy.cancel()
        assert left == [name for name, row in moves.rows.items() if row.owner == "a"]
        await background.stop()
        assert failures == []
        return set(left), took_s, said

    return virtual.run(run())


async def getting_on(workers: WorkerTable, names: tuple[str, ...]) -> None:
    """Get on with other things at each of them."""
    while names:
        await asyncio.sleep(0.5)
        for name in names:
            workers.get(name).num_done += 1
            workers.get(name).num_pulled += 1


def one_yields(server: Server, sessions: SessionTable, moves: Moves, told: list[ToWorker]) -> None:
    def let_go(message: ToWorker) -> None:
        told.append(message)
        server.holds("b", *(copy for copy in keeper.copies if copy.session != "t"))
        keeper.slots_free = 1

    sessions.add(SessionRecord(name="t", seed=1, worker="c", incarnation=1, throwaway=False))
    moves.rows["t"] = Row(session="t", owner="c", incarnation=1, epoch=1)
    server.workers.get("c").copies = (copy_of("t", "live"),)
    keeper = server.workers.get("b")
    keeper.copies = (*keeper.copies, copy_of("t", KEPT))
    server.wires["b"].react = let_go


def environ(server: Server, name: str, fields: dict[str, str]) -> None:
    record = server.workers.get(name)
    assert record.hello is not None
    record.hello = msgspec.structs.replace(record.hello, environment={**record.hello.environment, **fields})


@pytest.mark.parametrize("kept", [(), ("s-0",)])
def test_one_of_which_there_is_no_snapshot_takes_the_slot_of_anothers_and_one_of_which_there_is_does_not(
    kept: tuple[str, ...],
) -> None:
    moves, told = Moves(), list[ToWorker]()
    left, _, _ = drained(1, moves, {"b": 0, "c": 0}, kept=kept, yields=told)
    assert (left, told) == (({"s-0"}, []) if kept else (set(), [LetGo(session="t")]))
    assert moves.asked == ([] if kept else [("s-0", "b", None)])


def test_where_one_is_refused_no_second_snapshot_is_let_go_for_it() -> None:
    told = list[ToWorker]()
    left, _, said = drained(1, Moves(lambda session, to: "state_refused"), {"b": 0, "c": 0}, yields=told)
    assert (left, told) == ({"s-0"}, [LetGo(session="t")])
    assert "state_refused: " in said


def test_one_that_cannot_be_moved_holds_no_other_up() -> None:
    moves = Moves(lambda session, to: "state_refused" if session in ("s-0", "s-3") else "")
    left, took_s, said = drained(9, moves, {"b": 12})
    assert left == {"s-0", "s-3"}
    assert CONFIG.leave_s < took_s < CONFIG.leave_s + 3 * MOVE_S
    assert said == ["state_refused: "] * 2  # once each, however often it was tried


def test_however_many_there_are_they_go_as_long_as_any_does_and_some_at_once() -> None:
    moves = Moves()
    left, took_s, said = drained(40, moves, {"b": 20, "c": 30})
    assert (left, said) == (set(), [])
    assert moves.most_at_once == AT_ONCE
    assert took_s == pytest.approx(10 * MOVE_S, abs=3.0)
    assert took_s > CONFIG.leave_s


def test_they_go_where_it_is_computed_as_here_and_where_there_is_room() -> None:
    unlike = {"c": {"engine.weights_sha256": "another"}}
    moves = Moves()
    left, _, _ = drained(3, moves, {"b": 3, "c": 9}, unlike)
    assert (left, {to for _, to, _ in moves.asked}) == (set(), {"b"})
    left, _, said = drained(3, full := Moves(), {"b": 0, "c": 9}, unlike)
    assert (len(left), full.asked, set(said)) == (3, [], {NO_ROOM})


def test_no_more_go_to_a_worker_at_once_than_it_has_room_for() -> None:
    moves = Moves()
    drained(4, moves, {"b": 1, "c": 2})
    assert sorted(to for _, to, _ in moves.asked[:3]) == ["b", "c", "c"]


def test_one_that_was_refused_somewhere_is_tried_elsewhere() -> None:
    moves = Moves(lambda session, to: "transport" if to == "c" else "")
    left, took_s, _ = drained(2, moves, {"b": 2, "c": 9})
    assert left == set()
    assert took_s < CONFIG.leave_s


@pytest.mark.parametrize("is_busy", [False, True])
def test_one_that_has_not_gone_in_half_of_the_time_goes_by_a_boundary_copy(*, is_busy: bool) -> None:
    """Also where its destination gets on with everything but that."""
    moves = Moves(slow=("s-1",))
    left, took_s, _ = drained(3, moves, {"b": 9}, is_busy=is_busy)
    assert left == set()
    assert took_s == pytest.approx(CONFIG.leave_s / 2 + MOVE_S, abs=1.0)
    assert [strategy for session, _, strategy in moves.asked if session == "s-1"] == [None, Strategy.BOUNDARY_COPY]


@pytest.mark.parametrize("fetch_s", [15.0, 25.0, 90.0])
@pytest.mark.parametrize("num_sessions", [1, 9])
def test_one_that_takes_longer_than_all_of_the_time_goes_where_its_bytes_keep_coming(
    fetch_s: float, num_sessions: int
) -> None:
    """A state of some GB over a gigabit: its pause is short, and what comes before it is not."""
    left, took_s, said = drained(num_sessions, moves := Moves(fetch_s=fetch_s), {"b": 12})
    assert (left, said) == (set(), [])
    assert took_s == pytest.approx(-(-num_sessions // AT_ONCE) * (fetch_s + MOVE_S), rel=0.1)
    assert len(moves.asked) == num_sessions


@pytest.mark.parametrize("is_busy", [False, True])
@pytest.mark.parametrize("fetch_s", [0.5, 1.0, 5.0, 25.0])
def test_one_whose_bytes_keep_coming_and_that_never_goes_does_not_keep_its_worker_for_ever(
    fetch_s: float, *, is_busy: bool
) -> None:
    moves = Moves(fetch_s=fetch_s, fails_after_fetch=True)
    left, took_s, _ = drained(1, moves, {"b": 12}, is_busy=is_busy)
    assert left == {"s-0"}
    assert took_s < 10 * CONFIG.leave_s


@pytest.mark.parametrize("is_busy", [False, True])
@pytest.mark.parametrize("refusal_s", [0.0, 0.7])
@pytest.mark.parametrize("why", ["resuming", "copy_held", "not_measured"])
def test_tries_that_did_not_begin_are_none_for_which_bytes_have_come_in_vain(
    why: str, refusal_s: float, *, is_busy: bool
) -> None:
    """For some seconds it is refused; then it takes longer than all of the time."""
    begun = list[float]()

    def refuses(session: str, to: str) -> str:
        begun.append(asyncio.get_running_loop().time())
        return why if begun[-1] < begun[0] + 4.0 else ""

    left, took_s, said = drained(1, Moves(refuses, fetch_s=30.0, refusal_s=refusal_s), {"b": 12}, is_busy=is_busy)
    assert len(begun) >= LONG_TRIES
    assert (left, said) == (set(), [f"{why}: "])
    assert took_s < 4.0 + 30.0 + MOVE_S + 6.0


def test_a_move_that_somebody_else_has_asked_for_holds_nobody_up_and_is_given_up_in_half_of_the_time() -> None:
    moves = Moves()
    moves.begin_for_ever("s-0")
    left, took_s, said = drained(3, moves, {"b": 9})
    assert left == set()
    assert took_s < CONFIG.leave_s / 2 + 2 * MOVE_S
    assert said == ["it moves already"]


def test_one_that_comes_to_no_boundary_is_not_waited_for_where_it_goes_on_without_this_worker() -> None:
    moves = Moves(lambda session, to: "never_still" if session == "s-0" else "")
    left, took_s, said = drained(3, moves, {"b": 12}, stalled=("s-0",), kept=("s-0",))
    assert (left, said) == ({"s-0"}, [])
    assert MOVE_S <= took_s < 2 * MOVE_S  # the others go first
    assert "s-0" not in [session for session, _, _ in moves.asked]


@pytest.mark.parametrize(
    ("stalled", "kept", "at_block"),
    [
        (("s-0",), (), True),
        ((), ("s-0",), True),
        (("s-0",), ("s-1",), True),
        (("s-0",), ("s-0",), False),  # it waits for an engine that is at somebody's opening
    ],
)
def test_one_that_would_be_lost_or_may_be_moved_yet_is_waited_for(
    stalled: tuple[str, ...], kept: tuple[str, ...], *, at_block: bool
) -> None:
    moves = Moves(lambda session, to: "never_still" if session == "s-0" else "")
    left, took_s, _ = drained(1, moves, {"b": 12}, stalled=stalled, kept=kept, at_block=at_block)
    assert left == {"s-0"}
    assert took_s >= CONFIG.leave_s


@pytest.mark.parametrize("install_s", [1.2, 3.0, 4.5])
@pytest.mark.parametrize("bears_s", [1e9, 1.0])
def test_where_moves_wait_for_one_engine_so_long_that_they_come_to_nothing_fewer_go_at_once(
    install_s: float, bears_s: float
) -> None:
    left, _, _ = drained(12, moves := Moves(install_s=install_s, bears_s=bears_s), {"b": 20})
    assert left == set()
    assert moves.most_at_once == AT_ONCE


@pytest.mark.parametrize("is_missing", [False, True])
@pytest.mark.parametrize(
    ("why", "room", "num_held", "is_waited_for"),
    [
        ("", 1, 1, True),
        ("silent: a did not answer", 1, 1, True),
        ("transport: the path has lied", 1, 1, True),
        ("no_slot: another's snapshot was just copied aside", 1, 2, True),
        ("no_keeper: none was there", 1, 1, True),
        ("", 0, 1, False),
        ("", 1, 3, False),
        ("state_too_large: of no slot", 1, 1, False),
    ],
)
def test_the_only_snapshot_is_waited_for_while_another_can_be_kept_whatever_has_failed_by_now(
    why: str, room: int, num_held: int, *, is_waited_for: bool, is_missing: bool
) -> None:
    """It is let go where no other can be kept as things are; and never while its session's owner is missing.

    ``room``: free slots of who could keep it; ``num_held``: copies in its owner's three slots.
    """

    async def run() -> float:
        server = await server_of("a", "b", "c")
        server.workers.get("b").leaving = True
        server.holds("a", *(copy_of(f"s-{number}", "live") for number in range(num_held)))
        server.holds("b", copy_of("s", KEPT))
        server.holds("c", *(copy_of(f"c-{number}", "live") for number in range(3 - room)))
        for name, slots in {"a": 0, "c": room}.items():
            record = server.workers.get(name)
            assert record.hello is not None
            record.hello, record.slots_free = msgspec.structs.replace(record.hello, num_slots=3), slots
        sessions, clock = SessionTable(), asyncio.get_running_loop().time
        sessions.add(SessionRecord(name="s", seed=1, worker="a", incarnation=1, throwaway=False)).unkept_why = why
        row = Row(session="s", owner="a", incarnation=1, epoch=1)
        desk = SimpleNamespace(row={"s": row}.get, owner_is_missing=lambda row: is_missing)
        books: Any = SimpleNamespace(config=CONFIG, workers=server.workers, sessions=sessions, desk=desk)
        mover: Any = Moves()
        background = Background(lambda name, error: None)
        begun = clock()
        asyncio.get_running_loop().call_later(5.0, server.holds, "b")  # it is kept elsewhere by then
        await Drain(books, mover, background, server.workers.get("b"), lambda event, fields: None).run()
        return clock() - begun

    assert virtual.run(run()) == pytest.approx(5.0 if is_waited_for or is_missing else 0.0, abs=0.2)


@pytest.mark.parametrize(("num_unkept", "is_waited_for"), [(0, True), (LONG_TRIES, False)])
def test_a_snapshot_that_comes_piece_by_piece_is_waited_for_unless_many_have_come_to_nothing(
    num_unkept: int, *, is_waited_for: bool
) -> None:
    """It may take longer than all of the time; here is all that there is beside the session's owner."""
    pull_s = 50.0

    async def run() -> float:
        server = await server_of("a", "b", "c")
        server.holds("b", copy_of("s", KEPT))
        sessions, clock = SessionTable(), asyncio.get_running_loop().time
        record = sessions.add(SessionRecord(name="s", seed=1, worker="a", incarnation=1, throwaway=False))
        record.keeper, record.keeping, record.num_unkept = ("c", 1), True, num_unkept
        row = Row(session="s", owner="a", incarnation=1, epoch=1)
        desk = SimpleNamespace(row={"s": row}.get, owner_is_missing=lambda row: False)
        books: Any = SimpleNamespace(config=CONFIG, workers=server.workers, sessions=sessions, desk=desk)

        async def pull() -> None:
            for _ in range(int(pull_s / 5.0)):
                await asyncio.sleep(5.0)
                server.workers.get("c").num_pulled += 1
            server.holds("b")

        pulling, begun = asyncio.create_task(pull()), clock()
        background, mover = Background(lambda name, error: None), Moves()
        leaving: Any = server.workers.get("b")
        await Drain(books, mover, background, leaving, lambda event, fields: None).run()  # type: ignore[arg-type]
        pulling.cancel()
        return clock() - begun

    assert virtual.run(run()) == pytest.approx(pull_s if is_waited_for else CONFIG.leave_s, abs=0.2)


@pytest.mark.parametrize("phase", ["live", "frozen", "superseded", "retired", "shadow", "following"])
def test_a_copy_of_what_another_owns_is_waited_for_until_it_is_let_go(phase: str) -> None:
    """Whoever was given the session may turn out to hold nothing, or die before it has shown a block."""

    async def run() -> float:
        server = await server_of("a", "b")
        server.holds("b", copy_of("s", phase), copy_of("forgotten", phase), copy_of("lost", phase))
        sessions, clock = SessionTable(), asyncio.get_running_loop().time
        row = Row(session="s", owner="a", incarnation=1, epoch=2)
        rows = {"s": row, "lost": replace(row, session="lost", lost=True)}
        for name in rows:
            sessions.add(SessionRecord(name=name, seed=1, worker="a", incarnation=1, throwaway=False))
        desk = SimpleNamespace(row=rows.get, owner_is_missing=lambda row: False)
        books: Any = SimpleNamespace(config=CONFIG, workers=server.workers, sessions=sessions, desk=desk)
        mover: Any = Moves()
        background = Background(lambda name, error: None)
        begun = clock()
        rest = (copy_of("forgotten", phase), copy_of("lost", phase))
        asyncio.get_running_loop().call_later(5.0, server.holds, "b", *rest)  # a newer block was shown
        await Drain(books, mover, background, server.workers.get("b"), lambda event, fields: None).run()
        return clock() - begun

    assert virtual.run(run()) == pytest.approx(5.0, abs=0.2)


@pytest.mark.parametrize("phase", ["retired", KEPT])
@pytest.mark.parametrize("may_be_kept", [True, False])
def test_a_retired_copy_of_a_protected_session_is_waited_for_as_a_snapshot_is_once_a_newer_block_was_shown(
    phase: str, *, may_be_kept: bool
) -> None:
    async def run() -> float:
        server = await server_of("a", "b", *(["c"] if may_be_kept else []))
        leaving = server.workers.get("b")
        leaving.leaving = True
        server.holds("b", copy_of("s", phase))
        sessions, clock = SessionTable(), asyncio.get_running_loop().time
        sessions.add(SessionRecord(name="s", seed=1, worker="a", incarnation=1, throwaway=False))
        row = Row(session="s", owner="a", incarnation=1, epoch=2, shown=True)
        desk = SimpleNamespace(row={"s": row}.get, owner_is_missing=lambda row: False)
        books: Any = SimpleNamespace(config=CONFIG, workers=server.workers, sessions=sessions, desk=desk)
        mover: Any = Moves()
        begun = clock()
        asyncio.get_running_loop().call_later(5.0, server.holds, "b")
        await Drain(books, mover, Background(lambda name, error: None), leaving, lambda event, fields: None).run()
        return clock() - begun

    assert virtual.run(run()) == pytest.approx(5.0 if may_be_kept else 0.0, abs=0.2)


def left_without_room(until: Callable[[Server], None], at_s: float, moves: Moves, plays: str = "") -> tuple[int, float]:
    """Drain ``a``, of three sessions, where ``b`` has no room; return how many are left, and how long that took.

    ``until`` happens at ``at_s``. ``plays``: a session of ``b``'s.
    """

    async def run() -> tuple[int, float]:
        server, sessions, loop = await server_of("a", "b"), SessionTable(), asyncio.get_running_loop()
        for name in ("s-0", "s-1", "s-2", *([plays] if plays else [])):
            to = "b" if name == plays else "a"
            sessions.add(SessionRecord(name=name, seed=1, worker=to, incarnation=1, throwaway=False))
            moves.rows[name] = Row(session=name, owner=to, incarnation=1, epoch=1)
        desk, leaving = SimpleNamespace(row=moves.rows.get), server.workers.get("a")
        leaving.leaving, leaving.leaving_since = True, loop.time()
        server.workers.get("b").slots_free = 0
        gateway = server.gateway
        books: Any = SimpleNamespace(
            config=CONFIG, workers=server.workers, sessions=sessions, desk=desk, gateway=lambda: gateway
        )
        mover: Any = moves
        background, begun = Background(lambda name, error: None), loop.time()
        loop.call_later(at_s, until, server)
        left = await Drain(books, mover, background, leaving, lambda event, fields: None).run()
        await background.stop()
        return len(left), loop.time() - begun

    return virtual.run(run())


def frees(server: Server) -> None:
    server.workers.get("b").slots_free = 3


@pytest.mark.parametrize("at_s", [0.05, 3.1, 9.0, 19.5])
def test_where_there_was_no_room_they_go_as_soon_as_there_is_some(at_s: float) -> None:
    left, took_s = left_without_room(frees, at_s, moves := Moves())
    assert (left, len(moves.asked)) == (0, 3)
    assert took_s == pytest.approx(at_s + MOVE_S, abs=0.3)


@pytest.mark.parametrize("returns", [True, False])
@pytest.mark.parametrize("in_s", [1.0, 15.0, 100.0])
@pytest.mark.parametrize("ends_at", [0.5, 6.0])
def test_one_that_is_started_anew_is_waited_for_and_gone_to_at_once_but_not_for_ever(
    ends_at: float, in_s: float, *, returns: bool
) -> None:
    def ready(server: Server) -> None:
        server.workers.all()[1].state = WorkerState.READY
        frees(server)

    def ends(server: Server) -> None:
        server.workers.get("b").leaving = True
        asyncio.get_running_loop().call_later(0.3, starts, server)

    def starts(server: Server) -> None:
        hello = server.workers.get("b").hello
        server.workers.gone("b", 1)
        record = server.workers.begin("b")
        record.hello = hello
        if returns:
            asyncio.get_running_loop().call_later(in_s, ready, server)

    left, took_s = left_without_room(ends, ends_at, Moves())
    assert left == (0 if returns else 3)
    there_s = ends_at + 0.3 + in_s + MOVE_S
    assert took_s == pytest.approx(there_s if returns else CONFIG.return_s + CONFIG.leave_s, abs=0.3)


@pytest.mark.parametrize("told_before", [True, False])
def test_of_two_that_are_to_end_and_play_something_who_was_told_first_goes_to_the_other(*, told_before: bool) -> None:
    def told(server: Server) -> None:
        worker = server.workers.get("b")
        worker.leaving, worker.is_emptied, worker.slots_free = True, True, 3
        worker.leaving_since = -1.0 if told_before else asyncio.get_running_loop().time()

    left, took_s = left_without_room(told, 1.0, Moves(), plays="t")
    assert left == (3 if told_before else 0)  # here nobody empties the other
    assert took_s == pytest.approx(CONFIG.return_s + CONFIG.leave_s if told_before else 1.0 + MOVE_S, abs=0.3)
