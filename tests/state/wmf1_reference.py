"""WMF1 as its definition reads, in Python's own integers: slow, and nothing to get wrong."""

from worldmove.state.wmf1 import Table

_ALL = (1 << 64) - 1


def reference_digest(table: Table, data: bytes, first_row: int) -> bytes:
    """The 16 bytes of ``data`` whose first row has the number ``first_row``."""
    k0, k1, k2 = (int(k) for k in table.k)
    padded = data + bytes(-len(data) % 4096)
    total_x = total_y = 0
    for row in range(len(padded) // 4096):
        x, y = _row_sums(table, padded[4096 * row : 4096 * (row + 1)])
        y = _mix(y + (first_row + row + 1) * 0x9E3779B97F4A7C15 + k0)
        x = _mix(x + y + k1)
        total_x += x
        total_y += y + _mix(x + k2)
    length = _mix(len(data) + k0)
    return b"".join(_mix(total + length).to_bytes(8, "little") for total in (total_x, total_y))


def _row_sums(table: Table, row: bytes) -> tuple[int, int]:
    words = [int.from_bytes(row[at : at + 4], "little") for at in range(0, 4096, 4)]
    turned = [(word << 16 | word >> 16) & 0xFFFFFFFF for word in words]
    x = sum(int(a) * word for a, word in zip(table.a, words, strict=True))
    y = sum(int(b) * word for b, word in zip(table.b, turned, strict=True))
    return x & _ALL, y & _ALL


def _mix(z: int) -> int:
    z &= _ALL
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & _ALL
    z = (z ^ z >> 27) * 0x94D049BB133111EB & _ALL
    return z ^ z >> 31
