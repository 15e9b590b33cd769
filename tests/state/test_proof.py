from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
import pytest
import torch

from worldmove.state import GROUP_BYTES, Layout, MoveProof, Xxh3Digester, capture, prove
from worldmove.state.digest import split

TREE = {
    "caches": [{"k": torch.zeros(GROUP_BYTES + 5, dtype=torch.uint8), "v": torch.ones(7)}],
    "cursor": 3,
}
STATE = capture(TREE)
LAYOUT = Layout.of(STATE.manifest).digest


def _prove(**changes: Any) -> MoveProof:
    fields: dict[str, Any] = {
        "attempt": "a1",
        "epoch": 4,
        "boundary": 17,
        "nonce": b"n" * 32,
        "layout_digest": LAYOUT,
    } | changes
    return prove(capture(TREE), Xxh3Digester(), **fields)


def test_two_honest_proofs_of_one_state_agree() -> None:
    assert _prove().compare(_prove(), STATE.manifest) == ()


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"attempt": "a2"}, "attempt"),
        ({"epoch": 5}, "epoch"),
        ({"boundary": 18}, "boundary"),
        ({"num_bytes": 1}, "num_bytes"),
        ({"manifest_digest": b"x"}, "manifest_digest"),
        ({"groups": b""}, "number of groups"),
    ],
)
def test_every_field_is_compared(change: dict[str, Any], what: str) -> None:
    found = _prove().compare(replace(_prove(), **change), STATE.manifest)
    assert [mismatch.what for mismatch in found] == [what]


def test_an_epoch_of_another_type_is_not_equal() -> None:
    assert _prove(epoch=1).compare(_prove(epoch=True), STATE.manifest) != ()


def test_every_group_is_compared_and_a_difference_names_its_leaves() -> None:
    proof = _prove()
    for index, paths in enumerate([("caches[0].k",), ("caches[0].k",), ("caches[0].v",)]):
        groups = split(proof.groups)
        groups = (*groups[:index], bytes(16), *groups[index + 1 :])
        (found,) = proof.compare(replace(proof, groups=b"".join(groups)), STATE.manifest)
        assert (found.group, found.paths) == (index, paths)
        assert f"group {index} ({paths[0]}) is" in str(found)


def test_all_differences_are_returned_not_the_first() -> None:
    other = _prove(nonce=b"m" * 32, epoch=9)
    assert [m.what for m in _prove().compare(other, STATE.manifest)] == ["epoch", "group 0", "group 1", "group 2"]


def test_a_proof_with_more_groups_than_the_state_is_a_mismatch_and_no_crash() -> None:
    proof = _prove()
    longer = replace(proof, groups=proof.groups + b"x")
    assert [m.what for m in longer.compare(proof, STATE.manifest)] == ["number of groups"]
    assert len(longer.compare(replace(longer, groups=bytes(len(longer.groups) + 15)), STATE.manifest)) == 4


def test_a_changed_scalar_is_seen_though_no_group_changes() -> None:
    changed = capture({**TREE, "cursor": 4})
    other = prove(changed, Xxh3Digester(), attempt="a1", epoch=4, boundary=17, nonce=b"n" * 32, layout_digest=LAYOUT)
    assert [m.what for m in _prove().compare(other, STATE.manifest)] == ["manifest_digest"]


def test_a_proof_travels_as_a_message() -> None:
    proof = _prove()
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(proof), type=MoveProof) == proof


@pytest.mark.parametrize("num_groups", [1, 3])
def test_whoever_waits_for_a_proof_hears_of_each_group(num_groups: int) -> None:
    told = list[None]()
    state = capture({"array": np.zeros(num_groups * GROUP_BYTES, dtype=np.uint8)})
    fields: dict[str, Any] = {
        "attempt": "a-1",
        "epoch": 1,
        "boundary": 0,
        "nonce": bytes(32),
        "layout_digest": bytes(32),
    }
    proof = prove(state, Xxh3Digester(), **fields, gets_on=lambda: told.append(None))
    assert (proof.num_groups, len(told)) == (num_groups, num_groups + 1)
