"""What HTTP and the players ask of the gateway: open, close, plan, move, cancel, recover; join, leave, hear."""

import asyncio
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Protocol

from worldmove.errors import MessageError, MoveRefused, UserError
from worldmove.fleet.alike import alike
from worldmove.fleet.forecast import Forecast
from worldmove.fleet.ports import Beginning
from worldmove.fleet.reports import MoveReport
from worldmove.fleet.views import SessionView, WorkerState, WorkerView
from worldmove.move.strategy import Strategy, pick
from worldmove.serve.client_messages import Keep, Keys, Ping, Received, decode
from worldmove.serve.gateway import Gateway
from worldmove.serve.limits import PlayLimits
from worldmove.serve.live import Live
from worldmove.serve.live_config import Start
from worldmove.serve.play_messages import EngineInfo, Error, Lost, Pong, Resting
from worldmove.serve.player import CloseCode, Player
from worldmove.serve.recover import Recovery
from worldmove.serve.wording import environment_of, hello, workers_now
from worldmove.transport.link_speed import rate_of_link


class Ids(Protocol):
    """Where new names and seeds come from."""

    def session(self) -> str:
        """Return a name that no session has had."""
        ...

    def seed(self) -> int:
        """Return a world's seed."""
        ...


class Desk:
    """The gateway's side that faces people. Raises UserError for what cannot be met."""

    def __init__(self, gateway: Gateway, *, engine: EngineInfo, ids: Ids) -> None:
        self._gateway = gateway
        self._fleet = gateway.fleet
        self._engine = engine
        self._ids = ids

    @property
    def limits(self) -> PlayLimits:
        """What a connection may take."""
        return self._gateway.config.live.limits.for_blocks_of(self._engine.frames_per_block)

    async def open(self, *, seed: int | None, on: str | None, protect: int | None = None) -> SessionView:
        """Begin a world. Raises UserError: unknown worker, no slot.

        ``protect``: after how many blocks another worker keeps a snapshot; 0: never; None: as configured.
        """
        return await self._begin(Start(seed=self._ids.seed() if seed is None else seed), on, None, protect)

    async def go_on(self, start: Start, beginning: Beginning, *, on: str | None) -> SessionView:
        """Open a world where a saved one had come to. Raises UserError: unknown worker, no slot, environment."""
        return await self._begin(start, on, beginning)

    async def _begin(
        self, start: Start, on: str | None, beginning: Beginning | None, protect: int | None = None
    ) -> SessionView:
        on = None if on is None else self._worker(on)
        session = self._unused()
        self._gateway.begin(session, start)
        try:
            return await self._open(session, start.seed, on, beginning, protect)
        except BaseException:
            self._gateway.forget(session, "This world could not be opened.")
            raise

    def _unused(self) -> str:
        """Return a new name: no world's that an earlier server has opened and that is played here."""
        while (session := self._ids.session()) in self._gateway.lives:
            continue
        return session

    async def _open(
        self, session: str, seed: int, on: str | None, beginning: Beginning | None, protect: int | None
    ) -> SessionView:
        """Open it; where every place that it may have is taken, in that of a session which nobody watches."""
        while True:
            try:
                return await self._fleet.open(session, seed, on, beginning=beginning, protect_every=protect)
            except UserError as error:
                if error.code != "no_slot" or not await self._gateway.make_room(self._takers(on, beginning)):
                    raise  # else that room may be another's by now

    def _takers(self, on: str | None, beginning: Beginning | None) -> frozenset[str]:
        """Return the workers of which a new session may have a place."""
        ready = [view for view in self._fleet.workers() if view.state is WorkerState.READY and on in (None, view.name)]
        return frozenset(view.name for view in (ready if beginning is None else alike(ready, beginning.environment)))

    def protect(self, session: str, every: int) -> SessionView:
        """Have another worker keep a snapshot of a session every so many blocks; 0: none. Raises UserError."""
        self._gateway.live(session)
        self._fleet.protect(session, every)
        return self.view(session)

    async def close(self, session: str) -> None:
        """End a session. Raises UserError: unknown, or a move of it is under way."""
        self._gateway.live(session)
        await self._fleet.close(session)
        self._gateway.forget(session, "This session was closed.")

    def view(self, session: str) -> SessionView:
        """Return what the controller says of a session. Raises UserError for an unknown one."""
        self._gateway.live(session)
        for view in self._fleet.sessions():
            if view.name == session:
                return view
        raise UserError(f"The session {session} has ended.", code="unknown_session", status=404)

    def plan(self, session: str, to: str | None, *, strategy: str | None = None, link: str | None = None) -> Forecast:
        """Say what a move would be, and make none. Raises UserError."""
        destination = self._destination(self.view(session), to)
        return self._fleet.plan(session, destination, strategy=_strategy(strategy), link=_link(link))

    async def move(
        self, session: str, to: str | None, *, damage: bool, strategy: str | None = None, link: str | None = None
    ) -> MoveReport:
        """Move a session; the report has the gap, where a block was due. Raises UserError."""
        destination, wanted, limit = self._destination(self.view(session), to), _strategy(strategy), _link(link)
        report = await self._fleet.move(session, destination, damage=damage, strategy=wanted, link=limit)
        return await self._gateway.settled(session, report)

    async def cancel(self, session: str) -> MoveReport:
        """Give a session's move up if that is still possible, and return how it ended. Raises UserError: none."""
        self._gateway.live(session)
        return await self._gateway.settled(session, await self._fleet.cancel(session))

    async def recover(self, session: str) -> str:
        """Show a throw-away copy beside a session and return its name. Raises UserError."""
        recoveries = self._gateway.recoveries
        recovery = Recovery(self._gateway.live(session), fleet=self._fleet, seed=self._ids.seed())
        if session in recoveries:
            raise UserError("A throw-away copy of this world is open; wait for its end.", code="busy", status=409)
        recoveries[session] = recovery
        try:
            name = await recovery.open()
        except BaseException:
            del recoveries[session]
            raise
        self._gateway.spawn(self._run_recovery(session, recovery))
        return name

    def join(self, session: str, player: Player, *, controls: bool, received: str | None = None) -> None:
        """Let a player in: say hello, show what it lacks. Raises UserError for an unknown session.

        ``received``: the newest block that it has, with its receipt; without one that is true it counts as having
        none. After a restart of the server that is waited for, and the player with it.
        """
        live = self._gateway.live(session)
        if live.resuming is None or live.resuming.is_over:
            self._welcome(live, player, controls=controls, claim=received)
        else:
            block = live.receipts.proven(session, received, live.screen.forks)
            live.resuming.join(player, block, lambda: self._welcome(live, player, controls=controls, claim=received))

    def _welcome(self, live: Live, player: Player, *, controls: bool, claim: str | None) -> None:
        session = live.name
        received = live.receipts.proven(session, claim, live.screen.forks)  # as it counts by now
        live.controls.join(player, controls=controls)
        owner, workers = self._fleet.owner(session), self._fleet.workers()
        player.say(hello(live, owner, workers, self._engine, controls=controls))
        player.say(workers_now(workers, owner))
        player.say(live.tally.counts)
        if live.resting_why is not None:
            player.say(Resting(resting=True, why=live.resting_why))
        player.had_block = live.screen.had(received)
        for message in live.screen.missed(received):
            player.put(message)
        if live.failed_why is not None:
            player.finish(CloseCode.SESSION_ENDED, live.failed_why)
        if live.lost_why is not None:
            player.say(Lost(sentence=live.lost_why))
            player.finish(CloseCode.SESSION_ENDED, live.lost_why)

    def leave(self, session: str, player: Player) -> None:
        """A player's connection has ended."""
        try:
            live = self._gateway.live(session)
        except UserError:
            return  # the session ended first
        live.leave(player)

    def hear(self, session: str, player: Player, text: str) -> None:
        """Take one message of a player's. Raises UserError where the session has ended."""
        live = self._gateway.live(session)
        now = player.heard_at = asyncio.get_running_loop().time()
        if not player.messages.take(now):
            player.drop(CloseCode.TOO_MANY, "too many messages; come back slower")
            return
        try:
            message = decode(text)
        except MessageError as error:
            player.say(Error(code=error.code, message=str(error)))
            return
        match message:
            case Keys(changes=changes) if not player.key_changes.take(now, len(changes)):
                player.drop(CloseCode.TOO_MANY, "too many key changes; come back slower")
            case Keys():
                live.controls.press(player, message)
            case Keep(keep=keep):
                live.controls.keep(player, keep=keep)
            case Received(block=block, server_life=life) if life == live.server_life:
                player.received_block = max(block, player.received_block or 0)
            case Ping(t=t):
                player.say(Pong(t=t, server_ms=asyncio.get_running_loop().time() * 1000))

    def _destination(self, view: SessionView, to: str | None) -> str:
        if to is not None:
            return self._worker(to)
        return whither(self._fleet.workers(), view.owner)

    def is_held_up(self, session: str) -> bool:
        """Whether a session waits at a worker whose engine does not return from what it is at, whoever that is for."""
        owner = self._fleet.owner(session)
        return owner is not None and any(each.name == owner.worker and each.is_stuck for each in self._fleet.workers())

    def _worker(self, name: str) -> str:
        """Return a worker's name. Raises UserError, naming the nearest, for an unknown one."""
        names = [view.name for view in self._fleet.workers()]
        if name in names:
            return name
        near = get_close_matches(name, names, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(names)}."
        raise UserError(f"There is no worker {name}; {hint}", code="unknown_worker", status=404)

    async def _run_recovery(self, session: str, recovery: Recovery) -> None:
        try:
            await recovery.run()
        finally:
            del self._gateway.recoveries[session]


