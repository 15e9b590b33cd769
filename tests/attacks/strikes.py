"""Arming a fleet with one case: what it will hear, pull, find in its memory, or be told by its engine."""

import asyncio
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np

from tests.attacks.attacked import Attacked, Deliveries
from tests.attacks.case import Case, Where
from tests.attacks.mutate import more_mutators_of, mutators_of
from tests.attacks.payload import WAYS, Spoil
from tests.move.harness import Copy
from worldmove.move.ledger_messages import Operation
from worldmove.move.messages import (
    CONTROLLER,
    AnyMoveMessage,
    Base,
    Begin,
    Boundary,
    Cancel,
    Component,
    Fetched,
    Final,
    Handed,
    Landed,
    Meet,
    Proof,
    Ready,
)
from worldmove.state import Manifest, Placement
from worldmove.state.digest import split
from worldmove.state.extent import Extent
from worldmove.transport.base import Channel

USUAL_S = 0.0005


@dataclass(slots=True, kw_only=True)
class Struck:
    """What a strike did."""

    times: int = 0
    leaves: list[str] = field(default_factory=list)
    """One of these must be named in the report; empty where no payload differs."""
    refused_by_window: bool = False
    undo: Callable[[], None] = lambda: None


def arm(fleet: Attacked, case: Case, donors: "Donors") -> Struck:
    """Make the fleet lie as the case says, until ``at_ease``."""
    struck, rng = Struck(), random.Random(f"{case.where.name} {case.target} {case.how} {case.seed}")
    ARMS[case.where](fleet, case, rng, donors, struck)
    return struck


@dataclass(frozen=True, slots=True, kw_only=True)
class Donors:
    """What another session's and an earlier boundary's attempts have."""

    messages: dict[type, AnyMoveMessage]
    """Of another session's move."""
    ahead: dict[type, AnyMoveMessage]
    """Of another session's move that went ahead."""
    streamed: dict[type, AnyMoveMessage]
    """Of another session's move that streamed."""
    followed: dict[type, AnyMoveMessage]
    """Of another session's move that followed."""
    other_slot: bytes


EARLY = (Base, Begin, Component, Fetched, Final, Handed, Meet, Ready)
"""What a boundary copy never says."""


def _by_name(*kinds: type) -> dict[str, type]:
    return {kind.__name__: kind for kind in kinds}


AHEAD_KINDS = _by_name(Base, Begin, Meet, Ready, Boundary)
"""What a move says that goes ahead."""
STREAM_KINDS = _by_name(Final, Component, Handed, Fetched)
"""What one says beside that which streams."""
FOLLOW_KINDS = _by_name(Base, Fetched)
"""What one says of a snapshot."""
KINDS = _by_name(*(kind for kind in AnyMoveMessage.__args__ if kind not in EARLY))
QUESTIONS: dict[str, type] = {kind.__name__: kind for kind in Operation.__args__}


# messages


def _setting(fleet: Attacked, kind: str) -> None:
    """Bring it about that a message of this kind is sent at all."""
    if kind == "Declined":
        fleet.strategy = "teleport"
    elif kind == "Abandon":
        fleet.on_reserve = lambda copy: setattr(copy, "before_install", break_one_byte)
    elif kind == "Cancel":

        def cancel(message: AnyMoveMessage) -> None:
            if isinstance(message, Boundary):
                for name in ("A", "B"):
                    fleet.say(Cancel, name, message.attempt, message.epoch)

        fleet.on_post = cancel


def break_one_byte(copy: Copy, manifest: Manifest, placement: Placement) -> None:
    copy.arena.buffer[placement[0]] ^= 1


def ahead(fleet: Attacked, case: Case, rng: random.Random, donors: Donors, struck: Struck) -> None:
    fleet.go_ahead(plays_on=case.how.endswith("made up") or rng.random() < 0.3)
    _strike(fleet, case, AHEAD_KINDS, rng, donors.ahead, struck)


def streamed(fleet: Attacked, case: Case, rng: random.Random, donors: Donors, struck: Struck) -> None:
    fleet.go_streaming(rests=rng.random() < 0.5)
    _strike(fleet, case, STREAM_KINDS, rng, donors.streamed, struck)


