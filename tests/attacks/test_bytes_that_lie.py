"""Bytes that lie, everywhere: each lie is aborted, dropped or harmless, and never installed unverified.

After each case the session is played by one worker, its state is bit for bit that of a world that never moved, what
it shows is what that world shows, no slot is lost, no driver has ended, and the session can be moved. Where payload
differed the move is aborted, and its report names group and leaf; where the engine wrote, it is the engine's fault.
"""

import dataclasses
from collections.abc import Callable

import msgspec
import pytest

from tests.attacks import brook
from tests.attacks.attacked import Attacked
from tests.attacks.campaign import campaign, shared_donors
from tests.attacks.case import Case, Result, Verdict, Where
from tests.attacks.pond import Pond
from tests.attacks.sites import ADDRESS, ASKED, NUM_EXTENTS, sites
from tests.attacks.strikes import QUESTIONS, break_one_byte
from tests.attacks.trial import try_out
from tests.move.harness import SEED, inputs_of
from tests.move.virtual import run
from worldmove.move import bringing, incoming, ledger_messages, messages
from worldmove.move.attempt import Attempt, GaveUpError
from worldmove.move.ledger_messages import (
    Answer,
    CloseAttempt,
    Closed,
    CommitAttempt,
    Denied,
    Done,
    Operation,
    Reclaim,
    Theirs,
    Yours,
)
from worldmove.move.messages import AnyMoveMessage
from worldmove.move.passes import Passes
from worldmove.move.protocol import SourceEvent
from worldmove.move.rounds import Rounds
from worldmove.move.window import WriteWindow
from worldmove.state.digest import DIGEST_BYTES
from worldmove.state.groups import groups
from worldmove.state.placement import extents_of
from worldmove.state.proof import MoveProof

SITES = sites()


def of(where: Where) -> list[Case]:
    return [case for case in SITES if case.where is where]


def in_the_suite(where: Where) -> list[Case]:
    """Return the cases that are tried here: every target, but not in every way where each takes a while.

    ``python -m bench.corruptions`` tries all of them.
    """
    cases, kept = of(where), dict[str, list[Case]]()
    for case in cases:
        _, _, field = case.target.partition(".")
        is_new = where in (Where.STREAM, Where.FOLLOW) or field in ADDRESS or not field
        most = (1 if field in ADDRESS or not field else 2) if is_new else len(cases)
        some = kept.setdefault(case.target, [])
        if len(some) < most:
            some.append(case)
    return [case for some in kept.values() for case in some] if where in SLOW else cases


SLOW = (Where.AHEAD, Where.STREAM, Where.FOLLOW)
"""What is done while the session is played."""


def complaints(results: list[Result]) -> list[str]:
    return [f"{result.case}: {complaint}" for result in results for complaint in result.complaints]


def targets(cases: list[Case]) -> set[str]:
    return {case.target for case in cases}


# nothing is left out


def test_every_field_of_every_message_of_a_move_is_struck_and_every_message_as_a_whole() -> None:
    """Of all messages that there are, in whatever kind of move they are said: a new one is missed here."""
    kinds = set(messages.MoveMessage.__subclasses__())
    assert kinds == set(AnyMoveMessage.__args__)
    wheres = (Where.FIELD, Where.AHEAD, Where.STREAM, Where.FOLLOW, Where.MESSAGE)
    struck = {target for where in wheres for target in targets(of(where))}
    fields = {f"{kind.__name__}.{field}" for kind in kinds for field in kind.__struct_fields__}
    assert {target for target in struck if "." in target} == fields
    assert {target for target in struck if "." not in target} == {kind.__name__ for kind in kinds}


def test_every_field_of_every_question_that_a_move_asks_is_struck() -> None:
    """The others are asked by the server of itself: they never travel."""
    asked = {kind for kind in ledger_messages._Tagged.__subclasses__() if kind in QUESTIONS.values()}
    assert {kind.__name__ for kind in asked} - set(ASKED) == {"MarkShown", "Failover", "Lose"}
    fields = {f"{kind}.{field.name}" for kind in ASKED for field in msgspec.structs.fields(QUESTIONS[kind])}
    assert targets(of(Where.QUESTION)) == fields


