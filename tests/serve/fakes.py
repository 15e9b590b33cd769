"""A fleet without processes: its workers compute a block as soon as they have its list, and moves are a word."""

import asyncio
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from tests.views import worker_view
from worldmove.engine.base import EngineSpec
from worldmove.engine.facts import fields_of
from worldmove.errors import LedgerError, UserError
from worldmove.fleet.failover_report import FailoverReport
from worldmove.fleet.forecast import Forecast
from worldmove.fleet.ports import Beginning, Gateway, Owner
from worldmove.fleet.reports import MoveReport, Outcome, PhaseTime
from worldmove.fleet.views import SessionState, SessionView, WorkerState, WorkerView
from worldmove.move.choice import choose
from worldmove.move.ledger_messages import Answer, Denied, Done, MarkShown, Operation
from worldmove.move.measured import Measured
from worldmove.move.strategy import Strategy
from worldmove.serve.receipts import KEY_BYTES, Receipts
from worldmove.state.leaf_sizes import LeafSize
from worldmove.transport.link_speed import rate_of_link, throttled_name
from worldmove.worker.messages import (
    Acknowledge,
    BlockDone,
    CheckDone,
    Described,
    Inputs,
    Note,
    Opened,
    Saved,
    ToWorker,
)

RECEIPTS = Receipts(bytes(range(KEY_BYTES)))

SPEC = EngineSpec(
    name="fake",
    preset="counting",
    weights_sha256="00" * 32,
    height=2,
    width=3,
    frames_per_block=2,
    frames_per_s=40.0,
    keys=("up", "down", "left", "right", "flag"),
    num_threads=1,
)


MEASURED = Measured(
    num_bytes=20_000_000,
    source_hash_rate=10e9,
    path_rate=4e9,
    destination_hash_rate=8e9,
    horizon_s=0.25,
    copy_rate=20e9,
    period_s=0.5,
    block_s=0.1,
    utilisation=0.2,
    num_slots_free=2,
    num_source_slots_free=1,
)


class Counting:
    """A world whose frames say which numbers it was given: block b's bytes depend on every list before it."""

    def __init__(self, seed: int) -> None:
        self.state = hashlib.sha256(str(seed).encode()).digest()
        self.next_block = 0
        self.number = 0
        self.held: dict[str, None] = {}

    def step(self, inputs: Inputs) -> tuple[bytes, tuple[Note, ...], str]:
        """Advance by one block; return its frames, notes and the state's digest."""
        assert inputs.block == self.next_block
        self.next_block += 1
        pressed = [change.key for change in inputs.changes if change.down]
        for change in inputs.changes:
            self.number = change.number
            if change.down:
                self.held[change.key] = None
            else:
                self.held.pop(change.key, None)
        self.state = hashlib.sha256(self.state + repr(inputs.changes).encode()).digest()
        size = SPEC.width * SPEC.height * 3
        frames = b"".join((self.state + bytes([index]) * size)[:size] for index in range(SPEC.frames_per_block))
        actions = (pressed + list(self.held) + ["stay", "stay"])[: SPEC.frames_per_block]
        notes = tuple(Note(y=0, x=self.next_block, action=action, number=self.number) for action in actions)
        return frames, notes, self.state.hex()


@dataclass
class FakeSession:
    """A session of the fake: its row, and a world for each worker that holds a copy."""

    view: SessionView
    worlds: dict[str, Counting] = field(default_factory=dict)
    waiting: dict[str, dict[int, Inputs]] = field(default_factory=dict)
    retired: dict[str, str] = field(default_factory=dict)
    """By worker: the attempt after which its copy only checks."""
    log: dict[int, Inputs] = field(default_factory=dict)
    digests_owed: int = 0


