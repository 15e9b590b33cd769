"""The edge that runs a server: port, state, engine's facts, ledger, workers, controller, gateway, HTTP; and their end.

The port is bound first, so that a taken one is said in a second and not after the workers have started. What an
earlier server of the same folder has left is taken up: its workers, and every world in them.
SIGTERM and SIGINT end the server at any time: players are told, workers end, and the exit status is 0.
"""

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path

from worldmove.engine.base import EngineSpec
from worldmove.engine.facts import fields_of
from worldmove.errors import LedgerError, UserError
from worldmove.fleet.ledger import Durability, LedgerConfig, SqlLedger, open_ledger
from worldmove.fleet.local_door import doorstep
from worldmove.fleet.local_process import is_alive
from worldmove.fleet.notes import Notes, ServerNote
from worldmove.serve.house import House, at_work, controller_over, house_of
from worldmove.serve.lineage import next_life
from worldmove.serve.listen import answering, bound, url_of
from worldmove.serve.metrics import Metrics
from worldmove.serve.receipts import KEY_BYTES
from worldmove.serve.server_config import Hooks, ServerConfig
from worldmove.serve.signals import first_signal
from worldmove.serve.spool import Spool
from worldmove.serve.state_folder import LEDGER, SAVED, state_folder
from worldmove.worker.engines import build_engine
from worldmove.worker.speech import speech


async def run(config: ServerConfig, hooks: Hooks) -> None:
    """Run a server until SIGTERM or SIGINT. Raises UserError, WeightsError where it cannot start."""
    running = asyncio.create_task(_run(config, hooks))
    with first_signal(running.cancel), suppress(asyncio.CancelledError):
        await running


async def _run(config: ServerConfig, hooks: Hooks) -> None:
    async with inhabited(config, hooks.stage, num_lines_dropped=hooks.num_lines_dropped) as house:
        hooks.ready(house.url)
        await asyncio.Event().wait()


@asynccontextmanager
async def inhabited(
    config: ServerConfig, stage: Callable[[str], None], *, num_lines_dropped: Callable[[], int] = lambda: 0
) -> AsyncIterator[House]:
    """Serve while inside; gives the parts, for whoever measures them. Raises UserError, WeightsError."""
    with (
        bound(config.host, config.port) as listening,
        state_folder(config.state) as folder,
        _ledger_in(folder) as ledger,
        doorstep(folder) as step,  # an engine takes as long as it takes, and workers of an earlier server wait
    ):
        stage("reading the engine's weights")
        engine = await asyncio.to_thread(build_engine, config.worker.engine, config.worker.num_threads)
        server, num_alive = _begin_life(ledger, config, engine.spec)
        stage(_found(num_alive) or f"starting {config.num_workers} workers and warming their engines")
        metrics = Metrics()
        controller = controller_over(ledger, metrics, config, engine.spec, folder, step=step, wall_clock=time.time)
        spool, url = Spool(folder / SAVED), url_of(listening)
        house = house_of(
            config,
            engine,
            controller,
            metrics,
            spool=spool,
            url=url,
            server=server,
            num_lines_dropped=num_lines_dropped,
        )
        http = answering(house.app, listening, farewell=house.gateway.end, on_refused=metrics.refused)
        async with at_work(house), http:
            yield house


@contextmanager
def _ledger_in(folder: Path) -> Iterator[SqlLedger]:
    """Open the ledger of a state folder. Raises UserError, with one sentence, where that cannot be."""
    with _unusable():
        # NORMAL: a power cut takes every worker of this host too, so what it may lose is of no use after it.
        ledger = open_ledger(LedgerConfig(path=folder / LEDGER, durability=Durability.NORMAL))
    try:
        yield ledger
    finally:
        ledger.close()


@contextmanager
def _unusable() -> Iterator[None]:
    """Say of a ledger that fails at the beginning that the command is to be another one, or the disk."""
    try:
        yield
    except LedgerError as error:
        code = "no_space" if error.no_space else "ledger_unusable"
        raise UserError(str(error), code=code, status=503) from error


def _begin_life(ledger: SqlLedger, config: ServerConfig, spec: EngineSpec) -> tuple[ServerNote, int]:
    """Return which server this is, and how many workers of an earlier one live. Raises UserError."""
    notes = Notes(ledger)
    with _unusable():
        alive = [worker for worker in notes.workers() if worker.pid is not None and is_alive(worker.pid, worker.birth)]
        note = next_life(
            notes.server(),
            engine=config.worker.engine,
            fields=fields_of(spec),
            speech=speech(),
            now_ms=time.time_ns() // 1_000_000,
            num_alive=len(alive),
            fresh_key=secrets.token_bytes(KEY_BYTES),
        )
        notes.keep_server(note)
    return note, len(alive)


def _found(num_alive: int) -> str:
    return f"going on with {num_alive} workers of an earlier server" if num_alive else ""
