"""Two workers on two GPUs: whether they compute alike; and that a move between two which do not is refused.

    python -m bench.pair_alike --engine reference:matrix-game-2 --gpus 0,1

The difference is a real one: the second worker's process has another of torch's settings than the first's.
"""

import argparse
import asyncio
import os
from typing import Any

import torch

from bench.record import quiet, require_worker_path
from worldmove.cli.benches.served import served
from worldmove.cli.client import Client
from worldmove.cli.json_text import json_text
from worldmove.cli.no_answer import ServerError
from worldmove.engine.base import Engine
from worldmove.fleet.gpus import VARIABLE, gpus_named
from worldmove.serve.server_config import ServerConfig
from worldmove.worker.config import WorkerConfig
from worldmove.worker.engines import build_engine

INNER, SECOND = "WORLDMOVE_BENCH_ENGINE", "WORLDMOVE_BENCH_SECOND"
ANOTHER = "python:bench.pair_alike:with_another_setting"


def main() -> None:
    """Print what came out, as one line of JSON."""
    options = argparse.ArgumentParser(prog="python -m bench.pair_alike", description=__doc__)
    options.add_argument("--engine", default="reference:matrix-game-2")
    options.add_argument("--other-engine", default="", help="the one whose second worker is set otherwise; else it too")
    options.add_argument("--gpus", default="0,1", help="as `worldmove serve --gpus`")
    given = options.parse_args()
    quiet()
    require_worker_path()
    found = asyncio.run(measure(given.engine, given.other_engine or given.engine, gpus_named(given.gpus)))
    print(json_text(found))


async def measure(engine: str, other_engine: str, gpus: tuple[str, ...]) -> dict[str, Any]:
    """Compare two workers; then have one set otherwise, and ask for a move to it."""
    async with served(config_of(engine, gpus), lambda _: None) as server:
        alike = compared(await asyncio.to_thread(Client(server.address.url).get, "environment"))
    os.environ |= {INNER: other_engine, SECOND: gpus[1]}
    async with served(config_of(ANOTHER, gpus), lambda _: None) as server:
        refused = await asyncio.to_thread(refusal, Client(server.address.url))
    return {"engine": engine, "other_engine": other_engine, "gpus": gpus, "alike": alike, "refused": refused}


def compared(answer: dict[str, Any]) -> dict[str, Any]:
    """Say in what two environments differ, and what each worker's canary was."""
    workers = answer["workers"]
    canaries = {name: {field: env[field] for field in env if "canary" in field} for name, env in workers.items()}
    each = list(canaries.values())
    return {
        "num_fields": len(next(iter(workers.values()))),
        "differences": answer["differences"],
        "canaries": canaries,
        "canaries_equal": len(each) > 1 and all(each) and all(one == each[0] for one in each),
    }


def refusal(client: Client) -> dict[str, Any]:
    """Ask for a move to the worker that is set otherwise; return what is answered, and the fields that differ."""
    differences = client.get("environment")["differences"]
    session = client.post("sessions", body={"seed": 1, "worker": "worker-1"})["session"]
    try:
        report = client.post("sessions", session, "move", body={})
    except ServerError as error:
        report = dict(error.body.get("move", {"outcome": "error", "reason": error.code, "detail": str(error)}))
    owner = next(each for each in client.get("sessions")["sessions"] if each["session"] == session)["worker"]
    fields = [difference["field"] for difference in differences]
    return {
        "fields": fields,
        **{name: report[name] for name in ("outcome", "reason", "detail")},
        "names_the_fields": bool(fields) and all(field in report["detail"] for field in fields),
        "still_at": owner,
    }


def config_of(engine: str, gpus: tuple[str, ...]) -> ServerConfig:
    """Return the configuration of a server with a worker for each GPU."""
    worker = WorkerConfig(engine=engine, num_slots=2, log_level="warning")
    return ServerConfig(port=0, num_workers=len(gpus), gpus=gpus, worker=worker, keep_s=600.0)


def with_another_setting(num_threads: int) -> Engine[Any]:
    """Build an engine; in the second worker's process, torch's choice of algorithms is set the other way round."""
    engine = build_engine(os.environ[INNER], num_threads)
    if os.environ.get(VARIABLE, "").split(",")[0] == os.environ[SECOND]:
        torch.use_deterministic_algorithms(not torch.are_deterministic_algorithms_enabled(), warn_only=True)
    return engine


if __name__ == "__main__":
    main()
