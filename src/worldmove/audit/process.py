"""The edge: a process in which engines are played. ``python -m worldmove.audit.process``, started by an audit.

Orders come as lines of JSON on standard input, answers go as lines to what was standard output; an engine that
prints writes to standard error. Each order is carried out in a fork, so this process itself never imports an
engine, and one pair of processes serves any number of audits.
"""

import faulthandler
import gc
import os
import signal
import sys
import traceback
from functools import partial
from pathlib import Path
from typing import BinaryIO

import msgspec

from worldmove.audit.findings import RESTORED, SOURCE, Done, Fault, Order
from worldmove.audit.forks import in_forks
from worldmove.audit.roles import play_from_the_beginning, play_from_the_boundaries
from worldmove.errors import WorldMoveError

ROLES = {SOURCE: play_from_the_beginning, RESTORED: play_from_the_boundaries}


def main() -> None:
    """Serve orders until standard input ends."""
    answers = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)
    sys.path.insert(0, "")
    signal.signal(signal.SIGALRM, signal.SIG_DFL)  # what ends a fork that hangs, even where C code does not return
    serve(sys.stdin.buffer, answers)


def serve(orders: BinaryIO, answers: BinaryIO) -> None:
    """Carry out one order after the other."""
    before = list(sys.modules)
    gc.freeze()  # else the collector of each fork walks all of torch, and so copies its pages: 0.1 s each
    for line in iter(orders.readline, b""):
        order = msgspec.json.decode(line, type=Order)
        (found,) = in_forks([partial(carry_out, order, before)], bool, at_once=1, limit_s=order.limit_s)
        answers.write(msgspec.json.encode(Done(fault=found if isinstance(found, Fault) else None)) + b"\n")


def carry_out(order: Order, before: list[str]) -> bool:
    """Play one role and write down what was found."""
    if order.debug:
        faulthandler.register(signal.SIGALRM, chain=True)  # says where it hung
    try:
        findings = ROLES[order.role](order, before)
    except WorldMoveError as error:
        if order.debug:
            traceback.print_exception(error)
        raise
    (Path(order.folder) / f"{order.role}.findings").write_bytes(msgspec.msgpack.encode(findings))
    return True


if __name__ == "__main__":
    main()
