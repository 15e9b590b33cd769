"""The messages of a move: what travels comes back equal, and what is beyond a bound does not come in."""

from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from worldmove.limits import MAX_BLOB_BYTES
from worldmove.move.ledger_messages import Answer, CloseAttempt, Operation
from worldmove.move.messages import AnyMoveMessage, Boundary, Ended, Offer, Prepared, Proof

HEAD: dict[str, Any] = {
    "to": "B",
    "sender": "A",
    "incarnation": 1,
    "session": "s",
    "attempt": "00000001-t",
    "epoch": 1,
}
ENDED: dict[str, Any] = {
    **HEAD,
    "side": "source",
    "outcome": "committed",
    "reason": "done",
    "detail": "",
    "phases": (("freeze", 0.0, 0.1),),
    "clock": 5.0,
    "num_bytes": 1,
    "num_leaves": 1,
    "num_groups": 1,
    "state_digest": "",
}
PROOF: dict[str, Any] = {
    **HEAD,
    "block": 3,
    "num_bytes": 4,
    "manifest_digest": bytes(32),
    "groups": bytes(16),
}


def over_the_wire(message: Any) -> Any:
    return msgspec.msgpack.decode(msgspec.msgpack.encode(message), type=AnyMoveMessage)


def refused(kind: type, fields: dict[str, Any]) -> None:
    with pytest.raises(msgspec.ValidationError):
        over_the_wire(kind(**fields))


@pytest.mark.parametrize("message", [Ended(**ENDED), Proof(**PROOF)])
def test_a_message_comes_back_as_it_was(message: AnyMoveMessage) -> None:
    assert over_the_wire(message) == message


def test_every_kind_of_message_has_a_tag_of_its_own() -> None:
    for union in (AnyMoveMessage, Operation, Answer):
        tags = [kind.__struct_config__.tag for kind in get_args(union)]
        assert len(set(tags)) == len(tags)


@pytest.mark.parametrize(
    "changed",
    [
        {"to": ""},
        {"to": "x" * 65},
        {"epoch": -1},
        {"epoch": 1 << 62},
        {"incarnation": 1.5},
        {"session": b"s"},
        {"side": "middle"},
        {"outcome": "won"},
        {"detail": "x" * 2049},
        {"phases": (("freeze", 0.0, 1.0),) * 65},
        {"num_bytes": -1},
    ],
)
def test_a_field_beyond_its_bound_is_refused(changed: dict[str, Any]) -> None:
    refused(Ended, {**ENDED, **changed})


@pytest.mark.parametrize("changed", [{"groups": (bytes(16),)}, {"manifest_digest": bytes(15)}, {"groups": "text"}])
def test_a_digest_of_another_length_is_refused(changed: dict[str, Any]) -> None:
    refused(Proof, {**PROOF, **changed})


def test_a_manifest_larger_than_a_message_may_be_is_refused() -> None:
    refused(Boundary, {**HEAD, "block": 0, "manifest": bytes(MAX_BLOB_BYTES + 1), "placement": ()})


def test_a_nonce_of_another_length_is_refused() -> None:
    fields = {"layout": b"", "environment": {}, "ticket": b"", "source": "A", "source_incarnation": 1}
    fields |= {"transport": "shm", "strategy": "boundary copy", "lease_s": 1.0}
    refused(Offer, {**HEAD, **fields, "nonce": bytes(31)})


def test_an_environment_of_too_many_fields_is_refused() -> None:
    environment = {f"field {number}": "x" for number in range(513)}
    refused(Prepared, {**HEAD, "layout": b"", "environment": environment, "ticket": b"", "block_s": 0.1})


@pytest.mark.parametrize("attempt", ["", "t", "0000001-t", "0000000A-t", "00000001", "00000001-", "00000001-\x00", "~"])
def test_an_attempt_whose_id_is_none_is_refused_in_messages_and_questions(attempt: str) -> None:
    """Ids are ordered: ``~`` would be newer than every attempt to come, and the session could never be moved again."""
    refused(Ended, {**ENDED, "attempt": attempt})
    asked = CloseAttempt(session="s", attempt=attempt, epoch=1, worker="A", incarnation=1, boundary=0)
    with pytest.raises(msgspec.ValidationError):
        msgspec.msgpack.decode(msgspec.msgpack.encode(asked), type=Operation)


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -1.0, 1e9])
def test_a_lease_that_nobody_could_wait_for_is_refused(number: float) -> None:
    fields = {"layout": b"", "environment": {}, "ticket": b"", "source": "A", "source_incarnation": 1}
    fields |= {"transport": "shm", "strategy": "boundary copy", "nonce": bytes(32)}
    refused(Offer, {**HEAD, **fields, "lease_s": number})


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_a_time_that_is_no_number_is_refused(number: float) -> None:
    refused(Ended, {**ENDED, "clock": number})
    refused(Ended, {**ENDED, "phases": (("freeze", 0.0, number),)})


def test_an_unknown_field_or_kind_is_refused() -> None:
    for extra in ({"extra": 1}, {"type": "party"}):
        raw = msgspec.to_builtins(Ended(**ENDED), builtin_types=(bytes,)) | extra
        with pytest.raises(msgspec.ValidationError):
            msgspec.msgpack.decode(msgspec.msgpack.encode(raw), type=AnyMoveMessage)


@settings(max_examples=200)
@given(st.binary(max_size=300))
def test_no_bytes_make_the_decoder_fail_in_another_way(data: bytes) -> None:
    try:
        msgspec.msgpack.decode(data, type=AnyMoveMessage)
    except msgspec.DecodeError:
        return
