"""Processes that begin in a tenth of a second: what they import takes seconds, and is imported once, to fork from."""

from multiprocessing import get_context

FORKS = get_context("forkserver")
FORKS.set_forkserver_preload(
    [
        "worldmove.serve.server",
        "tests.forked_workers",
        "worldmove.cli.benches.served",
        "worldmove.cli.benches.direct",
        "tests.transport.exporter",
        "tests.worker.device_engine",
    ]
)
