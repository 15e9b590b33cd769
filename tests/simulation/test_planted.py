"""Faults of the program that the simulation must find: each is put in by the test, and is caught within a few seeds."""

import asyncio
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest

from tests.simulation.case import FOLLOWING, MEDDLING, Case, Result
from tests.simulation.hashing import HASHING
from tests.simulation.report import report
from tests.simulation.run import simulate
from tests.simulation.shrink import shrink
from worldmove.fleet import ledger_memory, recovery
from worldmove.fleet.caretaker import Caretaker
from worldmove.fleet.ends import Ends
from worldmove.fleet.protection import Protection
from worldmove.fleet.second_copy import SecondCopy
from worldmove.fleet.sessions import SessionRecord
from worldmove.move import source
from worldmove.move.incoming import Incoming
from worldmove.move.ledger_messages import CloseAttempt, Closed
from worldmove.move.ledger_row import Facts, Row
from worldmove.move.ledger_rules import Operation, decide
from worldmove.move.outgoing import Outgoing
from worldmove.move.protocol import SourceEffect, SourceEvent, SourcePhase, source_step
from worldmove.move.source_copy import Frozen
from worldmove.serve import screen
from worldmove.serve.allowance import Allowance
from worldmove.serve.audience import Audience
from worldmove.serve.client_messages import Keys
from worldmove.serve.controls import Controls
from worldmove.serve.live import Live
from worldmove.serve.player import CloseCode, Player
from worldmove.serve.receipts import Receipts
from worldmove.serve.resuming import Resuming
from worldmove.serve.resumption import Resumption
from worldmove.serve.screen import Screen
from worldmove.serve.sequencer import Sequencer, Taken
from worldmove.serve.show import Verdict, judge
from worldmove.worker.line import Line
from worldmove.worker.messages import KEPT, BlockDone
from worldmove.worker.outbox import Outbox
from worldmove.worker.snapshot import Snapshot
from worldmove.worker.source_copy import SourceOfMove
from worldmove.worker.turns import Turns

Caught = Callable[..., Result]
BEFORE = frozenset({HASHING, FOLLOWING, MEDDLING})
"""What came later than most of these faults, and has no part in them: without it a seed shows what it did."""
MOST_SEEDS = 400
"""What a seed does changes with the program: where the first does not show a fault any more, so many are tried."""


@pytest.fixture(autouse=True)
def caught() -> Iterator[Caught]:
    """Give what finds the first run that breaks as it should: from a seed on that shows it today, and on from there.

    Afterwards, with nothing planted any more, the same seed has to hold: a run that breaks of something else would
    otherwise count as the fault found. It is made before the tests' own patches, so that it ends after them.
    """
    found: list[Case] = []

    def catch(first: int, says: str = "", *, mask: frozenset[str] = BEFORE, **more: Any) -> Result:
        others: dict[str, None] = {}
        for seed in range(first, first + MOST_SEEDS):
            result = simulate(Case(seed=seed, sql=False, mask=mask, **more))
            if result.broken and re.search(says, result.broken):
                found.append(replace(result.case, forgets=""))
                return result
            others |= {result.broken[:200]: None} if result.broken else {}
        raise AssertionError(f"not caught in {MOST_SEEDS} seeds; what broke is {list(others)}")

    yield catch
    assert [simulate(case).broken for case in found] == ["" for _ in found]


def _thaws_on_silence(phase: SourcePhase, event: SourceEvent) -> tuple[SourcePhase, SourceEffect]:
    if (phase, event) == (SourcePhase.DOUBT, SourceEvent.SILENCE):
        return SourcePhase.LIVE, SourceEffect.THAW
    return source_step(phase, event)


def test_a_lost_commit_taken_for_an_abort_is_caught(monkeypatch: pytest.MonkeyPatch, caught: Caught) -> None:
    monkeypatch.setattr(source, "source_step", _thaws_on_silence)
    caught(386, "at once")


