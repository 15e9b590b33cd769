"""Questions about a session's state: one answer each, from its owner, or the reason why there is none."""

import asyncio
import dataclasses
from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from tests.fleet.fakes import ENVIRONMENT, Server, server_of
from tests.move import virtual
from worldmove.errors import UserError
from worldmove.fleet.asking import Asking, first_number
from worldmove.fleet.config import FleetConfig
from worldmove.fleet.opener import require_equal
from worldmove.fleet.ports import Beginning
from worldmove.fleet.sessions import SessionRecord, SessionTable
from worldmove.fleet.workers import WorkerRecord
from worldmove.worker.message import SnapshotFacts
from worldmove.worker.messages import Describe, Described, Keep, Kept, NotDone, Save, SnapshotTaken, TakeSnapshot

Act = Callable[[Server, Asking, Describe], None]


def asked(act: Act, save_s: float = 5.0) -> Described:
    """Ask for a session's leaves; ``act`` sees the question that its owner gets."""

    async def run() -> Described:
        server, sessions = await server_of("a", "b"), SessionTable()
        sessions.add(SessionRecord(name="s", seed=1, worker="a", incarnation=1, throwaway=False))
        asking = Asking(config=FleetConfig(save_s=save_s), workers=server.workers, sessions=sessions, desk=server.desk)
        server.wires["a"].react = lambda question: act(server, asking, question)
        return await asking.describe("s")

    return virtual.run(run())


def described(request: int) -> Described:
    return Described(session="s", request=request, block=3, num_leaves=0, num_bytes=0, leaves=())


def test_the_owners_answer_is_the_answer() -> None:
    def act(server: Server, asking: Asking, question: Describe) -> None:
        asking.heard(server.workers.get("b"), described(question.request))  # it was not asked
        asking.heard(server.workers.get("a"), described(question.request + 1))
        asking.heard(server.workers.get("a"), described(question.request))

    assert asked(act) == described(1)


def test_what_cannot_be_done_is_said_in_the_workers_words() -> None:
    def act(server: Server, asking: Asking, question: Describe) -> None:
        why = NotDone(session="s", request=question.request, code="moving", message="The session s is frozen here.")
        asking.heard(server.workers.get("a"), why)

    with pytest.raises(UserError, match="frozen here") as refused:
        asked(act)
    assert (refused.value.code, refused.value.status) == ("moving", 409)


def test_an_answer_of_another_kind_is_blamed_on_who_gave_it() -> None:
    def act(server: Server, asking: Asking, question: Describe) -> None:
        asking.heard(server.workers.get("a"), Kept(session="s", request=question.request, block=3))

    with pytest.raises(UserError, match="a has answered what is no answer: Kept where Described was asked for") as bad:
        asked(act)
    assert (bad.value.code, bad.value.status) == ("bad_answer", 502)


def test_an_answer_about_another_session_is_none() -> None:
    def act(server: Server, asking: Asking, question: Describe) -> None:
        asking.heard(server.workers.get("a"), replace(described(question.request), session="s-9"))
        asking.heard(server.workers.get("a"), described(question.request))

    assert asked(act) == described(1)


def test_an_owner_that_dies_or_stays_silent_is_said_to() -> None:
    with pytest.raises(UserError, match="a ended before it had answered"):
        asked(lambda server, asking, question: asking.died("a", 1))
    with pytest.raises(UserError, match="has not answered") as silent:
        asked(lambda server, asking, question: None, save_s=0.01)
    assert (silent.value.code, silent.value.status) == ("silent", 503)