def test_every_extent_and_group_is_struck() -> None:
    numbers = {str(number) for number in range(NUM_EXTENTS)}
    for where in (Where.PATH, Where.LANDED, Where.WINDOW, Where.DIGEST):
        assert {target.split()[1] for target in targets(of(where))} == numbers


# what comes of it


@pytest.mark.parametrize("where", list(Where), ids=lambda where: where.name.lower())
def test_every_way_to_lie_at_every_place_is_aborted_dropped_or_harmless(where: Where) -> None:
    results = [
        *try_out([case for case in in_the_suite(where) if not _is_moved_after(case)], shared_donors()),
        *try_out([case for case in in_the_suite(where) if _is_moved_after(case)], shared_donors(), then_move=True),
    ]
    assert complaints(results) == []
    assert {result.verdict for result in results} <= {Verdict.ABORTED, Verdict.REFUSED, Verdict.HARMLESS}
    assert (
        targets([result.case for result in results if not result.struck])
        - targets([result.case for result in results if result.struck])
        == set()
    ), "some target was never struck"
    if where in (Where.PATH, Where.LANDED, Where.INSTALLED, Where.DIGEST):
        assert {result.verdict for result in results if result.struck} == {Verdict.ABORTED}


def _is_moved_after(case: Case) -> bool:
    """Whether a clean move follows: not after each of the many that are dropped for their address."""
    has_address = case.where is Where.FIELD and case.target.partition(".")[2] in ADDRESS
    return case.where in (Where.FIELD, Where.MESSAGE, Where.QUESTION) and not has_address


def test_hundreds_of_seeded_lies_are_aborted_dropped_or_harmless() -> None:
    tally = campaign(0, 350, 20_260)
    assert tally.failures == []
    assert tally.struck > 280


LIES: dict[str, Callable[[Operation, int], Answer]] = {
    "closed": lambda asked, epoch: Closed(session="s-1", attempt=getattr(asked, "attempt", "-")),
    "yours, as it is": lambda asked, epoch: Yours(session="s-1", epoch=epoch),
    "yours, next": lambda asked, epoch: Yours(session="s-1", epoch=epoch + 1),
    "yours, far ahead": lambda asked, epoch: Yours(session="s-1", epoch=epoch + 40),
    "theirs": lambda asked, epoch: Theirs(session="s-1", epoch=epoch, passed=False),
    "theirs, passed": lambda asked, epoch: Theirs(session="s-1", epoch=epoch, passed=True),
    "theirs, far ahead": lambda asked, epoch: Theirs(session="s-1", epoch=epoch + 40, passed=True),
    "denied": lambda asked, epoch: Denied(session="s-1", reason="no"),
    "done": lambda asked, epoch: Done(session="s-1", epoch=epoch),
}


@pytest.mark.parametrize("lie", LIES)
@pytest.mark.parametrize("kind", [CommitAttempt, CloseAttempt, Reclaim], ids=lambda kind: kind.__name__)
def test_a_ledger_that_lies_makes_nobody_play_what_was_not_verified_or_show_what_is_not_due(
    kind: type, lie: str
) -> None:
    """Who owns a session is what the ledger says, so with a lying one the world may stand still; but no more than that.

    On its way an answer cannot be made another: see ``test_lies_on_the_link``.
    """
    told: list[Answer] = []

    async def story() -> None:
        fleet = Attacked()
        await fleet.play(4)
        if kind is CloseAttempt:
            fleet.on_reserve = lambda copy: setattr(copy, "before_install", break_one_byte)

        def answer(asked: Operation, true: Answer | None) -> Answer | None:
            if not isinstance(asked, kind) or told:
                return true
            told.append(LIES[lie](asked, fleet.row.epoch))
            return told[0]

        fleet.answer = answer
        await fleet.move("B", limit_s=8.0)
        await fleet.wait(1.0)
        await fleet.play(3)
        assert fleet.wrong == []
        assert fleet.gateway.shown == frames_shown(len(fleet.gateway.shown))

    run(story())
    assert len(told) == 1


def frames_shown(num_blocks: int) -> list[str]:
    """What a world that never moved shows."""
    world = Pond(SEED)
    return [world.step(inputs_of(block)) for block in range(num_blocks)]


# the judge is not asleep


def found(where: Where, how: str = "", target: str = "", count: int = 8, num_seeds: int = 3) -> list[Result]:
    cases = [case for case in of(where) if how in case.how and target in case.target]
    seeded = [dataclasses.replace(case, seed=seed) for case in cases for seed in range(num_seeds)]
    return try_out(seeded[:count], shared_donors())