def followed(fleet: Attacked, case: Case, rng: random.Random, donors: Donors, struck: Struck) -> None:
    fleet.go_following()
    _strike(fleet, case, FOLLOW_KINDS, rng, donors.followed, struck)


def _strike(
    fleet: Attacked,
    case: Case,
    kinds: Mapping[str, type],
    rng: random.Random,
    messages: Mapping[type, AnyMoveMessage],
    struck: Struck,
) -> None:
    """Strike one field of a kind of message, where the case names one; else the whole message."""
    name, _, is_field = case.target.partition(".")
    if is_field:
        _change_field(fleet, case, kinds[name], rng, messages, struck)
    else:
        _change_whole(fleet, case, kinds[name], rng, messages, struck)


def field_of_message(fleet: Attacked, case: Case, rng: random.Random, donors: Donors, struck: Struck) -> None:
    kind = case.target.partition(".")[0]
    _setting(fleet, kind)
    change = _change_field(fleet, case, KINDS[kind], rng, donors.messages, struck)
    if kind == "Gone":
        _beside(fleet, lambda message: change(_gone(message)))


def _change_field(
    fleet: Attacked,
    case: Case,
    kind: type,
    rng: random.Random,
    messages: Mapping[type, AnyMoveMessage],
    struck: Struck,
) -> Callable[[AnyMoveMessage], AnyMoveMessage]:
    """Have one field of a kind of message be another, from now on; return what changes it."""
    name, ways = case.target.partition(".")[2], mutators_of if case.where is Where.FIELD else more_mutators_of
    others = [messages.get(kind), fleet.earlier.get(kind)]
    always = rng.random() < 0.3

    def change(message: AnyMoveMessage) -> AnyMoveMessage:
        value = getattr(message, name)
        if case.how not in ways(value):
            return message
        other = next((getattr(m, name) for m in rng.sample(others, 2) if m is not None), value)
        changed = ways(value)[case.how](rng, value, other)
        if type(changed) is type(value) and _same(changed, value):
            return message
        struck.times += 1
        return msgspec.structs.replace(message, **{name: changed})

    def deliver(message: AnyMoveMessage) -> Deliveries:
        hits = isinstance(message, kind) and (always or not struck.times)
        return [(USUAL_S, change(message) if hits else message)]

    fleet.deliver = deliver
    return change


def _same(one: Any, other: Any) -> bool:
    return bool(one == other) or (one != one and other != other)  # noqa: PLR0124


def _gone(message: AnyMoveMessage) -> AnyMoveMessage:
    names = {name: getattr(message, name) for name in ("to", "sender", "incarnation", "session", "attempt", "epoch")}
    return KINDS["Gone"](**names, owned_epoch=message.epoch)  # type: ignore[no-any-return]


def _beside(fleet: Attacked, make: Callable[[AnyMoveMessage], AnyMoveMessage]) -> None:
    """Beside every message, another one for the same ear."""
    fleet.deliver = lambda message: [(USUAL_S, message), (USUAL_S, make(message))]


def whole_message(fleet: Attacked, case: Case, rng: random.Random, donors: Donors, struck: Struck) -> None:
    _setting(fleet, case.target)
    _change_whole(fleet, case, KINDS[case.target], rng, donors.messages, struck)
    if case.target == "Gone":

        def gone(message: AnyMoveMessage) -> Deliveries:
            struck.times += 1
            return [(USUAL_S, message), *_whole(case.how, _gone(message), rng, donors.messages, fleet)]

        fleet.deliver = gone


def _change_whole(
    fleet: Attacked,
    case: Case,
    kind: type,
    rng: random.Random,
    messages: Mapping[type, AnyMoveMessage],
    struck: Struck,
) -> None:
    """Have a kind of message come otherwise than it was sent, from now on."""
    held: Deliveries = []

    def deliver(message: AnyMoveMessage) -> Deliveries:
        if not isinstance(message, kind):
            late, held[:] = held[:], []
            return [(USUAL_S, message), *((2 * USUAL_S, each) for _, each in late)]
        said = _whole(case.how, message, rng, messages, fleet)
        if case.how == "after the next one":
            held.extend(said)
            said = []
        struck.times += 1
        return said

    fleet.deliver = deliver


