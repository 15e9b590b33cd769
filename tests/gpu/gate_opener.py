"""A destination in a process of its own: pulls another's slot again and again, and opens its gate behind that.

Arguments: the device, the slot's handle, the descriptor of the gate, its number, how many pulls, and ``stuck`` where
the last of them is never to come about: its device waits before that for a word which nobody says. It begins at the
first line of its standard input, says ``begun`` when all is asked of the device, and lives until the second line.
"""

import sys
from typing import Any

from tests.gpu.other_process import SIZE, say
from worldmove.state import cuda_driver
from worldmove.state.device_arena import DeviceArena
from worldmove.state.gate import OwnGate, opened_gate
from worldmove.state.kits import kit_of


def main() -> None:
    device, handle, descriptor, number, num_pulls, *stuck = sys.argv[1:]
    kit: Any = kit_of(device)
    arena, gate = DeviceArena(SIZE, "destination", kit), opened_gate(int(descriptor), kit)
    mapped = kit.open(bytes.fromhex(handle), SIZE)
    say("ready")
    sys.stdin.readline()
    piece = (mapped.address, arena.address, SIZE)
    # All but the last past the kit, which looks at each copy under way: in the pulls' order all the same.
    cuda_driver.copy_all(kit.device.index, [piece] * (int(num_pulls) - 1), kit._pulls.cuda_stream)
    if stuck:
        never = OwnGate(kit).for_number(int(number))
        cuda_driver.wait_for_word(kit.device.index, *never.word, kit._pulls.cuda_stream)
    kit.start_pull([piece])
    last = gate.open_after_pulls(int(number))
    say("begun")
    sys.stdin.readline()
    last.wait()


if __name__ == "__main__":
    main()