def test_a_destination_that_compares_no_digests_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MoveProof, "compare", lambda self, other, manifest: ())
    for where in (Where.PATH, Where.LANDED):
        results = found(where, "flip", "extent 1")
        assert Verdict.ACCEPTED in {result.verdict for result in results}
        assert any("is not the one that was frozen" in complaint for complaint in complaints(results))


def test_a_destination_that_compares_all_groups_but_one_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    compare = MoveProof.compare

    def sloppy(self, other, manifest):  # type: ignore[no-untyped-def]
        left_out = max(groups(manifest), key=lambda group: group.num_bytes).index
        begin, end = left_out * DIGEST_BYTES, (left_out + 1) * DIGEST_BYTES

        def without(proof: MoveProof) -> MoveProof:
            return dataclasses.replace(proof, groups=proof.groups[:begin] + bytes(DIGEST_BYTES) + proof.groups[end:])

        return compare(without(self), without(other), manifest)

    monkeypatch.setattr(MoveProof, "compare", sloppy)
    # The largest: of a hundred single bits some hit it, wherever numpy happens to put an array.
    assert complaints(found(Where.PATH, "flip", count=100, num_seeds=20)) != []


def test_a_destination_that_does_not_look_at_what_it_installed_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def trusting(self, manifest, capture):  # type: ignore[no-untyped-def]
        return None

    monkeypatch.setattr(bringing.Bringing, "_require_same", trusting)
    assert complaints(try_out(of(Where.INSTALLED), shared_donors())) != []


def test_a_window_of_which_a_part_outlives_it_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(WriteWindow, "close", WriteWindow.abandon)
    results = found(Where.WINDOW, "kept part")
    assert any("wrote to memory after its window was closed" in complaint for complaint in complaints(results))


def test_a_source_that_takes_one_pass_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Passes, "check", lambda passes, frozen, first, second: None)
    assert complaints(found(Where.ENGINE, "landed")) != []


def test_a_report_that_blames_the_path_for_the_engine_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    check = Passes.check

    def blames(passes, frozen, first, second):  # type: ignore[no-untyped-def]
        try:
            check(passes, frozen, first, second)
        except GaveUpError as error:
            raise GaveUpError(SourceEvent.PASSES_DIFFER, "mismatch", "it arrived damaged") from error

    monkeypatch.setattr(Passes, "check", blames)
    assert any("does not blame the engine" in complaint for complaint in complaints(found(Where.ENGINE, "landed")))


def test_a_report_that_names_no_leaf_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(incoming, "say_damage", lambda differences, num_groups, path: "something is wrong")
    assert any("does not name" in complaint for complaint in complaints(found(Where.PATH, "flip")))


def test_a_part_that_is_believed_because_it_was_stepped_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    bring = Rounds.bring

    async def believes(self, boundary, manifest, placement):  # type: ignore[no-untyped-def]
        wanted = await bring(self, boundary, manifest, placement)
        stepped = [leaf.content.storage for leaf in manifest.leaves if leaf.path.startswith(brook.DECODER)]
        laid = extents_of(manifest, placement, [number for number in stepped if number is not None])
        return [
            each for each in wanted if not any(each.offset < other.end and other.offset < each.end for other in laid)
        ]

    monkeypatch.setattr(Rounds, "bring", believes)
    assert complaints(found(Where.STREAM, "twice", "Final")) == []
    monkeypatch.setattr(MoveProof, "compare", lambda self, other, manifest: ())
    assert complaints(found(Where.STREAM, "twice", "Final")) == []
    assert Verdict.ACCEPTED in {result.verdict for result in found(Where.STREAM, "flip", "Handed.data")}


def test_a_filter_that_lets_another_attempts_words_through_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Attempt, "owns", lambda self, message: True)
    lies = [c for c in SITES if c.where is Where.MESSAGE and c.how.startswith(("an earlier one beside", "another"))]
    struck = try_out(lies, shared_donors())
    honest = [result for result in struck if result.case.target in ("Boundary", "Proof", "Landed", "Abandon")]
    assert any(result.verdict is not Verdict.HARMLESS for result in honest if result.case.how.endswith("beside"))