@pytest.mark.parametrize(
    ("happens", "code", "status"),
    [
        (Asking.linked_again, "link_lost", 409),
        (Asking.suspected, "silent", 503),
        (lambda asking, worker: asking.ended("s" if worker == "a" else "another"), "closing", 409),
    ],
    ids=["a new link", "suspected", "the session has ended"],
)
def test_who_asks_is_told_at_once_where_the_answer_may_never_come(
    happens: Callable[[Asking, str], None], code: str, status: int
) -> None:
    def act(server: Server, asking: Asking, question: Describe) -> None:
        happens(asking, "b")
        happens(asking, "a")
        asking.heard(server.workers.get("a"), described(question.request))  # late: somebody was told otherwise

    with pytest.raises(UserError, match=r"a (does not answer|has made a new link)|session s has ended") as told:
        asked(act)
    assert (told.value.code, told.value.status) == (code, status)


def test_a_session_that_there_is_not_is_not_asked_about() -> None:
    async def run() -> None:
        server = await server_of("a")
        asking = Asking(config=FleetConfig(), workers=server.workers, sessions=SessionTable(), desk=server.desk)
        await asking.save("s", "/tmp/x")

    with pytest.raises(UserError, match="There is no session s"):
        virtual.run(run())


def test_a_saved_session_of_another_environment_is_refused_by_field() -> None:
    async def run(environment: dict[str, str]) -> None:
        server = await server_of("a")
        require_equal(Beginning(path="x", environment=environment), server.workers.get("a"))

    virtual.run(run(dict(ENVIRONMENT)))
    with pytest.raises(UserError, match=r"torch is 2\.13\.0 here and 2\.12\.0 there\.$") as refused:
        virtual.run(run({**ENVIRONMENT, "torch": "2.12.0"}))
    assert (refused.value.code, refused.value.status) == ("environment", 409)
    with pytest.raises(UserError, match=r"engine\.weights_sha256 is not set here and abc there"):
        virtual.run(run({**ENVIRONMENT, "engine.weights_sha256": "abc"}))
    with pytest.raises(UserError, match="and 4 more"):
        virtual.run(run({**ENVIRONMENT, **{f"field {number}": "x" for number in range(12)}}))


def test_a_question_about_a_save_names_the_file() -> None:
    saved: list[Save] = []

    async def run() -> None:
        server, sessions = await server_of("a"), SessionTable()
        sessions.add(SessionRecord(name="s", seed=1, worker="a", incarnation=1, throwaway=False))
        asking = Asking(config=FleetConfig(save_s=0.01), workers=server.workers, sessions=sessions, desk=server.desk)
        server.wires["a"].react = saved.append
        await asking.save("s", "/spool/1")

    with pytest.raises(UserError, match="has not answered"):
        virtual.run(run())
    assert [message.path for message in saved] == ["/spool/1"]


def test_what_a_worker_was_to_do_for_a_snapshot_is_given_up_once_it_is_silent() -> None:
    async def run() -> None:
        server, sessions = await server_of("a", "b"), SessionTable()
        asking = Asking(config=FleetConfig(), workers=server.workers, sessions=sessions, desk=server.desk)
        server.wires["a"].react = lambda question: asking.suspected("a")
        snapshot = TakeSnapshot(session="s", request=asking.number(), transport="shm", nonce=bytes(32))
        await asking.of_worker(server.workers.get("a"), snapshot, SnapshotTaken, 5.0)

    with pytest.raises(UserError, match="a does not answer") as refused:
        virtual.run(run())
    assert refused.value.code == "silent"


def test_no_two_servers_give_their_questions_the_same_numbers() -> None:
    """One of an earlier server's may still be answered: what answers it is no answer to another."""

    async def run() -> list[range]:
        server, sessions = await server_of("a"), SessionTable()
        asked = []
        for life in range(8):
            begins_at = first_number(bytes(26) + (life << 32).to_bytes(6, "big"))
            asking = Asking(
                config=FleetConfig(),
                workers=server.workers,
                sessions=sessions,
                desk=server.desk,
                begins_at=begins_at,
            )
            asked.append(range(asking.number(), [asking.number() for _ in range(1000)][-1] + 1))
        return asked

    asked = virtual.run(run())
    assert [len(numbers) for numbers in asked] == [1001] * 8
    assert len({number for numbers in asked for number in numbers}) == 8 * 1001


