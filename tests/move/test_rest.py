"""What a destination brings over while the session stands still before its freeze: it is not in the pause."""

import asyncio
from typing import Any

import msgspec
import pytest

from tests.move.harness import Fleet
from tests.move.rolling import ROW_BYTES, Rolling
from tests.move.test_rounds import NEW_BYTES, is_well_again, last, moved, play_a_block_at, tampering, tell
from worldmove.errors import StateRefused
from worldmove.move import told_rows
from worldmove.move.held_state import HeldState
from worldmove.move.messages import AnyMoveMessage, Base, Boundary, Landed, Meet, Ready
from worldmove.state import rows
from worldmove.state.manifest import Manifest
from worldmove.state.rows import Rows

WORD_BYTES = 8
FEW_BYTES = 1200
"""What is bound anew lies elsewhere at each boundary."""


def said_by(fleet: Fleet, kind: type) -> list[Any]:
    """Note the messages of a kind."""
    found: list[Any] = []
    before = fleet.on_post

    def note(message: AnyMoveMessage) -> None:
        before(message)
        if isinstance(message, kind):
            found.append(message)

    fleet.on_post = note
    return found


async def prepared(fleet: Fleet, *, waits_s: float = 1.0) -> None:
    """Have a world that was played since its destination was ready, and a source that waits with the freeze."""
    await moved(fleet, "A")
    await fleet.play(2)
    await fleet.settled()
    fleet.waits_for_ready_s = waits_s
    play_a_block_at(Ready, fleet)


def test_what_a_block_has_made_is_there_before_the_freeze() -> None:
    async def story(fleet: Fleet) -> None:
        await prepared(fleet, waits_s=0.0)
        late = last(await moved(fleet, "B"))
        await fleet.play(2)
        await fleet.settled()
        fleet.waits_for_ready_s = 1.0
        play_a_block_at(Ready, fleet)
        told, frozen = said_by(fleet, Meet), said_by(fleet, Boundary)
        early = last(await moved(fleet, "A"))
        assert frozen[0].block == told[-1].block
        assert "rest" in {name for name, _, _ in early.phases}
        assert early.pulled_bytes <= late.pulled_bytes - NEW_BYTES
        assert early.in_place_bytes + early.moved_bytes + early.pulled_bytes == early.num_bytes

    tell(story)


def test_of_a_boundary_that_is_over_nothing_is_said_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """Over a slow path: it would be taken for word of the next boundary, of which nothing has come."""
    taken: list[int] = []
    real = HeldState.take_rest

    async def story(fleet: Fleet) -> None:
        async def slow(self: HeldState, meet: Meet) -> bool:
            taken.append(meet.block)
            if len(taken) == 1:
                for later in (1, 2):
                    fleet.workers["B"].deliver(msgspec.structs.replace(meet, block=meet.block + later))
            return await real(self, meet)

        await prepared(fleet)
        monkeypatch.setattr(HeldState, "take_rest", slow)
        said = said_by(fleet, Ready)
        await moved(fleet, "B")
        assert taken == [taken[0], taken[0] + 2]
        assert [message.to for message in said if message.to == "A"] == ["A"]

    tell(story)


def test_where_nobody_writes_after_the_rest_the_boundary_has_nothing_to_tell_and_nothing_comes() -> None:
    """What is bound anew is brought to its place at the rest, and not at the freeze; and the manifest was told."""

    async def story(fleet: Fleet) -> None:
        await moved(fleet, "A")
        await fleet.play(2)
        await fleet.settled()
        fleet.waits_for_ready_s = 1.0
        told, frozen, base = said_by(fleet, Meet), said_by(fleet, Boundary), said_by(fleet, Base)
        end = last(await moved(fleet, "B"))
        assert len(told[0].rows) > 100 * WORD_BYTES
        assert (frozen[0].rows, frozen[0].changed, end.plain) == (b"", b"", "")
        assert len(frozen[0].manifest) < len(base[0].manifest) // 2
        assert end.in_place_bytes == end.num_bytes
        assert end.moved_bytes == end.pulled_bytes == 0

    tell(story)


