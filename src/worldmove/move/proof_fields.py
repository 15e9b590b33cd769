"""A move proof as messages carry it."""

from typing import TypedDict

from worldmove.move.messages import Base, Component, Proof
from worldmove.state.proof import MoveProof


class ProofFields(TypedDict):
    """Of a ``Proof``, a ``Component``, and a ``Base`` that has one.

    What else a proof has, every message of an attempt says.
    """

    block: int
    num_bytes: int
    manifest_digest: bytes
    groups: bytes


def fields_of(proof: MoveProof) -> ProofFields:
    """Return what a message says of a proof."""
    return ProofFields(
        block=proof.boundary, num_bytes=proof.num_bytes, manifest_digest=proof.manifest_digest, groups=proof.groups
    )


def said_by(message: Base | Component | Proof) -> MoveProof:
    """Return the proof that a message carries."""
    return MoveProof(
        attempt=message.attempt,
        epoch=message.epoch,
        boundary=message.block,
        num_bytes=message.num_bytes,
        manifest_digest=message.manifest_digest,
        groups=message.groups,
    )
