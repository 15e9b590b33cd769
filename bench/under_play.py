"""One world under play is moved in many ways over paths of many speeds: what was expected, what came, what was late.

    python -m bench.under_play --ways any@10gbit*20,replay@1gbit*3 --residents 1

Each way is a strategy (``any``: admission chooses), a link and a count. At the end the world's record is computed anew,
on an engine that was never moved; with ``--record`` it is kept instead, for ``worldmove verify``.
"""

import argparse
import asyncio
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.course import Course, CourseConfig, course
from bench.record import Recorder, parser, quiet, require_worker_path
from bench.under_play_found import move_row, samples_of, summary_of
from bench.ways import ways_of, woven
from worldmove.cli.benches.live import replayed
from worldmove.cli.output import Verbosity
from worldmove.cli.start import Start, config_of
from worldmove.fleet.gpus import gpus_named
from worldmove.move.patience import PATIENCE_S
from worldmove.serve.server_config import ServerConfig

WAYS = "any@100mbit*10,any@10mbit*10,boundary-copy*5,pre-copy*5,streaming*5,replay*5"
SLOTS = 3
"""Beside the residents: the moved world's, its shadow's and its retired copy's, or its snapshot's."""


def main() -> None:
    """Measure and write."""
    options = options_of(None)
    quiet()
    require_worker_path()
    recorder = Recorder("under_play", options)
    with TemporaryDirectory(prefix="worldmove-bench-") as folder:
        record = Path(options.record or f"{folder}/under_play.record")
        found = asyncio.run(measure(options, record, partial(keep, recorder, Path(options.out))))
        replay = None if options.record else replayed(record, options.engine)
    recorder.write({**summary_of(found), "replay": replay}, samples_of(found))


def options_of(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    options = parser("under_play", __doc__)
    options.add_argument("--ways", default=WAYS, help="how to move, and how often each: STRATEGY@LINK*COUNT, ...")
    options.add_argument("--edges", default="", help="strategies to be moved by just above and below what admits them")
    options.add_argument("--residents", type=int, default=0, help="worlds that play at the second worker")
    options.add_argument("--apart", action="store_true", help="open worlds so that their lists lie evenly in a period")
    options.add_argument("--patience-s", type=float, default=PATIENCE_S, help="as of `worldmove serve`")
    options.add_argument("--gpus", default="", help="the two workers' GPUs, as `worldmove serve --gpus`")
    options.add_argument("--control-blocks", type=int, default=24, help="blocks without any move")
    options.add_argument("--check-blocks", type=int, default=0, help="blocks that the copy left behind steps")
    options.add_argument("--within-s", type=float, default=600.0, help="ask for no move that would end later")
    options.add_argument("--record", default="", help="keep the world's record here, and compute nothing anew")
    return options.parse_args(arguments)


def keep(recorder: Recorder, out: Path, found: Course) -> None:
    """Write the moves that there are by now: whoever ends a run early has that much."""
    recorder.keep(
        {"moves": len(found.made), "is_whole": False},
        {"moves": [move_row(made) for made in found.made], "rates": found.rates},
        out,
    )


async def measure(
    options: argparse.Namespace, record: Path, note: Callable[[Course], None] = lambda found: None
) -> Course:
    """Run it."""
    config = CourseConfig(
        ways=woven(ways_of(options.ways)),
        edges=[name for name in options.edges.split(",") if name],
        control_blocks=options.control_blocks,
        residents=options.residents,
        apart=options.apart,
        within_s=options.within_s,
    )

    def tell(text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    return await course(config, server_of(options), record, tell, note)


def server_of(options: argparse.Namespace) -> ServerConfig:
    """Return the server's configuration."""
    told = Start(
        host="127.0.0.1",
        port=0,
        workers=2,
        gpus=gpus_named(options.gpus),
        engine=options.engine,
        threads=options.threads,
        slots=SLOTS + options.residents,
        keep_s=3600.0,
        check_blocks=options.check_blocks,
        patience_s=options.patience_s,
    )
    return config_of(told, Verbosity())


if __name__ == "__main__":
    main()
