"""One case tried out on a fleet, and judged; and the things that all trials share."""

from dataclasses import dataclass

import msgspec

from tests.attacks import brook
from tests.attacks.attacked import SLOT_BYTES, WORLD, Attacked
from tests.attacks.case import Case, Result, Verdict, Where
from tests.attacks.pond import Pond
from tests.attacks.strikes import ABA, Donors, Struck, arm, calm
from tests.move.harness import Outcome, World
from tests.move.virtual import run
from worldmove.move.messages import AnyMoveMessage
from worldmove.state import gather
from worldmove.state.arena import Arena

LIMIT_S = 8.0
CALM_S = 90.0
"""Longer than any wait of the drivers."""


@dataclass(slots=True, kw_only=True)
class Trials:
    """A fleet under attack, case after case: the same session is moved to and fro, and played in between."""

    fleet: Attacked
    donors: Donors
    then_move: bool = False
    """Whether each case is followed by a move without one, which must be committed."""

    async def one(self, case: Case) -> Result:
        """Strike one move, let the fleet come to rest, and judge."""
        fleet = self.fleet
        at = fleet.owner.worker.name
        source = fleet.owner
        struck = arm(fleet, case, self.donors)
        outcome = await fleet.move("B" if at == "A" else "A", limit_s=LIMIT_S)
        if case.target.startswith("Reclaim"):
            await fleet.wait(1.0)  # nobody plays, so the old owner asks for the session back
        fleet.at_ease()
        fleet.spend(outcome)
        plays = await calm(fleet, CALM_S)
        struck.undo()
        fleet.stale_slot = bytes(source.arena.buffer)
        complaints = await self._complaints(case, struck, outcome, plays=plays)
        result = Result(
            case=case,
            struck=struck.times > 0,
            verdict=_verdict(outcome, plays=plays, wrong=bool(fleet.wrong)),
            why=_why(outcome),
            complaints=tuple(complaints),
        )
        fleet.move_is_over()
        return result

    async def _clean_move(self) -> list[str]:
        """What was struck must not stand in the way of the next move."""
        fleet = self.fleet
        outcome = await fleet.move("B" if fleet.owner.worker.name == "A" else "A", limit_s=LIMIT_S)
        if outcome.outcomes != ("committed", "committed"):
            return [f"the session cannot be moved any more: {outcome.outcomes} {outcome.declined} {outcome.denied}"]
        await fleet.play(1)
        return [] if await fleet.alone() else ["a slot is neither free nor played after the next move"]

    async def _complaints(self, case: Case, struck: Struck, outcome: Outcome, *, plays: bool) -> list[str]:
        fleet = self.fleet
        if not plays:
            return [
                f"{len(fleet.live())} copies play: {[c.plays.value for w in fleet.workers.values() for c in w.copies]}"
            ]
        shown, num_checked = len(fleet.gateway.shown), len(fleet.checked)
        await fleet.play(2)
        complaints = [] if len(fleet.gateway.shown) == shown + 2 else ["the session does not play on"]
        if fleet.owner.world.bytes_of() != fleet.oracle.bytes_of():  # type: ignore[attr-defined]
            complaints.append(f"{fleet.owner.worker.name} plays another world")
        complaints += fleet.crashed()
        if not await fleet.alone():
            complaints.append("a slot is neither free nor played")
        if not all(equal for _, equal in fleet.checked[num_checked:]):
            complaints.append("the retired copy computes another block")
        if self.then_move and not complaints and not fleet.wrong:
            complaints += await self._clean_move()
        complaints += fleet.wrong
        return complaints + _misreported(case, struck, outcome)


def _verdict(outcome: Outcome, *, plays: bool, wrong: bool) -> Verdict:
    if wrong:
        return Verdict.ACCEPTED
    if not plays:
        return Verdict.STUCK
    if "committed" in outcome.outcomes:
        return Verdict.HARMLESS
    return Verdict.ABORTED if outcome.ended else Verdict.REFUSED


def _why(outcome: Outcome) -> str:
    ends = [outcome.of(side) for side in ("destination", "source")]
    reasons = [end.reason for end in ends if end is not None and end.reason not in ("done", "in_doubt")]
    if outcome.declined is not None:
        return outcome.declined.reason
    return reasons[0] if reasons else ""


MUST_ABORT = (Where.LANDED, Where.INSTALLED, Where.ENGINE, Where.DIGEST)