WHOLE = (
    *("dropped", "twice", "late by half a second", "late by seconds", "after the next one"),
    *("an earlier one instead", "an earlier one beside", "another session's instead", "another session's beside"),
    *("of a foreign attempt", "of a foreign epoch", "of a foreign incarnation", "from another sender", "bits flipped"),
    *("cut short", "zeros"),
)


def _whole(  # noqa: C901, PLR0912
    how: str,
    message: AnyMoveMessage,
    rng: random.Random,
    messages: Mapping[type, AnyMoveMessage],
    fleet: Attacked,
) -> Deliveries:
    replace = msgspec.structs.replace
    earlier = fleet.earlier.get(type(message), message)
    other = messages.get(type(message), message)
    said: list[AnyMoveMessage | None] = [message]
    match how:
        case "dropped":
            return []
        case "twice":
            return [(USUAL_S, message), (0.0011, message), (rng.random() * 3, message)]
        case "late by half a second":
            return [(0.6, message)]
        case "late by seconds":
            return [(rng.choice([2.5, 7.0, 12.0]), message)]
        case "an earlier one instead":
            said = [replace(earlier, to=message.to)]
        case "an earlier one beside":
            said = [replace(earlier, to=message.to), message]
        case "another session's instead":
            said = [replace(other, to=message.to)]
        case "another session's beside":
            said = [replace(other, to=message.to), message]
        case "of a foreign attempt":
            said = [replace(message, attempt=f"{rng.randrange(1 << 20):08d}-t")]
        case "of a foreign epoch":
            said = [replace(message, epoch=max(0, message.epoch + rng.choice([-2, -1, 1, 2, 40])))]
        case "of a foreign incarnation":
            said = [replace(message, incarnation=message.incarnation + rng.randrange(1, 9))]
        case "from another sender":
            said = [replace(message, sender=rng.choice(["A", "B", "C", CONTROLLER]))]
        case "bits flipped" | "cut short" | "zeros":
            said = [_of_bytes(how, message, rng)]
            fleet.undecodable += said == [None]
    return [(USUAL_S, each) for each in said if each is not None]


def _of_bytes(how: str, message: AnyMoveMessage, rng: random.Random) -> AnyMoveMessage | None:
    """A message's bytes changed, where they still are a message's."""
    data = bytearray(msgspec.msgpack.encode(message))
    if how == "cut short":
        del data[rng.randrange(len(data)) :]
    elif how == "zeros":
        at = rng.randrange(len(data))
        data[at : at + 16] = bytes(len(data[at : at + 16]))
    else:
        for _ in range(rng.choice([1, 1, 1, 2, 5])):
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    try:
        return msgspec.msgpack.decode(bytes(data), type=AnyMoveMessage)
    except (msgspec.MsgspecError, UnicodeError):
        return None


# payload


def bytes_on_their_way(fleet: Attacked, case: Case, rng: random.Random, donors: Donors, struck: Struck) -> None:
    if case.how in LATE:
        fleet.pull = _late(fleet, case, rng, struck)
        return

    async def pull(inner: Channel, wanted: Sequence[Extent], into: memoryview) -> None:
        before = bytes(into)
        await inner.pull(wanted, into)
        _spoil(fleet, case, rng, donors, struck, memory=into, wanted=wanted, before=before)

    fleet.pull = pull


def _spoil(
    fleet: Attacked,
    case: Case,
    rng: random.Random,
    donors: Donors,
    struck: Struck,
    *,
    memory: memoryview,
    wanted: Sequence[Extent],
    before: bytes,
) -> None:
    right = bytes(memory)
    stale = fleet.stale_slot or donors.other_slot
    nth = int(case.target.rpartition(" ")[2])
    WAYS[case.how](
        Spoil(
            rng=rng,
            memory=memory,
            extents=wanted,
            nth=nth,
            before=before,
            stale=stale.ljust(len(right), b"\0")[: len(right)],
            other=donors.other_slot.ljust(len(right), b"\0")[: len(right)],
        )
    )
    _note(fleet, struck, right, memory, wanted)


def _note(fleet: Attacked, struck: Struck, right: bytes, memory: memoryview, wanted: Sequence[Extent]) -> None:
    there = np.frombuffer(bytes(memory), dtype=np.uint8) != np.frombuffer(right, dtype=np.uint8)
    differing = [at for e in wanted for at in (np.flatnonzero(there[e.offset : e.end])[:1] + e.offset).tolist()]
    if differing:
        struck.times += 1
        struck.leaves.extend(path for at in differing for path in fleet.leaves_at(at))


