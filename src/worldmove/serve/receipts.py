"""What proves that a client has a block: eight bytes that came with its frames, and that nobody can make up. Pure.

After the deaths of a server and of a world's owner, what a client has may be all that is left to go by. A client's bare
word would let any stranger decide where the world of another goes on; so a word without its proof is none.
"""

import hashlib
import hmac
import re
from collections.abc import Sequence

RECEIPT_BYTES = 8
KEY_BYTES = 32
NO_RECEIPT = bytes(RECEIPT_BYTES)
"""Of a frame that is no part of a session."""
CLAIM = r"^([0-9]{1,16})-([0-9a-f]{16})$"
"""The number of a block, and its receipt in hexadecimal: what a client gives back."""

_CLAIM = re.compile(CLAIM)


class Receipts:
    """Gives receipts and knows them again: its own, and those of every server that had the same key."""

    def __init__(self, key: bytes) -> None:
        """``key``: secret, KEY_BYTES of it. Raises ValueError for another length."""
        if len(key) != KEY_BYTES:
            raise ValueError(f"a key of {len(key)} bytes, not {KEY_BYTES}")
        block = key.ljust(hashlib.sha256().block_size, b"\0")
        self._inner, self._outer = (hashlib.sha256(bytes(byte ^ pad for byte in block)) for pad in (0x36, 0x5C))

    def of(self, session: str, block: int, timeline: int = 0) -> bytes:
        """Return what a client of ``session`` gets with each frame of ``block``.

        ``timeline``: how often deaths have made the world go on where a client may have had later blocks.
        """
        # HMAC (RFC 2104), with the key taken in once: to do that anew takes longer than all the rest.
        inner, outer = self._inner.copy(), self._outer.copy()
        inner.update((f"{session}\0{block}" + (f"\0{timeline}" if timeline else "")).encode())
        outer.update(inner.digest())
        return outer.digest()[:RECEIPT_BYTES]

    def proven(self, session: str, claim: str | None, forks: Sequence[int] = ()) -> int | None:
        """Return the block that a client says it has and has the receipt of; None for any other word.

        ``forks``: the first block of each timeline after the first. A receipt of an earlier one is none from there on.
        """
        found = None if claim is None else _CLAIM.fullmatch(claim)
        if found is None:
            return None
        block = int(found[1])
        for timeline in range(len(forks), -1, -1):
            if hmac.compare_digest(self.of(session, block, timeline).hex(), found[2]):
                return block if all(block < fork for fork in forks[timeline:]) else None
        return None


def claim_of(block: int, receipt: bytes) -> str:
    """Return what a client says that has a block."""
    return f"{block}-{receipt.hex()}"
