"""Where a block's time on a device goes, kernel by kernel: for ``bench.gpu_engine``."""

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch.nn.functional import scaled_dot_product_attention
from torch.profiler import ProfilerActivity, profile

from worldmove.engine.matrix.engine import MatrixEngine
from worldmove.engine.matrix.session import Session

Sample = dict[str, Any]


def kernels(engine: MatrixEngine, session: Session) -> Sample:
    """Where one block's time on the device goes: the longest kernels, microseconds and launches."""
    if not torch.cuda.is_available():
        return {}
    with profile(activities=[ProfilerActivity.CUDA]) as profiled:
        engine.step(session, ())
    rows = sorted(profiled.key_averages(), key=lambda row: -row.self_device_time_total)
    return {
        "total_us": round(sum(row.self_device_time_total for row in rows)),
        "longest": [[row.key[:90], round(row.self_device_time_total), row.count] for row in rows[:30]],
    }


def attention() -> Sample:
    """One layer's self-attention, in microseconds, by the kernel that is in force."""
    if not torch.cuda.is_available():
        return {}
    q = torch.randn(1, 2640, 12, 128, device="cuda", dtype=torch.bfloat16).transpose(1, 2)
    k = torch.randn(1, 5280, 12, 128, device="cuda", dtype=torch.bfloat16).transpose(1, 2)
    return {"us": microseconds(partial(scaled_dot_product_attention, q, k, k))}


def microseconds(work: Callable[[], Any], times: int = 50) -> float:
    """Of one of many calls in a row."""
    for _ in range(3):
        work()
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for _ in range(times):
        work()
    torch.cuda.synchronize()
    return round(1e6 * (time.perf_counter() - begin) / times, 1)