LATE = ("kept part, written after the proof", "kept array, written after the proof", "window, written after the proof")


def _late(fleet: Attacked, case: Case, rng: random.Random, struck: Struck) -> Any:
    """A path that says it is done, and would write once more when everything was verified."""
    kept: list[Any] = []

    async def pull(inner: Channel, wanted: Sequence[Extent], into: memoryview) -> None:
        await inner.pull(wanted, into)
        hit = wanted[int(case.target.rpartition(" ")[2]) % len(wanted)]
        at = hit.offset + rng.randrange(hit.length)
        if case.how.startswith("kept part"):
            kept.append((into[at : at + 1], 0))
        elif case.how.startswith("kept array"):
            kept.append((np.frombuffer(into, dtype=np.uint8), at))
        else:
            kept.append((into, at))
        struck.times += 1

    def write(message: AnyMoveMessage) -> None:
        if isinstance(message, Proof) and kept:
            memory, at = kept.pop()
            try:
                memory[at] ^= 1
            except ValueError:
                struck.refused_by_window = True

    fleet.on_post = write
    return pull


def landed_memory(fleet: Attacked, case: Case, rng: random.Random, donors: Donors, struck: Struck) -> None:
    def alter(copy: Copy, manifest: Manifest, placement: Placement) -> None:
        poisoned = bytes([0xA5]) * copy.arena.size
        _spoil(fleet, case, rng, donors, struck, memory=copy.arena.buffer, wanted=fleet.used(), before=poisoned)

    fleet.on_reserve = lambda copy: setattr(copy, "before_install", alter)


INSTALLED: dict[str, Callable[[Any, random.Random], None]] = {
    "generator": lambda world, rng: world.generator.bit_generator.advance(rng.randrange(1, 1 << 20)),
    "window": lambda world, rng: world.window.reshape(-1).view(np.uint8).__ixor__(_bit(rng, 6 * 16 * 4)),
    "base": lambda world, rng: world.base.reshape(-1).view(np.uint8).__ixor__(_bit(rng, 96 * 4)),
    "trail": lambda world, rng: world.trail.view(np.uint8).__ixor__(_bit(rng, 320)),
    "late": lambda world, rng: setattr(world, "late", rng.choice([None, np.full(5, 8, dtype=np.float16)])),
    "block": lambda world, rng: setattr(world, "block", world.block ^ 1 << rng.randrange(8)),
    "waiting": lambda world, rng: world.waiting.append("x"),
    "window and base": lambda world, rng: _swap(world),
    "another type": lambda world, rng: setattr(world, "window", world.window.astype(np.float64)),
    "a copy elsewhere, flipped": lambda world, rng: setattr(world, "base", _flipped(world.base, rng)),
    "a copy elsewhere, zeros": lambda world, rng: setattr(world, "trail", np.zeros_like(world.trail)),
    "transposed": lambda world, rng: setattr(world, "base", world.base.T),
    "stale block": lambda world, rng: setattr(world, "block", world.block - 1),
}


def _bit(rng: random.Random, size: int) -> Any:
    mask = np.zeros(size, dtype=np.uint8)
    mask[rng.randrange(size)] = 1 << rng.randrange(8)
    return mask


def _swap(world: Any) -> None:
    part = world.base.reshape(-1).copy()
    world.base[:] = world.window.reshape(-1).reshape(12, 8)
    world.window[:] = part.reshape(6, 16)


def _flipped(array: Any, rng: random.Random) -> Any:
    changed = array.copy()
    changed.reshape(-1).view(np.uint8)[rng.randrange(changed.nbytes)] ^= 1
    return changed


def installed_session(fleet: Attacked, case: Case, rng: random.Random, donors: Donors, struck: Struck) -> None:
    def alter(copy: Copy) -> None:
        before = copy.world.bytes_of()  # type: ignore[attr-defined]
        INSTALLED[case.target](copy.world, rng)
        after = copy.world.bytes_of()  # type: ignore[attr-defined]
        if before != after:
            struck.times += 1
            struck.leaves.extend(path for path in before if before[path] != after[path])

    fleet.on_reserve = lambda copy: setattr(copy, "after_install", alter)


