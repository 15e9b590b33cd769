"""What another process makes of a manifest and a descriptor that only it may read."""

import subprocess
import sys

import numpy as np
import torch

from tests.own_path import ROOT, own_path
from tests.state.trees import Cache
from worldmove.state import Arena, Layout, Xxh3Digester, adopt, capture, state_digest

CHILD = """
import mmap, sys
import numpy as np
import torch
from tests.state.trees import TYPES
from worldmove.state import Arena, Manifest, Xxh3Digester, capture, extents, materialise, state_digest

torch.set_num_threads(1)
fd, size, placement = int(sys.argv[1]), int(sys.argv[2]), tuple(int(text) for text in sys.argv[3].split(","))
manifest = Manifest.from_bytes(sys.stdin.buffer.read())
arena = Arena(size, "destination")
arena.poison()
with mmap.mmap(fd, size, prot=mmap.PROT_READ) as source:
    for extent in extents(manifest, placement):
        arena.buffer[extent.offset : extent.end] = source[extent.offset : extent.end]
state = materialise(manifest, placement, arena, TYPES)
print(state_digest(capture(state, TYPES), Xxh3Digester()))
print(torch.rand(2, generator=state["torch"]).tolist(), state["numpy"].integers(0, 1 << 40))
"""


def test_a_fresh_process_goes_on_from_the_same_state() -> None:
    base = torch.arange(5000, dtype=torch.float32)
    tree = {
        "caches": [Cache(k=base[100:400], v=base[300:].view(-1, 2)), Cache(k=base[::3], v=None)],
        "torch": torch.Generator().manual_seed(9),
        "numpy": np.random.default_rng(9),
    }
    torch.rand(5, generator=tree["torch"])  # type: ignore[call-overload]
    state = capture(tree, {"Cache": Cache})
    arena = Arena(Layout.of(state.manifest).arena_bytes, "source")
    placement = adopt(state, arena)
    arguments = [str(arena.fd), str(arena.size), ",".join(str(at) for at in placement)]
    answer = subprocess.run(
        [sys.executable, "-c", CHILD, *arguments],
        input=state.manifest.to_bytes(),
        pass_fds=[arena.fd],
        capture_output=True,
        check=True,
        cwd=ROOT,
        env={"PYTHONPATH": own_path(), "OMP_NUM_THREADS": "1"},
    ).stdout.decode()
    digest, drawn = answer.splitlines()
    assert digest == str(state_digest(state, Xxh3Digester()))
    expected = torch.rand(2, generator=tree["torch"]).tolist()  # type: ignore[call-overload]
    assert drawn == f"{expected} {tree['numpy'].integers(0, 1 << 40)}"  # type: ignore[attr-defined]
