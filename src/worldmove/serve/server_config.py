"""What a server is told, and whom it tells how far it is."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from worldmove.move.patience import PATIENCE_S
from worldmove.worker.config import WorkerConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerConfig:
    """What a server is told. ``port`` 0: any free one."""

    host: str = "127.0.0.1"
    port: int = 8787
    names: tuple[str, ...] = ()
    """Further names under which a browser may call it (``Host``)."""
    state: Path | None = None
    """The folder of the ledger and the workers' socket, for the next server too. None: one that ends with this."""
    num_workers: int = 2
    gpus: tuple[str, ...] = ()
    """The workers' GPUs, in turn, as CUDA_VISIBLE_DEVICES names them. Empty: each sees what this process does."""
    worker: WorkerConfig
    transport: str = "shm"
    """The path of every move: see ``fleet.config``."""
    keep_s: float = 600.0
    rest_after_s: float = 4.0
    protect_every: int = 0
    """After how many blocks another worker keeps a snapshot of each new session; 0: never."""
    patience_s: float = PATIENCE_S
    """How long what comes before a move's pause may take."""
    account_every: int = 16
    """After how many blocks a session's owner accounts for its state, for its record; 0: never."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hooks:
    """Whom the server tells how far it is."""

    stage: Callable[[str], None]
    ready: Callable[[str], None]
    """Called with the page's address once it answers."""
    num_lines_dropped: Callable[[], int] = lambda: 0
    """How many lines of its log were dropped so far."""
