"""A Triton program that reads every word and does next to nothing with it: how fast reading can be."""

import torch
import triton
import triton.language as tl


@triton.jit  # type: ignore[untyped-decorator]
def _fold(source, sums, num_tiles, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]  # noqa: N803
    program = tl.program_id(0)
    places = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), dtype=tl.uint32)
    for tile in tl.range(program, num_tiles, tl.num_programs(0)):
        words = tl.load(source + tile.to(tl.int64) * BLOCK + places).to(tl.uint32, bitcast=True)
        total = total * 31 + words * 2654435761
    tl.store(sums + program, tl.sum(total, axis=0))


def fold(words: torch.Tensor, sums: torch.Tensor, block: int) -> None:
    """Fold 32-bit words with two multiplications each; a program for each of ``sums``."""
    _fold[(sums.numel(),)](words, sums, words.numel() // block, BLOCK=block, num_warps=8)