def _strategy(name: str | None) -> Strategy | None:
    """Return a strategy by its name, if one is named. Raises UserError, naming those that there are."""
    try:
        return None if name is None else pick(name)
    except MoveRefused as refusal:
        why = f"{refusal.detail[0].upper()}{refusal.detail[1:]}."
        raise UserError(why, code="unknown_strategy", status=404) from refusal


def _link(link: str | None) -> str | None:
    """Return the speed of a link, if one is said. Raises UserError for what is none."""
    if link is not None and rate_of_link(link) is None:
        why = f"{link} is no speed of a link; say one such as 1gbit, 25gbit or 2.5mbit."
        raise UserError(why, code="unknown_link", status=404)
    return link


def whither(workers: Sequence[WorkerView], owner: str) -> str:
    """Return the ready worker with most free slots that is not the owner: of those that compute as it does, if any do.

    One whose engine does not return is named only where none of them that has room is another. Raises UserError if
    there is no other worker at all.
    """
    others = [view for view in workers if view.name != owner and view.state is WorkerState.READY]
    awaited = next((view.name for view in workers if view.name != owner and view.state is not WorkerState.READY), None)
    if not others and awaited is not None:
        raise UserError(f"{awaited} is not ready yet; try again soon.", code="worker_gone", status=409)
    if not others:
        raise UserError(
            "There is no other worker to move to; start the server with --workers 2.", code="no_worker", status=409
        )
    able = alike(others, environment_of(owner, workers)) or others
    return max(able, key=lambda view: (view.slots_free > 0, not view.is_stuck, view.slots_free)).name
