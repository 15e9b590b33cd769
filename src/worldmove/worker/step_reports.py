"""What the server is told of a copy's steps."""

from worldmove.worker.messages import BlockDone, CheckDone, Followed, StateDone
from worldmove.worker.session import SessionCopy
from worldmove.worker.states import Account
from worldmove.worker.stepping import Stepped


def block_done(copy: SessionCopy, number: int, stepped: Stepped) -> BlockDone:
    """Return the message of an owner's block."""
    return BlockDone(
        session=copy.name,
        epoch=copy.epoch,
        block=number,
        frames=stepped.pictures.frames,
        frame_sha256=stepped.pictures.frame_sha256,
        notes=stepped.notes,
        compute_s=stepped.compute_s,
        state_digest=stepped.state_digest,
    )


def check_done(copy: SessionCopy, number: int, stepped: Stepped) -> CheckDone:
    """Return the message of a retired copy's block."""
    return CheckDone(
        session=copy.name,
        attempt=copy.attempt,
        block=number,
        frame_sha256=stepped.pictures.frame_sha256,
        state_digest=stepped.state_digest,
        compute_s=stepped.compute_s,
    )


def followed(copy: SessionCopy, number: int, stepped: Stepped) -> Followed:
    """Return the message of a follower's block."""
    return Followed(
        session=copy.name,
        attempt=copy.follows,
        block=number,
        frame_sha256=stepped.pictures.frame_sha256,
        compute_s=stepped.compute_s,
    )


def state_done(copy: SessionCopy, account: Account) -> StateDone:
    """Return the message of an account at this copy's boundary."""
    return StateDone(
        session=copy.name,
        epoch=copy.epoch,
        block=copy.next_block - 1,
        state_digest=account.state_digest,
        paths=account.paths,
        leaf_digests=account.leaf_digests,
    )
