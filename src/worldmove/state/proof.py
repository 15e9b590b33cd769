"""The move proof: what the source says of its frozen state, and the destination of its installed one."""

from dataclasses import dataclass

from worldmove.state.capture import Capture
from worldmove.state.digest import DIGEST_BYTES, Digester, Pass, split
from worldmove.state.groups import group_paths, groups
from worldmove.state.manifest import Manifest
from worldmove.state.progress import GetsOn, unheard


@dataclass(frozen=True, slots=True, kw_only=True)
class Mismatch:
    """One thing that two proofs say differently. ``group`` and ``paths`` where it is bytes of the state."""

    what: str
    here: str
    there: str
    group: int | None = None
    paths: tuple[str, ...] = ()

    def __str__(self) -> str:
        where = f" ({', '.join(self.paths)})" if self.paths else ""
        return f"{self.what}{where} is {self.here} here and {self.there} there"


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveProof:
    """One holder's account of one attempt's state. ``boundary`` is the index of the next block."""

    attempt: str
    epoch: int
    boundary: int
    num_bytes: int
    manifest_digest: bytes
    groups: bytes
    """The digest of every group, one after the other."""

    @property
    def num_groups(self) -> int:
        """How many digests there are; one that is cut off counts."""
        return -(-len(self.groups) // DIGEST_BYTES)

    def compare(self, other: "MoveProof", manifest: Manifest) -> tuple[Mismatch, ...]:
        """Compare everything, all groups included, and return every difference. ``manifest`` is that of ``self``."""
        fields = ("attempt", "epoch", "boundary", "num_bytes", "manifest_digest")
        found = [_mismatch(name, getattr(self, name), getattr(other, name)) for name in fields]
        found.append(_mismatch("number of groups", self.num_groups, other.num_groups))
        found += _group_mismatches(self, other, manifest)
        return tuple(mismatch for mismatch in found if mismatch is not None)


def prove(
    capture: Capture,
    digester: Digester,
    *,
    attempt: str,
    epoch: int,
    boundary: int,
    nonce: bytes,
    layout_digest: bytes,
    begun: Pass | None = None,
    gets_on: GetsOn = unheard,
) -> MoveProof:
    """Read every used byte of the state and return the proof under the attempt's nonce.

    ``begun``: the pass over this very memory under this nonce, where it has begun already. ``gets_on`` hears of each
    piece that was digested.
    """
    reading = begun or Pass(capture, digester, nonce, layout_digest)
    return MoveProof(
        attempt=attempt,
        epoch=epoch,
        boundary=boundary,
        num_bytes=capture.num_bytes,
        manifest_digest=capture.manifest.digest,
        groups=reading.joined(gets_on),
    )


def _mismatch(what: str, here: object, there: object) -> Mismatch | None:
    return (
        None
        if here == there and type(here) is type(there)
        else Mismatch(what=what, here=_text(here), there=_text(there))
    )


def _group_mismatches(here: MoveProof, there: MoveProof, manifest: Manifest) -> list[Mismatch]:
    if here.groups == there.groups:
        return []
    known = groups(manifest)
    found = []
    for index, (ours, theirs) in enumerate(zip(split(here.groups), split(there.groups), strict=False)):
        if ours != theirs:
            paths = group_paths(manifest, known[index]) if index < len(known) else ()
            found.append(Mismatch(what=f"group {index}", here=ours.hex(), there=theirs.hex(), group=index, paths=paths))
    return found


def _text(value: object) -> str:
    return value.hex() if isinstance(value, bytes) else str(value)