def _misreported(case: Case, struck: Struck, outcome: Outcome) -> list[str]:
    """Where payload differed: the move was aborted, and its report names group and leaf; the engine's fault is its."""
    if not struck.times:
        return []
    destination, source = outcome.of("destination"), outcome.of("source")
    if case.where is Where.WINDOW:
        held = destination is not None and "still holds the memory" in destination.detail
        return [] if held or struck.refused_by_window else ["a path wrote to memory after its window was closed"]
    if case.where not in MUST_ABORT and case.where is not Where.PATH:
        return []
    if case.how == ABA and outcome.outcomes == ("committed", "committed"):
        return []  # of a leaf that had left its slot, a copy travels: the write never touched it
    if outcome.outcomes != ("aborted", "aborted") or destination is None or source is None:
        return [f"the outcome is {outcome.outcomes}"]
    if case.where is Where.ENGINE and not case.how.endswith("takes it back"):
        blamed = source.reason == "engine_wrote" and any(leaf in source.detail for leaf in struck.leaves)
        return [] if blamed else [f"the report does not blame the engine: {source.reason}: {source.detail}"]
    blames = ("mismatch", "installed_otherwise") if case.where is Where.INSTALLED else ("mismatch",)
    named = destination.reason in blames and (
        not struck.leaves or any(leaf in destination.detail for leaf in struck.leaves)
    )
    if case.where in (Where.PATH, Where.LANDED, Where.DIGEST):
        named = named and "group" in destination.detail
    return [] if named else [f"the report does not name {struck.leaves}: {destination.reason}: {destination.detail}"]


# what all trials share


def donors() -> Donors:
    """Another session's move, recorded."""

    async def record() -> Donors:
        fleet = Attacked()
        await fleet.play(5)
        messages = await _said(fleet, "B")
        await fleet.alone()
        fleet.go_ahead(plays_on=False)
        ahead = await _said(fleet, "A")
        await fleet.alone()
        fleet.go_following()
        followed = await _said(fleet, "B")
        streaming = Attacked(brook.WORLD)
        await streaming.play(5)
        streaming.go_streaming(rests=True)
        streamed = await _said(streaming, "B")
        return Donors(messages=messages, ahead=ahead, followed=followed, streamed=streamed, other_slot=_another_slot())

    return run(record())


async def _said(fleet: Attacked, to: str) -> dict[type, AnyMoveMessage]:
    """Return the first message of each kind of a move, as another session's."""
    said: dict[type, AnyMoveMessage] = {}
    before = fleet.on_post

    def note(message: AnyMoveMessage) -> None:
        said.setdefault(type(message), _renamed(message))
        before(message)

    fleet.on_post = note
    await fleet.move(to)
    return said


def _renamed(message: AnyMoveMessage) -> AnyMoveMessage:
    return msgspec.structs.replace(message, session="s-2")


def _another_slot() -> bytes:
    other, arena = Pond(99), Arena(SLOT_BYTES, "other")
    for block in range(9):
        other.step((f"other {block}",))
    gather(other.capture(), arena)
    return bytes(arena.buffer)


BLOCKS_FIRST = 4
FLEET_CASES = 400
"""Cases on one fleet before a new one: epochs, blocks and clocks start over."""


def try_out(cases: list[Case], shared: Donors, *, then_move: bool = False) -> list[Result]:
    """Try each case out, and return what became of it. A fleet that is stuck or wrong is not used again."""
    results: list[Result] = []
    streamed = [case for case in cases if case.where is Where.STREAM]
    others = [case for case in cases if case.where is not Where.STREAM]
    for world, some in ((WORLD, others), (brook.WORLD, streamed)):
        left = list(reversed(some))
        while left:
            results += run(_some(world, left, shared, then_move=then_move))
    return results


async def _some(world: World, left: list[Case], shared: Donors, *, then_move: bool) -> list[Result]:
    trials = Trials(fleet=Attacked(world), donors=shared, then_move=then_move)
    await trials.fleet.play(BLOCKS_FIRST)
    await trials.one(Case(where=Where.MESSAGE, target="Inquire", how="dropped"))  # so that there is an earlier move
    results: list[Result] = []
    while left and len(results) < FLEET_CASES:
        results.append(await trials.one(left.pop()))
        if results[-1].complaints:
            break
    return results