def test_a_question_begins_where_nobody_can_foretell() -> None:
    assert first_number(bytes(32)) == 1
    assert first_number(b"\xff" * 32) == 1 << 48


@pytest.mark.parametrize(
    ("kind", "counts", "taken_s", "is_waited_for"),
    [
        (Keep, "num_pulled", 0.0, True),
        (Keep, "num_pulled", 60.0, True),  # without its engine
        (Keep, "num_done", 0.0, False),
        (TakeSnapshot, "num_done", 0.0, True),
        (TakeSnapshot, "num_pulled", 0.0, True),  # another's is compared before this one is
        (TakeSnapshot, "num_pulled", 60.0, False),  # its engine does not return
        (Describe, "num_done", 0.0, True),
        (Describe, "num_pulled", 0.0, False),
    ],
)
def test_whoever_gets_on_is_waited_for_and_what_has_no_part_in_it_counts_for_nothing(
    kind: type, counts: str, taken_s: float, *, is_waited_for: bool
) -> None:
    within_s, answers_after_s = 5.0, 30.0

    async def run() -> str:
        server, sessions = await server_of("a"), SessionTable()
        sessions.add(SessionRecord(name="s", seed=1, worker="a", incarnation=1, throwaway=False))
        config = FleetConfig(save_s=within_s)
        asking = Asking(config=config, workers=server.workers, sessions=sessions, desk=server.desk)
        record, loop = server.workers.get("a"), asyncio.get_running_loop()
        record.taken_s = taken_s

        async def get_on() -> None:
            while True:
                await asyncio.sleep(1.0)
                setattr(record, counts, getattr(record, counts) + 1)

        def answer(question: Any) -> None:
            why = NotDone(session="s", request=question.request, code="moving", message="It moves.")
            loop.call_later(answers_after_s, asking.heard, record, why)

        server.wires["a"].react = answer
        getting_on = loop.create_task(get_on())
        try:
            await asked_of(asking, record, kind, within_s)
        except UserError as error:
            return error.code
        finally:
            getting_on.cancel()
        return ""

    assert virtual.run(run()) == ("moving" if is_waited_for else "silent")


@pytest.mark.parametrize("kind", [TakeSnapshot, Keep])
def test_a_worker_that_has_ended_is_not_asked_in_its_successor_whose_answer_would_be_nobodys(kind: type) -> None:
    """Who is to keep a snapshot is chosen before there is one, and may have another life by then."""

    async def run() -> None:
        server, sessions = await server_of("a", "b"), SessionTable()
        asking = Asking(config=FleetConfig(), workers=server.workers, sessions=sessions, desk=server.desk)
        chosen = server.workers.get("b")
        asking.died("b", chosen.incarnation)
        server.workers.get("b").incarnation += 1
        gone = dataclasses.replace(chosen, incarnation=chosen.incarnation - 1)
        with pytest.raises(UserError, match="b ended before it was asked") as refused:
            await asked_of(asking, gone, kind, 5.0)
        assert refused.value.code == "worker_gone"
        assert (server.wires["b"].sent, asking.still_at("s")) == ([], frozenset())

    virtual.run(run())


async def asked_of(asking: Asking, worker: WorkerRecord, kind: type, within_s: float) -> None:
    about: dict[str, Any] = {"session": "s", "request": asking.number(), "transport": "shm", "nonce": bytes(32)}
    if kind is Describe:
        await asking.describe("s")
    elif kind is TakeSnapshot:
        await asking.of_worker(worker, TakeSnapshot(**about), SnapshotTaken, within_s)
    else:
        facts = SnapshotFacts(epoch=1, block=5, manifest=b"", placement=(), ticket=b"", groups=b"")
        await asking.of_worker(worker, Keep(**about, snapshot=facts), Kept, within_s)