# the source's engine


def engine_writes(fleet: Attacked, case: Case, rng: random.Random, donors: Donors, struck: Struck) -> None:
    """Write one bit of a leaf; it is undone after the case, so that the world can be compared."""
    source = fleet.owner
    memory = getattr(source.world, case.target)

    def write() -> None:
        if not struck.times:
            struck.times += 1
            struck.leaves.append(case.target)
            memory.reshape(-1).view(np.uint8).__ixor__(mask)
            struck.undo = undo

    def undo() -> None:
        memory.reshape(-1).view(np.uint8).__ixor__(mask)
        struck.undo = lambda: None

    mask = _bit(rng, memory.nbytes)
    if case.how == "when the bytes have landed":
        fleet.on_post = lambda message: write() if isinstance(message, Landed) else None
    else:

        async def pull(inner: Channel, wanted: Sequence[Extent], into: memoryview) -> None:
            if case.how == "before they are pulled":
                write()
            await inner.pull(wanted, into)
            write()
            if case.how == "while they are pulled, and takes it back":
                await inner.pull(wanted, into)
                undo()

        fleet.pull = pull


ENGINE = ("when the bytes have landed", "before they are pulled", "after they are pulled")
ABA = "while they are pulled, and takes it back"


# digests


def digests(fleet: Attacked, case: Case, rng: random.Random, donors: Donors, struck: Struck) -> None:
    """One end's proof is not of its present bytes: a digest of an earlier attempt, of zeros, or of another group."""

    def deliver(message: AnyMoveMessage) -> Deliveries:
        if not isinstance(message, Proof):
            return [(USUAL_S, message)]
        groups = list(split(message.groups))
        at = int(case.target.rpartition(" ")[2]) % len(groups)
        earlier = fleet.earlier.get(Proof)
        stale = split(earlier.groups)[at % (len(earlier.groups) // 16)] if isinstance(earlier, Proof) else bytes(16)
        groups[at] = {
            "of an earlier attempt": stale,
            "zeros": bytes(16),
            "of another group": groups[(at + 1) % len(groups)],
            "flipped": bytes([groups[at][0] ^ 1 << rng.randrange(8), *groups[at][1:]]),
        }[case.how]
        if b"".join(groups) != message.groups:
            struck.times += 1
        return [(USUAL_S, msgspec.structs.replace(message, groups=b"".join(groups)))]

    fleet.deliver = deliver


DIGESTS = ("of an earlier attempt", "zeros", "of another group", "flipped")


# the ledger


def questions(fleet: Attacked, case: Case, rng: random.Random, donors: Donors, struck: Struck) -> None:
    kind, _, name = case.target.partition(".")
    if kind == "CloseAttempt":
        fleet.on_reserve = lambda copy: setattr(copy, "before_install", break_one_byte)

    def question(operation: Operation) -> Operation:
        if not isinstance(operation, QUESTIONS[kind]) or struck.times:
            return operation
        value = getattr(operation, name)
        changed = mutators_of(value)[case.how](rng, value, rng.choice(["A", "C"]) if type(value) is str else value + 1)
        if _same(changed, value) and type(changed) is type(value):
            return operation
        struck.times += 1
        return msgspec.structs.replace(operation, **{name: changed})

    fleet.question = question


ARMS: dict[Where, Callable[[Attacked, Case, random.Random, Donors, Struck], None]] = {
    Where.FIELD: field_of_message,
    Where.AHEAD: ahead,
    Where.STREAM: streamed,
    Where.FOLLOW: followed,
    Where.MESSAGE: whole_message,
    Where.PATH: bytes_on_their_way,
    Where.LANDED: landed_memory,
    Where.INSTALLED: installed_session,
    Where.WINDOW: bytes_on_their_way,
    Where.ENGINE: engine_writes,
    Where.DIGEST: digests,
    Where.QUESTION: questions,
}


async def calm(fleet: Attacked, limit_s: float) -> bool:
    """Wait until one copy plays and nobody is in the middle of anything. False if that does not come about."""
    loop = asyncio.get_running_loop()
    until = loop.time() + limit_s
    while loop.time() < until:
        if len(fleet.live()) == 1:
            return True
        await asyncio.sleep(0.05)
    return False
