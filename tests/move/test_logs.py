"""Every change of phase of both tables is logged, with session, attempt and epoch."""

import asyncio
from collections.abc import Awaitable, Callable

from tests.move.harness import SESSION, Fleet, LedgerFault, Plays, Worker
from tests.move.virtual import run
from worldmove.move.ledger_rules import CloseAttempt, CommitAttempt, Operation
from worldmove.move.messages import AnyMoveMessage, Boundary, Cancel
from worldmove.move.protocol import DestinationPhase, SourcePhase

Logged = list[dict[str, object]]


def phases(logged: Logged, side: str, worker: str) -> list[object]:
    """The phases of one end, in order, each one's predecessor checked."""
    mine = [line for line in logged if (line["side"], line["worker"]) == (side, worker)]
    assert [line["before"] for line in mine[1:]] == [line["phase"] for line in mine[:-1]]
    return [line["phase"] for line in mine]


async def a_committed_move(fleet: Fleet) -> None:
    await fleet.play(3)
    await fleet.move("B")
    await fleet.play(2)
    await fleet.settled()


async def a_suspected_owner(fleet: Fleet) -> None:
    """B is granted the session and suspected before it has shown a block; A takes it back, and passes it."""
    await fleet.play(3)
    fleet.on_promote = lambda copy: fleet.suspected.append("B")
    await fleet.move("B", limit_s=10.0)
    await fleet.wait(2.0)
    fleet.workers["B"].copies[0].play()
    await fleet.wait(1.0)
    fleet.suspected.clear()
    await fleet.play(2)
    await fleet.wait(1.0)


async def a_commit_that_stays_unanswered(fleet: Fleet) -> None:
    """B's commit is granted and B does not hear it; A takes the session back and goes on."""

    def deaf(worker: Worker, operation: Operation) -> LedgerFault | None:
        if not isinstance(operation, CommitAttempt):
            return None
        fleet.suspected[:] = ["B"]
        return LedgerFault.AFTER_EFFECT

    await fleet.play(3)
    fleet.ledger_fault = deaf
    moving = asyncio.create_task(fleet.move("B", limit_s=10.0))
    await fleet.wait(5.0)
    await fleet.play(2)
    fleet.ledger_fault = lambda worker, operation: None
    await fleet.wait(1.0)
    moving.cancel()
    await asyncio.gather(moving, return_exceptions=True)


async def a_late_grant(fleet: Fleet) -> None:
    """B gives up, and is told that it owns what it has discarded."""

    def grant(worker: Worker, operation: Operation) -> None:
        if isinstance(operation, CloseAttempt) and worker.name == "B":
            fields = {"session": operation.session, "attempt": operation.attempt, "epoch": operation.epoch}
            fleet.decide(CommitAttempt(**fields, boundary=3, worker="B", incarnation=1))  # type: ignore[arg-type]

    def cancel(message: AnyMoveMessage) -> None:
        if isinstance(message, Boundary):
            fleet.say(Cancel, "B", message.attempt, message.epoch)

    await fleet.play(3)
    fleet.ledger_fault, fleet.on_post = grant, cancel
    await fleet.move("B", limit_s=10.0)


STORIES = (a_committed_move, a_suspected_owner, a_commit_that_stays_unanswered, a_late_grant)


def logged_in(story: object) -> Logged:
    async def main() -> Logged:
        fleet = Fleet()
        await story(fleet)  # type: ignore[operator]
        return [line for line in fleet.logged if line["event"] == "move_phase"]

    found: Logged = run(main())
    return found


def test_a_committed_move_logs_each_phase_of_both_ends_in_order() -> None:
    logged = logged_in(a_committed_move)
    assert phases(logged, "source", "A") == ["frozen", "doubt", "retired", "none"]
    assert phases(logged, "destination", "B") == ["shadow", "verified", "doubt", "live"]


def test_every_phase_of_both_tables_is_logged_with_session_attempt_and_epoch() -> None:
    logged = [line for story in STORIES for line in logged_in(story)]
    said = {(line["side"], line["phase"]) for line in logged}
    assert {("source", phase.value) for phase in SourcePhase} <= said
    assert {("destination", phase.value) for phase in DestinationPhase} <= said
    for line in logged:
        assert line["session"] == SESSION
        assert isinstance(line["attempt"], str)
        assert line["attempt"]
        assert isinstance(line["epoch"], int)
        assert line["epoch"] >= 1


def test_a_copy_that_is_only_played_logs_no_phase() -> None:
    async def quiet(fleet: Fleet) -> None:
        await fleet.play(5)

    assert logged_in(quiet) == []


class Overheard(list[dict[str, object]]):
    """A log that notes of each line whether anybody played the session when it was written, and when that was."""

    def __init__(self, fleet: Fleet) -> None:
        super().__init__()
        self._fleet = fleet

    def append(self, line: dict[str, object]) -> None:
        copies = [copy for worker in self._fleet.workers.values() for copy in worker.copies]
        played = any(copy.plays is Plays.LIVE for copy in copies)
        super().append({**line, "played": played, "written": asyncio.get_running_loop().time()})


def overheard_in(story: Callable[[Fleet], Awaitable[None]]) -> Logged:
    async def main() -> Logged:
        fleet = Fleet()
        fleet.logged = Overheard(fleet)
        await story(fleet)
        return [line for line in fleet.logged if line["event"] == "move_phase"]

    found: Logged = run(main())
    return found


def test_while_nobody_plays_a_session_that_is_moved_no_phase_is_written() -> None:
    logged = overheard_in(a_committed_move)
    assert {line["phase"] for line in logged} >= {"frozen", "doubt", "verified", "live"}
    assert [line for line in logged if not line["played"]] == []


def test_a_phase_that_is_written_later_says_when_it_was() -> None:
    logged = overheard_in(a_committed_move)
    instants = {(line["side"], line["phase"]): line["at"] for line in logged}
    assert instants["source", "doubt"] < instants["destination", "live"]  # type: ignore[operator]
    assert all(line["at"] <= line["written"] for line in logged)  # type: ignore[operator]
    doubt = next(line for line in logged if (line["side"], line["phase"]) == ("source", "doubt"))
    assert doubt["at"] < doubt["written"]  # type: ignore[operator]
