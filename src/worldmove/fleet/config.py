"""The controller's configuration."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from worldmove.errors import UserError
from worldmove.move.patience import PATIENCE_S, STILL_S


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetConfig:
    """How many workers there are, and how long the controller waits for what. Times in seconds."""

    workers: tuple[str, ...] = ("worker-1", "worker-2")
    engine: Mapping[str, str] = field(default_factory=dict)
    """What the server's engine is, as fields of an environment: no world is opened at a worker that has another."""
    transport: str = "shm"
    """The path of every move: ``shm`` between workers of one host, ``tcp`` between any that reach each other."""
    quarantine_s: float = 600.0
    """How long a path that brought other bytes than were sent is not taken, if there is another."""
    tries: int = 1
    damaged_tries: int = 3
    """Tries of a move whose path damages what it carries: each is to fail, and the world to go on."""
    copy_s: float = 5.0
    """How long each try of a move waits for its destination to finish with an older copy of the session."""
    prepare_s: float = 5.0
    """How long a move's source may get nothing done until it has said what it would move; ``patience_s`` in all."""
    reserve_s: float = 10.0
    """The same of its destination, until it has made room."""
    move_s: float = 20.0
    """From the start of a try until it is cancelled."""
    doubt_s: float = 10.0
    """From that cancel until the report says *in doubt*. The two ends go on asking the ledger."""
    told_s: float = 1.0
    """How long an aborted try waits for the words of an end that has said nothing yet."""
    owner_s: float = 5.0
    """How long a move whose session has lost its owner waits for what becomes of the session, before it is told."""
    lease_s: float = 5.0
    """Silence after which a shadow that has not asked for the commit frees itself."""
    patience_s: float = PATIENCE_S
    """How long what comes before the boundary may take: a snapshot's way, and catching up with the play since."""
    still_s: float = STILL_S
    """How long a pause may take, whoever waits: a source gives up then. What is expected to take longer is refused."""
    begin_every_s: float = 1.0
    """Between two words to both ends that it goes on. Without one for ``lease_s`` they give up."""
    worker_lease_s: float = 3.0
    """Silence after which a worker is suspected. A copy elsewhere may then take its sessions over; none is lost."""
    beat_s: float = 0.5
    """Between two beats that a worker is to answer."""
    open_s: float = 30.0
    """How long a worker may get nothing done (``fleet.getting_on``) while a session is opened there."""
    close_s: float = 5.0
    save_s: float = 60.0
    """The same while it is to say what a session's state is, or to write it to a file."""
    protect_every: int = 0
    """After how many blocks a snapshot of each new session is kept by another worker; 0: never."""
    snapshot_s: float = 10.0
    """The same while a worker copies a session aside, and while another pulls and proves it."""
    protect_again_s: float = 1.0
    """Between two tries to have a snapshot kept, where one did not come about."""
    let_go_s: float = 1.0
    """An older snapshot is let go only while who keeps the newer one was alive so long ago at most: two beats.

    Longer where beats are longer on their way (``fleet.relief``).
    """
    leave_s: float = 20.0
    """How long a worker that was told to end is kept while none of its sessions gets away."""
    return_s: float = 120.0
    """The same while another starts, or ends to be started anew: there may be room then (``fleet.succession``)."""
    poll_s: float = 2.0
    """How long a poll waits for one worker's answer."""
    recover_every_s: float = 0.25
    """Between two looks at a session whose owner is gone."""
    restart: bool = True
    """Start a worker that has died again, under its next incarnation."""
    restart_after_s: float = 0.5
    """For the first time; after each further try that fails twice as long, and ``restart_within_s`` at most."""
    restart_within_s: float = 30.0
    stop_s: float = 5.0
    enforce_horizon: bool = True
    """Refuse a move whose expected pause is longer than the time until the next block is due.

    Off, the verdict is logged and the move is done all the same: for whoever would rather be late than stay.
    """
    history: int = 512
    """Reports of moves that are kept."""

    def __post_init__(self) -> None:
        """Raise UserError for times by which workers were called silent, or nothing was let go, whatever they do."""
        for name in ("let_go_s", "worker_lease_s"):
            if getattr(self, name) < 2 * self.beat_s:
                why = f"{name} is {getattr(self, name):g} s, and takes two beats at least: {2 * self.beat_s:g} s."
                raise UserError(why, code="usage", status=422)
