"""The device programs, in Triton. The only file that imports it; ``kernels.load`` imports this file when it is needed.

Every program works through its own shares of the work, each a line of a table in device memory; addresses are plain
numbers, so that a tensor, an arena and another process's mapping are the same to it.
"""

from typing import Any

import triton
import triton.language as tl

FUNCTIONS: tuple[Any, ...] = (triton, tl)


@triton.jit
def _add_pairs(x, y, other_x, other_y):
    return x + other_x, y + other_y


@triton.jit
def _mixed(z):
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB
    return z ^ (z >> 31)


@triton.jit
def _sums(words, a, b, JOINT: tl.constexpr):
    """Both sums of each row of a tile."""
    turned = (words << 16) | (words >> 16)
    x = words.to(tl.uint64) * a[None, :]
    y = turned.to(tl.uint64) * b[None, :]
    if JOINT:
        return tl.reduce((x, y), 1, _add_pairs)
    return tl.sum(x, axis=1), tl.sum(y, axis=1)


@triton.jit
def _words_at(address):
    return tl.multiple_of(address.to(tl.pointer_type(tl.uint32)), 16)


@triton.jit
def row_sums(
    shares, bounds, table, sums, ROWS: tl.constexpr, STAGES: tl.constexpr, COPY: tl.constexpr, JOINT: tl.constexpr
):
    """Write x and y of every row of this program's shares; with COPY, write the words to the share's target as well.

    A share is [address, target, first row in ``sums``, number of words]; all but the last of a group are whole tiles.
    """
    columns = tl.arange(0, 1024)
    a = tl.load(table + columns)
    b = tl.load(table + 1024 + columns)
    rows = tl.arange(0, ROWS)
    offsets = rows[:, None] * 1024 + columns[None, :]
    begin = tl.load(bounds + tl.program_id(0))
    end = tl.load(bounds + tl.program_id(0) + 1)
    for share in range(begin, end):
        source = _words_at(tl.load(shares + 4 * share))
        target = _words_at(tl.load(shares + 4 * share + 1))
        first = tl.load(shares + 4 * share + 2)
        num_words = tl.load(shares + 4 * share + 3).to(tl.int32)
        num_tiles = num_words // (ROWS * 1024)
        for tile in tl.range(0, num_tiles, num_stages=STAGES):
            words = tl.load(source + tile * ROWS * 1024 + offsets)
            if COPY:
                tl.store(target + tile * ROWS * 1024 + offsets, words)
            x, y = _sums(words, a, b, JOINT)
            line = sums + 2 * (first + tile * ROWS + rows)
            tl.store(line, x)
            tl.store(line + 1, y)
        if num_tiles * ROWS * 1024 < num_words:
            places = num_tiles * ROWS * 1024 + offsets
            inside = places < tl.multiple_of(num_words, 4)
            words = tl.load(source + places, mask=inside, other=0)
            if COPY:
                tl.store(target + places, words, mask=inside)
            x, y = _sums(words, a, b, JOINT)
            line = sums + 2 * (first + num_tiles * ROWS + rows)
            some = (num_tiles * ROWS + rows) * 1024 < num_words
            tl.store(line, x, mask=some)
            tl.store(line + 1, y, mask=some)


@triton.jit
def group_digests(groups, table, sums, digests):
    """Write the digest of one group. ``groups`` is [first row in ``sums``, number of rows, number of bytes, row number]."""
    group = tl.program_id(0)
    first = tl.load(groups + 4 * group)
    num_rows = tl.load(groups + 4 * group + 1)
    num_bytes = tl.load(groups + 4 * group + 2).to(tl.uint64)
    number = tl.load(groups + 4 * group + 3)
    k0 = tl.load(table + 2048)
    k1 = tl.load(table + 2049)
    k2 = tl.load(table + 2050)
    rows = tl.arange(0, 256)
    total_x = tl.zeros((256,), dtype=tl.uint64)
    total_y = tl.zeros((256,), dtype=tl.uint64)
    for begin in range(0, num_rows, 256):
        some = begin + rows < num_rows
        line = sums + 2 * (first + begin + rows)
        x = tl.load(line, mask=some, other=0)
        y = tl.load(line + 1, mask=some, other=0)
        y = _mixed(y + (number + 1 + begin + rows).to(tl.uint64) * 0x9E3779B97F4A7C15 + k0)
        x = _mixed(x + y + k1)
        y = y + _mixed(x + k2)
        total_x += tl.where(some, x, 0)
        total_y += tl.where(some, y, 0)
    x = tl.sum(total_x, axis=0)
    y = tl.sum(total_y, axis=0)
    length = _mixed(num_bytes + k0)
    tl.store(digests + 2 * group, _mixed(x + length))
    tl.store(digests + 2 * group + 1, _mixed(y + length))


@triton.jit
def _copy_words(source, target, num_words, BLOCK: tl.constexpr, STAGES: tl.constexpr):
    places = tl.arange(0, BLOCK)
    num_tiles = num_words // BLOCK
    for tile in tl.range(0, num_tiles, num_stages=STAGES):
        tl.store(target + tile * BLOCK + places, tl.load(source + tile * BLOCK + places))
    rest = num_tiles * BLOCK + places
    if num_tiles * BLOCK < num_words:
        inside = rest < num_words
        tl.store(target + rest, tl.load(source + rest, mask=inside), mask=inside)


@triton.jit
def copy_pieces(shares, bounds, BLOCK: tl.constexpr, STAGES: tl.constexpr):
    """Copy this program's shares: [source, target, number of elements, kind]; kinds as in ``copies``."""
    begin = tl.load(bounds + tl.program_id(0))
    end = tl.load(bounds + tl.program_id(0) + 1)
    for share in range(begin, end):
        source = tl.load(shares + 4 * share)
        target = tl.load(shares + 4 * share + 1)
        count = tl.load(shares + 4 * share + 2)
        kind = tl.load(shares + 4 * share + 3)
        if kind == 16:
            _copy_words(_words_at(source), _words_at(target), tl.multiple_of(count, 4), BLOCK, STAGES)
        elif kind == 4:
            words = tl.pointer_type(tl.uint32)
            _copy_words(source.to(words), target.to(words), count, BLOCK, 1)
        else:
            single = tl.pointer_type(tl.uint8)
            _copy_words(source.to(single), target.to(single), count, BLOCK, 1)
