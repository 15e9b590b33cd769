"""The invariants, checked at every event that could break one. What they are, in words:

1. A row's epoch grows by one with each change of owner, and an epoch has one owner for ever.
2. A copy plays only in an epoch that the ledger gave to its worker's incarnation; no two live copies play at once.
3. An engine steps a block with exactly the list that the gateway closed for it.
4. A block is shown once, in order, in the epoch of the row at that moment, and its frames are those of a world that
   was never moved and had the same lists.
5. A session is lost only when no process with power holds a copy that could go on. A retired one cannot where a list
   of a block that a tab has received, or that a worker knows to have left, is with nobody any more (nor can a kept
   snapshot); nor where a client says so after a server and the owner have died.
6. A key change that was taken is in exactly one list, as it was pressed.
   Controls go to nobody who has not asked for them.
7. No two calls are made to an engine at once (``node.Alone``).
8. What a tab has received of a block is never made anew, whichever server shows it. Where a server and the owner have
   died, that holds for tabs that come back within 10 s of the first who does.
9. A move that is reported as committed was granted; one that is reported as refused or aborted never is.
10. Who comes back is sent every block that it lacks, if those are not too many and each is kept by the server or by a
    process that has reported to it. After its first frame nothing is left out (``tab``).
11. A snapshot that is kept is let go only where another copy than the owner's could go on, or where one that kept it
    has died within ``let_go_s`` (``fleet.relief``), however late the word comes: so a protected session is lost only by
    deaths that follow each other faster than it is protected again.
12. What is said of a session's protection is so (``said``).
13. A session that is closed is not said to be lost. Who plays one is turned away neither for the crowd that looks on
    nor for what others have to say, and who says more than anybody may is (``meddlers``).

Every tab of a session counts alike: who plays, who only watches, who wants the controls as well. What strangers say
that they have excuses nothing but what the second half of 5 says.
"""

from collections.abc import Callable, Container, Iterable, Mapping, Sequence

from tests.simulation.engine import FRAME_BYTES, World, begin
from tests.simulation.frames import read
from tests.simulation.played import FIRST_SEED, Played, seed_of
from tests.simulation.returning import Returning
from tests.simulation.trace import Trace, now
from worldmove.engine.base import KeyChange
from worldmove.fleet.config import FleetConfig
from worldmove.fleet.reports import MoveReport, Outcome
from worldmove.move.ledger_row import BY_RECLAIM, Row
from worldmove.serve.live import Live
from worldmove.serve.player import Left, Player
from worldmove.serve.resuming import Resuming
from worldmove.worker.messages import BlockDone

COMPLETE = ("live", "frozen", "superseded", "retired")
"""Phases of a copy that could go on. A shadow may be complete too; nobody but its driver knows."""
LET_GO_S = FleetConfig().let_go_s
"""An older snapshot is let go so long at most after the last sign of life of who keeps the newer one."""
LISTS_S = 10.0
"""How long after a server's death its lists may be with nobody but workers."""
MOST_LACKED = 8
"""Blocks that who comes back is sent at most (docs/play-wire.md)."""


