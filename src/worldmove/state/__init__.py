"""What a session is: its leaves, its memory, its manifest, its digests. Nothing here moves."""

from worldmove.state.arena import Arena
from worldmove.state.capture import Capture, HostStorage, capture
from worldmove.state.digest import Digester, StateDigest, Xxh3Digester, group_digests, state_digest
from worldmove.state.environment import Environment, FieldDifference, collect
from worldmove.state.extent import Extent
from worldmove.state.gathering import adopt, gather
from worldmove.state.groups import GROUP_BYTES, Group, group_paths, groups
from worldmove.state.landing import landed, materialise
from worldmove.state.layout import Layout
from worldmove.state.leaf_record import LeafRecord
from worldmove.state.manifest import Manifest
from worldmove.state.placement import Placement, check_placement, extents
from worldmove.state.proof import Mismatch, MoveProof, prove
from worldmove.state.storage import StorageRecord

__all__ = [
    "GROUP_BYTES",
    "Arena",
    "Capture",
    "Digester",
    "Environment",
    "Extent",
    "FieldDifference",
    "Group",
    "HostStorage",
    "Layout",
    "LeafRecord",
    "Manifest",
    "Mismatch",
    "MoveProof",
    "Placement",
    "StateDigest",
    "StorageRecord",
    "Xxh3Digester",
    "adopt",
    "capture",
    "check_placement",
    "collect",
    "extents",
    "gather",
    "group_digests",
    "group_paths",
    "groups",
    "landed",
    "materialise",
    "prove",
    "state_digest",
]