def test_a_freeze_that_names_a_block_that_is_still_hashed_is_caught(
    monkeypatch: pytest.MonkeyPatch, caught: Caught
) -> None:
    """Its state is that after this block, and whoever goes on from there computes it twice."""
    freeze = SourceOfMove.freeze

    async def names_what_is_hashed(self: SourceOfMove, **options: Any) -> Frozen:
        frozen = await freeze(self, **options)
        return replace(frozen, block=min([frozen.block, *promised(self)]))

    def promised(source: SourceOfMove) -> list[int]:
        outbox = source._copy.outbox
        return list(outbox._promised)

    monkeypatch.setattr(SourceOfMove, "freeze", names_what_is_hashed)
    result = caught(153, mask=BEFORE - {HASHING})
    assert result.counts["blocks hashed beside"]


def test_a_block_that_is_sent_before_the_one_that_is_still_hashed_is_caught(
    monkeypatch: pytest.MonkeyPatch, caught: Caught
) -> None:
    async def at_once(self: Line, work: Any) -> None:
        self._last = asyncio.create_task(work)  # and what was put before goes its own way

    def never_kept(self: Outbox, done: BlockDone) -> None:
        self.send(done)

    monkeypatch.setattr(Line, "put", at_once)
    monkeypatch.setattr(Outbox, "fulfil", never_kept)
    caught(1, mask=BEFORE - {HASHING})


def test_an_inquiry_that_only_reports_is_caught(monkeypatch: pytest.MonkeyPatch, caught: Caught) -> None:
    def reports(row: Row, operation: Operation, facts: Facts) -> Any:
        if isinstance(operation, CloseAttempt) and row.epoch == operation.epoch:
            return row, Closed(session=row.session, attempt=operation.attempt)
        return decide(row, operation, facts)

    monkeypatch.setattr(ledger_memory, "decide", reports)
    caught(0)


def test_a_snapshots_slot_that_is_never_given_back_is_caught(monkeypatch: pytest.MonkeyPatch, caught: Caught) -> None:
    monkeypatch.setattr(Snapshot, "free", lambda snapshot: None)
    caught(0, "nobody but owners holds a copy")


def _shows_whatever_is_next(fence: Any, row: Any, **asked: Any) -> Verdict:
    verdict = judge(fence, row, **asked)
    unfenced = (Verdict.NOT_THE_OWNER, Verdict.OTHER_EPOCH, Verdict.CLOSED_EPOCH, Verdict.RECORD_FIRST)
    return Verdict.SHOW if verdict in unfenced and asked["block"] == fence.next_block else verdict


def test_a_gateway_without_its_fence_is_caught(monkeypatch: pytest.MonkeyPatch, caught: Caught) -> None:
    monkeypatch.setattr(screen, "judge", _shows_whatever_is_next)
    caught(0, "is shown")


def _raises(*_arguments: object, **_options: object) -> None:
    raise LookupError("planted")


@pytest.mark.parametrize(
    ("part", "method", "task"),
    [(Outgoing, "send_proof", "'source s-"), (Ends, "start", "'move'"), (Live, "hold", "the gateway failed")],
)
def test_what_is_contained_where_it_fails_is_caught_all_the_same(
    monkeypatch: pytest.MonkeyPatch, part: type, method: str, task: str, caught: Caught
) -> None:
    monkeypatch.setattr(part, method, _raises)
    broken = caught(0, re.escape(task)).broken
    assert "planted" in broken


def test_an_action_applied_twice_is_caught(monkeypatch: pytest.MonkeyPatch, caught: Caught) -> None:
    take = Sequencer.take

    def takes_the_newest_again(self: Sequencer, change: Any) -> Taken:
        if change.number == self.next_number - 1:
            self._append(change)
            return Taken.TAKEN
        return take(self, change)

    monkeypatch.setattr(Sequencer, "take", takes_the_newest_again)
    caught(0, "in the lists twice")


def test_a_list_that_is_closed_anew_by_the_next_server_is_caught(
    monkeypatch: pytest.MonkeyPatch, caught: Caught
) -> None:
    monkeypatch.setattr(Resumption, "hold", lambda self, block, changes: None)
    caught(425, "with a list that was not closed|are not those of a world")


