"""A source in a process of its own: holds a slot on a GPU, says its handle, and writes or dies when told.

Argument: the device. Standard input: ``write OFFSET VALUE`` or ``busy``; standard output: one line each.
"""

import sys

import torch

from worldmove.state.device_arena import DeviceArena
from worldmove.state.kits import kit_of

SIZE = 256 << 20
WORDS = SIZE // 8


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main() -> None:
    device = sys.argv[1]
    kit = kit_of(device)
    assert kit is not None
    arena = DeviceArena(SIZE, "source", kit)
    words = torch.empty(0, dtype=torch.uint8, device=device).set_(
        kit.storage(arena.part(0, SIZE), None), 0, (SIZE,), (1,)
    )
    words.view(torch.int64).copy_(torch.arange(WORDS, device=device) * 3 + 1)
    torch.cuda.synchronize(device)
    say(arena.handle.hex())
    for line in sys.stdin:
        order, *numbers = line.split()
        if order == "write":
            words[int(numbers[0])] = int(numbers[1])
            torch.cuda.synchronize(device)
        say("done")


if __name__ == "__main__":
    main()