class Watch:
    """Looks on. It changes nothing, and ends the run at the first invariant that does not hold."""

    def __init__(self, trace: Trace, *, decodes: bool = False) -> None:
        """``decodes``: whether the worlds have a decoder."""
        self._decodes = decodes
        self.played: dict[str, Played] = {}
        self.lists_with_power: Callable[[str], frozenset[int]] = lambda session: frozenset()
        """The blocks of a session whose lists some process with power holds."""
        self.next_block_of: Callable[[str, str], int] = lambda session, node: 0
        """The next block of a node's copy of a session."""
        self.on_grant: Callable[[Row, Row], None] = lambda old, new: None
        """A move has made a new owner."""
        self.kept_block_of: Callable[[str, str], int | None] = lambda session, node: None
        """The boundary of the snapshot that a node keeps of a session."""
        self.is_ending = False
        """The run is over, and sessions are closed."""
        self._kept: dict[tuple[str, str], None] = {}
        """(session, node) of every snapshot that a process with power keeps."""
        self.num_beats_answered = 0
        """How many answers to beats servers have heard."""
        self.is_strict = False
        """Workers die one after the other, and whoever loses a session by less than that is to blame."""
        self._doomed: dict[str, None] = {}
        """Sessions of which the last copy has died."""
        self._server_died_at = self._died_at = -LISTS_S
        self._keeper_died: dict[str, float] = {}
        """When a worker died last that kept a session's snapshot."""
        self._unprotected: dict[str, None] = {}
        """Sessions of which the server has said that it could not have one kept."""
        self._trace = trace
        self._copies: dict[tuple[str, str], tuple[str, int]] = {}
        """By (session, node): phase and epoch of every copy that a process with power holds."""
        self._suspected: dict[str, None] = {}
        self.kept: Callable[[str], Container[int]] = lambda session: ()
        """Blocks of a session that processes keep which have reported to the present server."""

    def begin(self, live: Live) -> None:
        """A session begins: look at whatever leaves its audience."""
        played = Played(name=live.name, live=live, world=begin(seed_of(live.name), decodes=self._decodes))
        self.played[live.name] = played
        self._look_at(played, live)

    def resume(self, live: Live) -> None:
        """Another server has a session now."""
        played = self.played.get(live.name)
        if played is None:
            return  # it was being opened, and nobody was told its name
        played.former.insert(0, played.live)
        played.live, played.is_resumed = live, True
        played.shown_here.clear()
        played.returning = Returning()
        self._look_at(played, live)
        if live.resuming is not None:
            self._look_at_the_door(played, live, live.resuming)

    def _look_at(self, played: Played, live: Live) -> None:
        show = live.audience.show

        def watched(frames: Sequence[bytes], left: Left, *, block: int | None = None) -> None:
            self._shown(played, frames)
            show(frames, left, block=block)

        live.audience.show = watched  # type: ignore[method-assign]
        missed = live.screen.missed

        def watched_missed(received: int | None) -> list[bytes]:
            messages = missed(received)
            self._came_back(played, received, messages)
            return messages

        live.screen.missed = watched_missed  # type: ignore[method-assign]

    def _look_at_the_door(self, played: Played, live: Live, resuming: Resuming) -> None:
        """Look at who comes back to a session of an earlier server, and when it goes on."""
        join, resume = resuming.join, live.screen.resume

        def watched_join(player: Player, received: int | None, let_in: Callable[[], None]) -> None:
            played.returning.came(received, now())
            join(player, received, let_in)

        def watched_resume(next_block: int, recalled: Iterable[BlockDone], *, shown_before: int) -> None:
            if not self._owner_plays(played):
                self._goes_on_without_owner(played)
            resume(next_block, recalled, shown_before=shown_before)

        resuming.join = watched_join  # type: ignore[method-assign]
        live.screen.resume = watched_resume  # type: ignore[method-assign]

    def _owner_plays(self, played: Played) -> bool:
        """Whether the owner lives, and has not only been granted a session that its retired copy is to go on with."""
        if played.row is None:
            return False
        phase, epoch = self._copies.get((played.name, f"{played.row.owner}#{played.row.incarnation}"), ("", 0))
        return bool(phase) and not (phase == "retired" and epoch < played.row.epoch)

    def _goes_on_without_owner(self, played: Played) -> None:
        """A server and the owner have died: what is excused now is in docs/guarantee.md."""
        played.returning.believe()
        if played.returning.waited_long(now()):
            played.disregard(after=played.returning.believed)
            self._trace.count("sessions that have waited for who is late")

    # the ledger

    def row_written(self, old: Row | None, new: Row) -> None:
        played = self.played[new.session]
        played.row = new
        owner = (new.owner, new.incarnation)
        if old is not None and new.epoch != old.epoch:
            if new.epoch != old.epoch + 1:
                self._fail(f"{new.session} went from epoch {old.epoch} to {new.epoch}")
            played.granted[new.granted_by] = new.epoch
            if new.granted_by == BY_RECLAIM:
                played.reclaimed[new.epoch] = None
            self._trace.count(f"granted by {_by(new.granted_by)}")
            if new.granted_by in played.not_moved:
                self._fail(f"{new.session}: attempt {new.granted_by} was reported as not moved, and is granted now")
            if new.granted_by[:1].isdigit():
                self.on_grant(old, new)
        if played.owners.setdefault(new.epoch, owner) != owner:
            self._fail(f"{new.session} has two owners in epoch {new.epoch}: {played.owners[new.epoch]} and {owner}")
        if new.lost and not (old and old.lost):
            self._check_lost(new)

    def said_to_be_lost(self, session: str) -> None:
        """Players are told that no copy of a session is left."""
        played = self.played.get(session)
        if played is not None and played.is_closing:
            self._fail(f"{session} is closed, and is said to be lost")

    def row_forgotten(self, session: str) -> None:
        if session in self.played:
            self.played[session].row = None

    def left(self, session: str, before: int) -> None:
        """A worker says which blocks have left."""
        played = self.played.get(session)
        if played is None:
            return  # it was being opened, and nobody was told its name
        if before > played.next_block:
            self._fail(f"{session}: a worker says that block {before - 1} has left, and it was never shown")
        played.left_before = max(played.left_before, before)

    def _check_lost(self, row: Row) -> None:
        left = {node: phase for (session, node), (phase, _) in self._copies.items() if session == row.session}
        complete = [f"{node} ({phase})" for node, phase in left.items() if self._can_go_on(row.session, node, phase)]
        keepers = [node for session, node in self._kept if session == row.session]
        complete += [f"{node} (kept)" for node in keepers if self.has_lists(row.session, self._kept_block(row, node))]
        self._trace.count("lost")
        if complete:
            self._fail(f"{row.session} is said to be lost, and copies are left: {', '.join(complete)}")
        if self.is_strict and row.session not in self._doomed:
            self._fail(f"{row.session} is lost, and at every death another had a copy of it")

    def about_to_die(self, node: str) -> None:
        """A worker is killed: note whose last copy it has."""
        self._died_at = now()
        for session, played in self.played.items():
            if played.row is None or played.row.lost:
                continue
            rest = [n for s, n in self._kept if s == session and self.has_lists(s, self._kept_block(played.row, n))]
            is_protected = played.protect_every != 0 and any(other != node for other in rest)
            if not is_protected or now() - self._server_died_at < LISTS_S:
                self._doomed[session] = None

    def left_behind(self, sessions: Iterable[str]) -> None:
        """A worker that was told to end has ended with these, which had nowhere to go."""
        self._doomed.update(dict.fromkeys(sessions))

    def server_dies(self) -> None:
        self._server_died_at = now()

    def _can_go_on(self, session: str, node: str, phase: str) -> bool:
        """Whether a copy could: a retired one replays what clients have, or are believed to, and needs its lists."""
        if phase != "retired":
            return phase in COMPLETE
        return self.has_lists(session, self.next_block_of(session, node))

    def _kept_block(self, row: Row, node: str) -> int:
        return self.kept_block_of(row.session, node) or 0

    def has_lists(self, session: str, first: int) -> bool:
        """Whether every list from a block on is with somebody, as far as players have received what was made of it."""
        played = self.played[session]
        sequencer, lists = played.live.sequencer, self.lists_with_power(session)
        newest = max(played.newest_received, played.returning.believed, played.left_before - 1)
        needed = range(first, newest + 1)
        return all(sequencer.first <= block < sequencer.reaches or block in lists for block in needed)

    # the workers

    def copy_changed(self, node: str, *, session: str, phase: str, epoch: int) -> None:
        """A copy in a process with power has entered a phase."""
        key = (session, node)
        if phase == "freeing":
            self._copies.pop(key, None)
            return
        before = self._copies.get(key)
        self._copies[key] = (phase, epoch)
        if phase != "live" or before == (phase, epoch) or session not in self.played:
            return
        others = [other for (name, other), (its, _) in self._copies.items() if (name, its) == (session, "live")]
        if len(others) > 1 and not self._suspected:
            self._fail(f"{session} is played by {' and by '.join(others)} at once")
        owner = self.played[session].owners.get(epoch)
        if owner is not None and f"{owner[0]}#{owner[1]}" != node:
            self._fail(f"{session} is played by {node} in epoch {epoch}, which is {owner[0]}#{owner[1]}'s")

    def kept_changed(self, node: str, *, session: str, here: bool) -> None:
        """A process with power keeps another snapshot of a session, or none any more."""
        if here:
            self._trace.count("snapshots kept")
            self._kept[session, node] = None
            played = self.played.get(session)
            if played is None or played.row is None or self._is_covered(session, played.row):
                self._unprotected.pop(session, None)  # not by one that comes late, to who plays it by now
            return
        was_kept = self._kept.pop((session, node), "no") is None
        played = self.played.get(session)
        if not was_kept or played is None or played.row is None or played.row.lost or self.is_ending:
            return
        if played.is_closing or played.protect_every == 0:
            return
        if self._is_covered(session, played.row) or session in self._unprotected:
            return
        if now() - self._keeper_died.get(session, -LET_GO_S) < LET_GO_S:
            self._trace.count("snapshots let go for a keeper that had just died")
        else:
            self._fail(f"{session} is protected no more: {node} has let its snapshot go, and nobody else has a copy")

    def protection_asked(self, session: str, every: int) -> None:
        """Somebody has had it protected, or protected no more. What is on its way then counts for nothing."""
        self.played[session].protect_every = every
        if not every and now() - self._died_at < LISTS_S:
            self._doomed[session] = None  # it may have been in need of what it has let go by that
        self._unprotected[session] = None

    def cannot_be_protected(self, session: str) -> None:
        """The server has said that it cannot have a snapshot kept now."""
        self._unprotected[session] = None

    def _is_covered(self, session: str, row: Row) -> bool:
        """Whether a process with power other than the owner's has what could go on; or the owner a retired copy.

        It was given the session for a copy that it had just let go, and its snapshot has become one: nothing is lost.
        """
        owner = f"{row.owner}#{row.incarnation}"
        copies = {node: phase for (name, node), (phase, _) in self._copies.items() if name == session}
        others = [node for node, phase in copies.items() if phase in COMPLETE]
        others += [node for name, node in self._kept if name == session]
        return any(node != owner for node in others) or copies.get(owner) == "retired"

    def suspected(self, worker: str) -> None:
        """The server takes a worker that may be alive for missing: it may play on beside the new owner, unshown."""
        self._suspected[worker] = None

    def node_died(self, node: str) -> None:
        """Its copies are gone with it."""
        for key in [key for key in self._copies if key[1] == node]:
            del self._copies[key]
        for key in [key for key in self._kept if key[1] == node]:
            del self._kept[key]
            self._keeper_died[key[0]] = now()

    def holders(self, session: str) -> list[str]:
        """Return the nodes with power that hold a copy."""
        return [node for name, node in self._copies if name == session]

    def stepped(self, node: str, world: World, changes: tuple[KeyChange, ...]) -> None:
        """An engine is about to step a block."""
        played = self.played.get(f"s-{world.seed - FIRST_SEED}")
        self._trace.count("blocks stepped")
        if played is None:
            return
        if played.list_of(world.block) != changes:
            self._fail(f"{node} steps block {world.block} of {played.name} with a list that was not closed for it")

    # what is shown

    def _shown(self, played: Played, frames: Sequence[bytes]) -> None:
        header, _ = read(frames[0])
        if header.kind:
            return  # a throw-away copy's
        row = played.row
        self._trace.add("shown", session=played.name, block=header.block, e=header.epoch)
        self._trace.count("blocks shown")
        if row is None or row.lost or row.epoch != header.epoch:
            there = "no owner" if row is None or row.lost else f"epoch {row.epoch}"
            here = f"{played.name}: block {header.block} is shown for epoch {header.epoch}"
            self._fail(f"{here}, and the row has {there}")
        elif not row.shown:
            self._fail(f"{played.name}: block {header.block} is shown before epoch {header.epoch} is recorded as shown")
        if played.is_resumed and header.block < played.next_block:
            played.go_back(header.block)
        played.is_resumed = False
        if header.block != played.next_block:
            self._fail(f"{played.name}: block {header.block} is shown where {played.next_block} was next")
            return
        played.next_block, played.epoch = header.block + 1, header.epoch
        closed = played.list_of(header.block) or ()
        played.lists.append(closed)
        expected = played.world.advance(closed)
        pixels = b"".join(read(frame)[1] for frame in frames)
        if played.is_with_a_player(header.block) and played.frames[header.block] != pixels:
            self._fail(f"{played.name}: block {header.block} was made anew, and a player has other frames of it")
        played.frames[header.block] = pixels
        played.shown_here[header.block] = None
        if pixels != expected:
            self._fail(f"{played.name}: the frames of block {header.block} are not those of a world that never moved")

    # players and moves

    def received(self, session: str, tab: str, block: int, index: int, pixels: bytes) -> None:
        """A frame of a block has come to a tab."""
        played = self.played[session]
        played.received.setdefault(tab, {})[block] = None
        if played.frames.get(block, b"")[index * FRAME_BYTES :][:FRAME_BYTES] != pixels:
            self._fail(f"{session}: frame {index} of block {block} is not the one that was shown")

    def reloaded(self, session: str, tab: str) -> None:
        """A tab has nothing any more of what it had."""
        self.played[session].received.pop(tab, None)

    def _came_back(self, played: Played, received: int | None, messages: Sequence[bytes]) -> None:
        """Somebody who has every block up to ``received`` is let in, and is sent these frames first."""
        if received is None:
            return
        lacked = range(received + 1, played.live.screen.next_block)
        sent = {read(message)[0].block for message in messages}
        kept = self.kept(played.name)
        if len(lacked) <= MOST_LACKED and all(block in played.shown_here or block in kept for block in lacked):
            for block in lacked:
                if block not in sent:
                    here = f"who comes back with block {received} lacks block {block}, which is kept"
                    self._fail(f"{played.name}: {here}")

    def pressed(self, session: str, number: int, key: str, *, down: bool) -> None:
        self.played[session].pressed.setdefault(number, []).append((key, down))

    def taken(self, session: str, changes: Sequence[tuple[int, str, bool]]) -> None:
        """A server says that it has taken these changes from whoever has the controls."""
        played = self.played[session]
        for number, key, down in changes:
            if played.taken.setdefault(number, (key, down)) != (key, down):
                self._fail(f"{session}: two changes of number {number} are said to be taken")

    def taken_over(self, session: str) -> None:
        """A tab is told that another has the controls."""
        if not self.played[session].has_rivals:
            self._fail(f"{session}: nobody else asked for the controls, and they were taken from the player")

    def turned_away(self, session: str, tab: str) -> None:
        """A tab's connection was closed since too many are there, or it has said too much."""
        if tab == "tab" and not self.played[session].has_rivals:
            self._fail(f"{session}: who plays was turned away for others, or for what they had to say")

    def check_actions(self, played: Played) -> None:
        """Every change that was taken is in one list, and was pressed as it stands there."""
        reaches = played.live.sequencer.reaches
        lists = played.lists + [played.list_of(block) or () for block in range(played.next_block, reaches)]
        newest, seen = 0, dict[int, tuple[str, bool]]()
        for change in (change for closed in lists for change in closed):
            pressed, it = played.pressed.get(change.number, ()), (change.key, change.down)
            if not pressed and not change.down and played.former:
                newest = max(newest, change.number)  # another server does not know what was down, and lets go of all
                continue
            if change.number > newest:
                newest, seen[change.number] = change.number, it
                if it not in pressed:
                    self._fail(f"{played.name}: change {change.number} was pressed as {pressed}, and is {change}")
            elif change.number < newest or change.down or seen.get(change.number) == it:
                self._fail(f"{played.name}: change {change.number} ({change.key}) stands in the lists twice")
        if not played.former:  # what a server had taken and in no list yet is gone with it
            self._check_none_left_out(played, newest, seen)
        self._trace.count("actions", len(seen))

    def _check_none_left_out(self, played: Played, newest: int, seen: Mapping[int, tuple[str, bool]]) -> None:
        if newest != len(seen) and not played.has_rivals:
            self._fail(f"{played.name}: {len(seen)} of the first {newest} changes are in a list")
        for number, it in played.taken.items():
            if number <= newest and seen.get(number) != it:
                self._fail(f"{played.name}: change {number} was taken as {it}, and is {seen.get(number)} in the lists")

    def reported(self, report: MoveReport) -> None:
        """A move has ended."""
        played = self.played[report.session]
        played.told[report.attempt] = None
        self._trace.count("moves")
        self._trace.count(f"moves {report.outcome.value}")
        if report.followed_bytes:
            self._trace.count(f"moves with what was followed {report.outcome.value}")
        made = played.granted.get(report.attempt)
        taken_back = made is not None and made + 1 in played.reclaimed and report.epoch > made
        committed = made is not None and not taken_back
        self._trace.add("report", session=report.session, attempt=report.attempt, outcome=report.outcome.value)
        if report.outcome is Outcome.COMMITTED and not committed:
            self._fail(f"{report.session}: {report.attempt} is reported as committed, and was not granted")
        if report.outcome in (Outcome.REFUSED, Outcome.ABORTED):
            played.not_moved.append(report.attempt)
            if committed:
                self._fail(f"{report.session}: {report.attempt} is reported as {report.outcome.value}, and was granted")

    def _fail(self, sentence: str) -> None:
        self._trace.fail(sentence)


def _by(granted_by: str) -> str:
    return "a move" if granted_by[:1].isdigit() else granted_by