def test_a_block_that_is_kept_and_not_sent_to_who_comes_back_is_caught(
    monkeypatch: pytest.MonkeyPatch, caught: Caught
) -> None:
    monkeypatch.setattr(Resuming, "recalled", lambda self, block: None)
    caught(355, "which is kept")


def test_a_block_that_only_those_miss_who_watch_is_caught_by_a_second_tab(
    monkeypatch: pytest.MonkeyPatch, caught: Caught
) -> None:
    show = Audience.show

    def leaves_watchers_out(self: Audience, frames: Any, left: Any, *, block: int | None = None) -> None:
        for player in self._players:
            if player is not self.controlling and block is not None and block % 4 == 3:
                player.had_block = block
        show(self, frames, left, block=block)

    monkeypatch.setattr(Audience, "show", leaves_watchers_out)
    failing = caught(74, "came to the watcher after block")
    assert not simulate(replace(failing.case, mask=failing.case.mask | {"second_tab"})).broken


def test_a_claim_that_is_believed_of_a_stranger_is_caught(monkeypatch: pytest.MonkeyPatch, caught: Caught) -> None:
    missed = Screen.missed

    def believes(self: Screen, received: int | None) -> list[bytes]:
        if received is not None:
            self._next_block = max(self._next_block, received + 1)
        return missed(self, received)

    def asks_for_no_receipt(self: Receipts, session: str, claim: str | None, forks: Sequence[int]) -> int | None:
        return None if claim is None else int(claim.partition("-")[0])

    monkeypatch.setattr(Screen, "missed", believes)
    monkeypatch.setattr(Receipts, "proven", asks_for_no_receipt)
    failing = caught(3, "is shown where")
    assert not simulate(replace(failing.case, mask=failing.case.mask | {"stranger"})).broken


def test_a_followed_copy_that_is_laid_where_all_was_compared_already_is_caught(
    monkeypatch: pytest.MonkeyPatch, caught: Caught
) -> None:
    """What came out otherwise was found and pulled; then it comes a second time."""
    compare = Incoming._compare

    async def compares_and_lays(self: Incoming, *compared: Any) -> None:
        await compare(self, *compared)
        following, state = (None, None) if self._rounds is None else (self._rounds._following, self._rounds._state)
        if following is not None and state is not None and state._laid[1]:
            await following.lay(state._manifest, state._placement)

    monkeypatch.setattr(Incoming, "_compare", compares_and_lays)
    failing = caught(14, "are not those of a world", mask=BEFORE - {FOLLOWING}, decodes=True, horizon_s=4.0)
    lies = {"follow_lies", "hand_false"}
    assert not simulate(replace(failing.case, mask=failing.case.mask | lies)).broken


def _meddled(caught: Caught, first: int, says: str) -> None:
    """With clients that meddle it is caught, and not without them."""
    failing = caught(first, says, mask=BEFORE - {MEDDLING}, meddles=True, horizon_s=3.0)
    assert not simulate(replace(failing.case, meddles=False)).broken


def test_keys_that_are_taken_from_who_only_watches_are_caught(monkeypatch: pytest.MonkeyPatch, caught: Caught) -> None:
    press = Controls.press

    def takes_anybodys(self: Controls, player: Player, keys: Keys) -> None:
        self._audience._controlling, playing = player, self._audience.controlling
        press(self, player, keys)
        self._audience._controlling = playing

    monkeypatch.setattr(Controls, "press", takes_anybodys)
    _meddled(caught, 0, "was pressed as|stands in the lists twice|was taken as|are in a list")


def test_a_crowd_for_which_who_plays_has_to_go_is_caught(monkeypatch: pytest.MonkeyPatch, caught: Caught) -> None:
    def drops_the_first(self: Audience) -> None:
        self._players.pop(0).drop(CloseCode.TOO_MANY, "too many watch this world")

    monkeypatch.setattr(Audience, "_make_room", drops_the_first)
    _meddled(caught, 0, "who plays was turned away")