def test_of_rows_that_were_told_before_the_freeze_the_boundary_names_those_that_have_changed() -> None:
    """An engine that writes while it stands still."""

    async def story(fleet: Fleet) -> None:
        await moved(fleet, "A")
        await fleet.play(2)
        await fleet.settled()
        fleet.waits_for_ready_s = 1.0
        told, frozen = said_by(fleet, Meet), said_by(fleet, Boundary)
        before = fleet.on_post

        def writes(message: AnyMoveMessage) -> None:
            before(message)
            if isinstance(message, Ready) and message.to != "controller":
                world = fleet.owner.world
                assert isinstance(world, Rolling)
                world.static[3:5] += 1.0

        fleet.on_post = writes
        end = last(await moved(fleet, "B"))
        assert len(frozen[0].rows) == 2 * len(frozen[0].changed) == 2 * WORD_BYTES
        assert len(told[0].rows) > 100 * WORD_BYTES
        assert (end.pulled_bytes, end.moved_bytes) == (2 * ROW_BYTES, 0)

    tell(story)


def test_a_world_that_is_played_all_the_while_moves_again_and_again() -> None:
    async def story(fleet: Fleet) -> None:
        fleet.waits_for_ready_s = 0.3
        playing = fleet.play_on()
        for to in "ABABABAB":
            await moved(fleet, to)
            await fleet.settled()
        await playing.end()

    tell(story)


@pytest.mark.parametrize("kind", [Meet, Ready])
@pytest.mark.parametrize("deliveries", [(), (0.0005, 0.0011, 0.4), (0.9,)])
def test_word_of_the_rest_is_lost_or_comes_often_or_late(kind: type, deliveries: tuple[float, ...]) -> None:
    async def story(fleet: Fleet) -> None:
        await prepared(fleet, waits_s=0.5)
        fleet.post_fault = lambda message: (
            deliveries if isinstance(message, kind) and message.to != "controller" else (0.0005,)
        )
        await moved(fleet, "B")
        await is_well_again(fleet)

    tell(story)


def test_what_was_said_of_rows_is_not_taken_for_those_of_a_later_block() -> None:
    async def story(fleet: Fleet) -> None:
        await prepared(fleet)
        play_a_block_at(Meet, fleet)
        frozen = said_by(fleet, Boundary)
        end = last(await moved(fleet, "B"))
        assert frozen[0].changed is None
        assert end.pulled_bytes <= NEW_BYTES + FEW_BYTES

    tell(story)


def test_a_freeze_that_does_not_wait_until_the_rest_is_over_finds_what_is_there_by_then() -> None:
    """What was half pulled is looked at anew."""
    paths = tampering()

    async def story(fleet: Fleet) -> None:
        await prepared(fleet, waits_s=0.05)
        connect, closed = drag(paths["loopback"], said_by(fleet, Meet))
        end = last(await moved(fleet, "B"))
        assert end.in_place_bytes + end.moved_bytes + end.pulled_bytes == end.num_bytes
        assert closed
        assert not any(closed), "a path was let go of while somebody pulled over it"
        paths["loopback"].connect = connect
        await is_well_again(fleet)

    tell(story, transports=paths)


def drag(path: Any, told: list[Any]) -> tuple[Any, list[int]]:
    """Let every extent take a while once a rest was told. Return how it connected before, and, for each channel that
    is closed, how many pulls were under way over it.
    """
    connect, closed = path.connect, list[int]()

    async def slow(ticket: bytes) -> Any:
        channel = await connect(ticket)
        pull, close, pulling = channel.pull, channel.close, list[None]()

        async def dragging(extents: Any, into: memoryview) -> None:
            pulling.append(None)
            try:
                for extent in extents:
                    await pull([extent], into)
                    if told:
                        await asyncio.sleep(0.02)
            finally:
                pulling.pop()

        async def closing() -> None:
            closed.append(len(pulling))
            await close()

        channel.pull, channel.close = dragging, closing
        return channel

    path.connect = slow
    return connect, closed


