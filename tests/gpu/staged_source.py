"""A source in a process of its own: lends a slot on the GPU through pinned host memory until its input ends.

``staged_source.py SOCKET`` says its ticket in hex, one line.
"""

import asyncio
import os
import sys

import torch

from tests.gpu.other_process import SIZE, WORDS, say
from tests.gpu.staged_path import path_at
from worldmove.state.device_arena import DeviceArena
from worldmove.state.kits import kit_of


async def main() -> None:
    kit = kit_of("cuda")
    assert kit is not None
    arena = DeviceArena(SIZE, "source", kit)
    words = torch.empty(0, dtype=torch.uint8, device="cuda").set_(
        kit.storage(arena.part(0, SIZE), None), 0, (SIZE,), (1,)
    )
    words.view(torch.int64).copy_(torch.arange(WORDS, device="cuda") * 3 + 1)
    torch.cuda.synchronize()
    path = path_at(sys.argv[1], kit)
    await path.start()
    say((await path.export_device(arena)).hex())
    await asyncio.to_thread(sys.stdin.read)
    await path.close()
    os._exit(0)


if __name__ == "__main__":
    asyncio.run(main())
