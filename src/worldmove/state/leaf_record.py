"""A leaf under its path, and what it is in words."""

from dataclasses import dataclass

from worldmove.state.leaf import (
    ArrayLeaf,
    DeviceTensorLeaf,
    EnumLeaf,
    Leaf,
    NumpyScalarLeaf,
    ScalarLeaf,
    TensorLeaf,
    decode_scalar,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LeafRecord:
    """A leaf and its path. The empty path is a state that is one leaf."""

    path: str
    content: Leaf

    @property
    def kind(self) -> str:
        """What it is, in words: ``tensor bfloat16``, ``int``, ``enum Season``, ``generator``."""
        return leaf_kind(self.content)

    @property
    def shape(self) -> tuple[int, ...]:
        """Its shape; () for what has none."""
        return self.content.shape if isinstance(self.content, TensorLeaf | ArrayLeaf) else ()


def leaf_kind(leaf: Leaf) -> str:
    """Say what a leaf is, without its value."""
    if isinstance(leaf, ScalarLeaf):
        return leaf.kind
    if isinstance(leaf, EnumLeaf):
        return f"enum {leaf.type}"
    if isinstance(leaf, DeviceTensorLeaf):
        return f"device tensor {leaf.dtype}"
    if isinstance(leaf, TensorLeaf | ArrayLeaf | NumpyScalarLeaf):
        return f"{'tensor' if isinstance(leaf, TensorLeaf) else 'numpy'} {leaf.dtype}"
    return "generator"


def say(leaf: Leaf) -> str:
    """Say what a leaf is, with its value if that is short."""
    if isinstance(leaf, ScalarLeaf):
        # Python refuses to write out an integer of thousands of digits.
        return f"{decode_scalar(leaf)!r:.60}" if len(leaf.value) <= 256 else f"{leaf.kind} of {len(leaf.value)} bytes"
    if isinstance(leaf, EnumLeaf):
        return f"{leaf.type}.{leaf.member}"
    if isinstance(leaf, TensorLeaf | ArrayLeaf):
        return f"{leaf_kind(leaf)} {list(leaf.shape)} ({leaf})"
    return str(leaf)