def test_a_world_whose_leaves_share_memory_since_they_were_described_has_no_rest_and_moves_all_the_same() -> None:
    async def story(fleet: Fleet) -> None:
        await prepared(fleet)
        plays = fleet.on_post

        def shares(message: AnyMoveMessage) -> None:
            plays(message)
            if isinstance(message, Base):
                world = fleet.owner.world
                assert isinstance(world, Rolling)
                world.static = world.keys[0]

        fleet.on_post = shares
        frozen = said_by(fleet, Boundary)
        await moved(fleet, "B")
        assert frozen[0].changed is None
        await is_well_again(fleet)

    tell(story)


def test_what_the_rest_brings_damaged_is_found_at_the_boundary_and_pulled() -> None:
    paths = tampering()

    async def story(fleet: Fleet) -> None:
        await prepared(fleet)
        plays = fleet.on_post

        def both(message: AnyMoveMessage) -> None:
            plays(message)
            if isinstance(message, Meet):
                paths["loopback"].damage = lambda pull, into: into.__setitem__(0, into[0] ^ 1)
            elif isinstance(message, Boundary):
                paths["loopback"].damage = lambda pull, into: None

        fleet.on_post = both
        end = last(await moved(fleet, "B"))
        assert end.pulled_bytes >= ROW_BYTES
        await is_well_again(fleet)

    tell(story, transports=paths)


@pytest.mark.parametrize(
    "lie",
    [
        {"rows": b"1234567"},
        {"rows": b"12345678", "changed": b"\xff\xff\xff\xff"},
        {"rows": b"12345678", "changed": b""},
        {"rows": b"", "changed": b"\x00\x00\x00\x00"},
    ],
)
def test_numbers_of_rows_that_are_none_end_the_attempt(lie: dict[str, bytes]) -> None:
    async def story(fleet: Fleet) -> None:
        await prepared(fleet)
        fleet.change = lambda message: (
            msgspec.structs.replace(message, **lie) if isinstance(message, Boundary) else message
        )
        outcome = await fleet.move("B")
        assert outcome.outcomes[1] == "aborted"
        fleet.change = lambda message: message
        await is_well_again(fleet)

    tell(story)


def test_rows_of_the_rest_that_are_not_those_of_the_base_bring_nothing_over() -> None:
    async def story(fleet: Fleet) -> None:
        await prepared(fleet)
        fleet.change = lambda message: (
            msgspec.structs.replace(message, rows=message.rows[WORD_BYTES:]) if isinstance(message, Meet) else message
        )
        landed = said_by(fleet, Landed)
        end = last(await moved(fleet, "B"))
        assert landed
        assert end.plain or end.pulled_bytes >= NEW_BYTES

    tell(story)


def test_a_state_that_has_grown_beyond_what_can_be_looked_at_is_not_looked_at_but_moved(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """When its base was laid out it had few enough rows."""
    real, known = rows.rows_of, list[Manifest]()

    def rows_of(manifest: Manifest, *where: Any) -> Rows:
        if not known:
            known.append(manifest)
        if manifest.storages != known[0].storages or manifest.leaves != known[0].leaves:
            raise StateRefused("", "it has more rows than there may be")
        return real(manifest, *where)

    async def story(fleet: Fleet) -> None:
        await prepared(fleet)
        monkeypatch.setattr(told_rows, "rows_of", rows_of)
        told = said_by(fleet, Meet)
        end = last(await moved(fleet, "B"))
        assert (told[0].rows, end.plain) == (b"", "state cannot be carried: it has more rows than there may be")
        assert end.pulled_bytes == end.num_bytes

    tell(story)