class FakeFleet:
    """A ``Fleet``. ``compute_s``: how long a block takes. What is sent is kept in ``sent``."""

    def __init__(self, *, compute_s: float = 0.001, workers: Sequence[str] = ("a", "b")) -> None:
        self.compute_s = compute_s
        self.sent: list[tuple[str, ToWorker]] = []
        self.asked: list[Operation] = []
        self.sessions_by_name: dict[str, FakeSession] = {}
        self.reports: list[MoveReport] = []
        self.outcome = Outcome.COMMITTED
        self.num_places: int | None = None
        """How many sessions there is room for."""
        self.holds_moves = False
        """Whether a move waits until it is cancelled."""
        self.held: tuple[str, asyncio.Event] | None = None
        self.gone: set[str] = set()
        """Workers that are dead."""
        self.failing_answers = 0
        """How many questions to the ledger fail."""
        self.silent_answers = 0
        """How many questions to the ledger are left unanswered."""
        self.forks: list[int] = []
        self.protected: dict[str, int] = {}
        """After how many blocks a snapshot of each session is kept."""
        self.comparisons: list[tuple[str, int, int, bool]] = []
        """Of replayed blocks: session, epoch, block, whether it was equal."""
        self.disowned: list[tuple[str, int, str]] = []
        """Owners whose blocks can never be shown: session, epoch, why."""
        self.failed_over: list[FailoverReport] = []
        self.environment: dict[str, str] = {}
        """What its workers say of their environment otherwise."""
        self.on_block: Callable[[str, BlockDone], BlockDone | None] = lambda _worker, block: block
        self._gateway: Gateway | None = None
        self._names = tuple(workers)

    @property
    def gateway(self) -> Gateway:
        assert self._gateway is not None
        return self._gateway

    def attach(self, gateway: Gateway) -> None:
        self._gateway = gateway

    async def start(self) -> None:
        return

    async def stop(self) -> None:
        return

    async def open(
        self,
        session: str,
        seed: int,
        on: str | None = None,
        *,
        beginning: Beginning | None = None,
        protect_every: int | None = None,
    ) -> SessionView:
        if self.num_places is not None and len(self.sessions_by_name) >= self.num_places:
            raise UserError("Every slot is taken; close a session first.", code="no_slot", status=409)
        view = self._open(session, seed, on or self._names[0], epoch=1, throwaway=False)
        self.protect(session, protect_every or 0)
        return view

    async def describe(self, session: str) -> Described:
        leaves = (LeafSize("state", "bytes", (), 32), LeafSize("number", "int", (), 1))
        next_block = self.sessions_by_name[session].worlds[self._names[0]].next_block
        return Described(session=session, request=1, block=next_block, num_leaves=2, num_bytes=33, leaves=leaves)

    async def save(self, session: str, path: str) -> Saved:
        raise UserError("a fake has no state to save", code="moving", status=409)

    async def open_throwaway(self, session: str, picture: bytes, seed: int) -> SessionView:
        assert len(picture) == SPEC.width * SPEC.height * 3
        return self._open(f"{session}~r1", seed, self._names[-1], epoch=0, throwaway=True)

    def _open(self, session: str, seed: int, worker: str, *, epoch: int, throwaway: bool) -> SessionView:
        view = SessionView(
            name=session,
            state=SessionState.LIVE,
            owner=worker,
            incarnation=1,
            epoch=epoch,
            attempt=None,
            holders=(worker,),
            seed=seed,
            num_bytes=32,
            num_leaves=4,
            throwaway=throwaway,
        )
        self.sessions_by_name[session] = FakeSession(view=view, worlds={worker: Counting(seed)})
        opened = Opened(session=session, epoch=epoch, num_bytes=32, num_leaves=4, state_digest="d")
        self.gateway.take(worker, opened)
        self.gateway.holders(session, (worker,))
        self.gateway.owned(session, Owner(worker=worker, incarnation=1, epoch=epoch))
        return view

    async def close(self, session: str) -> None:
        del self.sessions_by_name[session]

    def plan(self, session: str, to: str, *, strategy: Strategy | None = None, link: str | None = None) -> Forecast:
        """A path of a set speed is what it says; all else is fast, and rows are not measured."""
        fake = self.sessions_by_name[session]
        if to == fake.view.owner:
            raise UserError(f"{session} is at {to} already", code="already_there", status=409)
        path_rate = 4e9 if link is None else rate_of_link(link)
        measured = dict.fromkeys(Strategy, replace(MEASURED, path_rate=path_rate))
        return Forecast(
            session=session,
            source=fake.view.owner,
            destination=to,
            transport="fake" if link is None else throttled_name(link, "fake"),
            measured=measured,
            choice=choose(measured, strategy, offered=tuple(Strategy)),
        )

    async def move(
        self,
        session: str,
        to: str,
        *,
        damage: bool = False,
        strategy: Strategy | None = None,
        link: str | None = None,
    ) -> MoveReport:
        fake = self.sessions_by_name[session]
        source = fake.view.owner
        if to == source:
            raise UserError(f"{session} is at {to} already", code="already_there", status=409)
        attempt = f"m-{len(self.reports) + 1}"
        prepare: dict[str, object] = {"attempt": attempt, "phase": "prepare", "source": source, "destination": to}
        self.gateway.moving(session, "phase", prepare)
        if self.holds_moves:
            self.held = (session, asyncio.Event())
            await self.held[1].wait()
        outcome = Outcome.ABORTED if damage else self.outcome
        if outcome is Outcome.COMMITTED:
            # As the protocol has it: no proof before every block that was computed has been taken.
            while self.gateway.next_block(session) != fake.worlds[source].next_block:  # noqa: ASYNC110
                await asyncio.sleep(0.001)
            self.hand_over(session, to)
        report = MoveReport(
            session=session,
            attempt=attempt,
            source=source,
            destination=to,
            outcome=outcome,
            reason="done" if outcome is Outcome.COMMITTED else "environment",
            detail="device: cpu and gpu",
            epoch=fake.view.epoch,
            runs_at=None if source in self.gone else fake.view.owner,
            tries=3 if damage else 1,
            transport="fake",
            started_at=0.0,
            took_s=0.01,
            pause_s=0.002 if outcome is Outcome.COMMITTED else None,
            phases=(PhaseTime(side="source", name="freeze", start_s=0.0, end_s=0.001),),
            num_bytes=32,
            num_leaves=4,
            num_groups=1,
            num_checked=4 if outcome is Outcome.COMMITTED else 0,
        )
        self.reports.append(report)
        self.gateway.moving(
            session, "phase", {"attempt": report.attempt, "phase": "commit", "source": source, "destination": to}
        )
        self.gateway.moving(session, "result", {"report": report})
        return report

    def hand_over(self, session: str, to: str) -> None:
        """Let another worker own a session, with a copy of the same world; the old one retires."""
        fake = self.sessions_by_name[session]
        source = fake.view.owner
        world, copy = fake.worlds[source], Counting(0)
        copy.state, copy.next_block, copy.number, copy.held = (
            world.state,
            world.next_block,
            world.number,
            {**world.held},
        )
        fake.worlds[to] = copy
        fake.retired[source], fake.digests_owed = f"m-{len(self.reports) + 1}", 2
        fake.retired.pop(to, None)
        fake.view = replace(fake.view, owner=to, epoch=fake.view.epoch + 1, holders=(to, source))
        fake.waiting.setdefault(to, {})
        self.gateway.holders(session, (to, source))
        self.gateway.owned(session, Owner(worker=to, incarnation=1, epoch=fake.view.epoch))

    async def cancel(self, session: str) -> MoveReport:
        """End a move that is held."""
        if self.held is None or self.held[0] != session:
            raise UserError(f"No move of {session} is under way.", code="not_moving", status=409)
        self.outcome = Outcome.ABORTED
        self.held[1].set()
        self.held = None
        while not self.reports:  # noqa: ASYNC110
            await asyncio.sleep(0.001)
        return self.reports[-1]

    async def ask(self, operation: Operation) -> Answer | None:
        self.asked.append(operation)
        await asyncio.sleep(0)
        if self.failing_answers:
            self.failing_answers -= 1
            raise LedgerError("the file is locked")
        if self.silent_answers:
            self.silent_answers -= 1
            return None
        assert isinstance(operation, MarkShown)
        owner = self.owner(operation.session)
        if owner is None or owner.epoch != operation.epoch:
            return Denied(session=operation.session, reason="epoch")
        return Done(session=operation.session, epoch=operation.epoch)

    def owner(self, session: str) -> Owner | None:
        fake = self.sessions_by_name.get(session)
        return None if fake is None else Owner(worker=fake.view.owner, incarnation=1, epoch=fake.view.epoch)

    def send(self, worker: str, message: ToWorker) -> None:
        self.sent.append((worker, message))
        if isinstance(message, Inputs) and message.session in self.sessions_by_name:
            fake = self.sessions_by_name[message.session]
            known = fake.log.setdefault(message.block, message)
            assert known == message, "a list once closed was closed anew"
            fake.waiting.setdefault(worker, {})[message.block] = message
            asyncio.get_running_loop().call_later(self.compute_s, self._compute, message.session, worker)

    def _compute(self, session: str, worker: str) -> None:
        fake = self.sessions_by_name.get(session)
        if fake is None or worker not in fake.worlds:
            return
        world = fake.worlds[worker]
        inputs = fake.waiting[worker].pop(world.next_block, None)
        if inputs is None:
            return
        frames, notes, digest = world.step(inputs)
        size = len(frames) // SPEC.frames_per_block
        sha = tuple(hashlib.sha256(frames[at : at + size]).digest() for at in range(0, len(frames), size))
        if worker in fake.retired:
            attempt = fake.retired[worker]
            self.gateway.take(
                worker,
                CheckDone(session=session, attempt=attempt, block=inputs.block, frame_sha256=sha, state_digest=digest),
            )
            return
        owed = fake.digests_owed > 0
        fake.digests_owed -= owed
        done = BlockDone(
            session=session,
            epoch=fake.view.epoch,
            block=inputs.block,
            frames=frames,
            frame_sha256=sha,
            notes=notes,
            compute_s=self.compute_s,
            state_digest=digest if owed else "",
        )
        changed = self.on_block(worker, done)
        if changed is not None:
            self.gateway.take(worker, changed)

    def protect(self, session: str, every: int) -> None:
        self.protected[session] = every

    def fork(self, session: str, block: int) -> None:
        self.forks.append(block)

    def compared(self, session: str, epoch: int, block: int, *, equal: bool) -> None:
        self.comparisons.append((session, epoch, block, equal))

    def malformed(self, session: str, epoch: int, why: str) -> None:
        self.disowned.append((session, epoch, why))

    def failovers(self) -> tuple[FailoverReport, ...]:
        return tuple(self.failed_over)

    def amend(self, told: MoveReport) -> None:
        self.reports = [told if report.attempt == told.attempt else report for report in self.reports]

    @property
    def ledger_failure(self) -> LedgerError | None:
        return None

    def workers(self) -> tuple[WorkerView, ...]:
        return tuple(
            worker_view(
                name,
                pid=None if name in self.gone else 100 + index,
                state=WorkerState.GONE if name in self.gone else WorkerState.READY,
                slots_free=2,
                environment={**fields_of(SPEC), "device": "cpu", "worker_specific": str(index), **self.environment},
            )
            for index, name in enumerate(self._names)
        )

    def sessions(self) -> tuple[SessionView, ...]:
        return tuple(fake.view for fake in self.sessions_by_name.values())

    def moves(self) -> tuple[MoveReport, ...]:
        return tuple(self.reports)

    def acknowledged(self, worker: str) -> list[tuple[int, int]]:
        """The (epoch, block) pairs acknowledged to a worker, in order."""
        return [(m.epoch, m.block) for to, m in self.sent if to == worker and isinstance(m, Acknowledge)]


@dataclass
class FakeIds:
    """Names and seeds in order."""

    num: int = 0

    def session(self) -> str:
        self.num += 1
        return f"s-{self.num}"

    def seed(self) -> int:
        return 7


class FakeSocket:
    """A ``player.Socket`` that keeps what it was sent. ``stuck``: it takes nothing until released."""

    def __init__(self, *, stuck: bool = False) -> None:
        self.sent: list[bytes | str] = []
        self.closed: tuple[int, str] | None = None
        self.gone = False
        self.more = asyncio.Event()
        self._open = asyncio.Event()
        if not stuck:
            self._open.set()

    def release(self) -> None:
        self._open.set()

    async def send(self, message: bytes | str) -> None:
        await self._open.wait()
        if self.gone:
            raise ConnectionError("gone")
        self.sent.append(message)
        self.more.set()

    async def close(self, code: int, reason: str) -> None:
        self.closed = (code, reason)