def test_a_flood_that_nobody_ends_is_caught(monkeypatch: pytest.MonkeyPatch, caught: Caught) -> None:
    monkeypatch.setattr(Allowance, "take", lambda self, now, amount=1: True)
    _meddled(caught, 0, "was not turned away")


def test_a_session_that_is_called_lost_while_it_is_closed_is_caught(
    monkeypatch: pytest.MonkeyPatch, caught: Caught
) -> None:
    monkeypatch.setattr(Caretaker, "_is_left_alone", lambda self, session: False)
    _meddled(caught, 82, "is closed, and is said to be lost")


def test_what_its_own_worker_keeps_counted_as_a_second_copy_is_caught(
    monkeypatch: pytest.MonkeyPatch, caught: Caught
) -> None:
    """The death of that worker takes both."""

    def with_its_owners(self: SecondCopy, row: Row) -> Any:
        return self._books.workers.holders(row.session, (KEPT,))

    monkeypatch.setattr(SecondCopy, "_held", with_its_owners)
    caught(11, "is said to be protected", pairs=True, protect_every=3, horizon_s=3.0)


def test_an_owner_that_has_nothing_counted_as_a_copy_is_caught(monkeypatch: pytest.MonkeyPatch, caught: Caught) -> None:
    monkeypatch.setattr(SecondCopy, "_why_not_played", lambda self, row: "")
    caught(19, "is said to be protected", protect_every=3)


def test_a_session_that_could_be_protected_again_and_is_not_is_caught(
    monkeypatch: pytest.MonkeyPatch, caught: Caught
) -> None:
    is_wanted = Protection._is_wanted

    def at_first(self: Protection, record: SessionRecord, row: Row) -> bool:
        return record.computed < 3 and is_wanted(self, record, row)

    monkeypatch.setattr(Protection, "_is_wanted", at_first)
    caught(0, "is not protected again", protect_every=3)


@pytest.mark.parametrize("leaf", ["cache", "drawn"])
def test_a_leaf_of_what_is_followed_that_is_forgotten_in_a_move_is_caught(leaf: str, caught: Caught) -> None:
    caught(0, "s-", forgets=leaf, mask=BEFORE - {FOLLOWING}, decodes=True)


@pytest.mark.parametrize("leaf", ["cursor", "number", "block", "held"])
def test_a_leaf_that_is_forgotten_in_a_move_is_caught(leaf: str, caught: Caught) -> None:
    caught(0, "s-", forgets=leaf)


def test_a_session_called_lost_though_a_retired_copy_of_it_could_take_over_is_caught(
    monkeypatch: pytest.MonkeyPatch, caught: Caught
) -> None:
    monkeypatch.setattr(recovery, "successor", lambda held: None)
    monkeypatch.setattr(recovery.Recovery, "_lacks_lists", lambda self, copy: copy.phase == "retired")
    caught(372, r"(?s)is said to be lost.*\(retired\)")  # an owner dies, and its retired copy takes over


def _racing_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check, await, act: two who find the engine free in one turn of the loop both take it."""
    begin = Turns._begin

    async def looks_first(self: Turns, turn: Any) -> None:
        if not self._busy:
            await asyncio.sleep(0)
            self._busy = True
            return
        await begin(self, turn)

    monkeypatch.setattr(Turns, "_begin", looks_first)


def test_a_race_at_the_engine_is_caught(monkeypatch: pytest.MonkeyPatch, caught: Caught) -> None:
    _racing_turns(monkeypatch)
    caught(0, "two calls to the engine")


def test_a_failing_run_is_made_smaller_and_still_fails(monkeypatch: pytest.MonkeyPatch, caught: Caught) -> None:
    monkeypatch.setattr(source, "source_step", _thaws_on_silence)
    failing = caught(704, "at once")
    shrunk = shrink(failing)
    assert shrunk.broken
    assert len(shrunk.fired) < len(failing.fired)
    assert simulate(shrunk.case).hash == shrunk.hash
    assert f"--seed {failing.case.seed}" in report(failing, shrunk)
