"""Whatever a client or a record relies on of an engine is a field by which two engines are told apart."""

from dataclasses import fields, replace
from typing import Any

import pytest

from worldmove.engine.base import EngineSpec
from worldmove.engine.facts import MAX_SAID, facts_of

SPEC = EngineSpec(
    name="walker",
    preset="field",
    weights_sha256="0" * 64,
    height=32,
    width=48,
    frames_per_block=2,
    frames_per_s=8.0,
    keys=("up", "down"),
    num_threads=1,
)
OTHER: dict[str, list[Any]] = {
    "name": ["runner"],
    "preset": ["forest"],
    "weights_sha256": ["1" * 64],
    "height": [48],
    "width": [32],
    "frames_per_block": [4],
    "frames_per_s": [8.000000001, 9],
    "keys": [("up",), ("down", "up"), ("up, down",), ('up", "down',), (), ("up", "down", *map(str, range(200)))],
    "num_threads": [2],
    "device": ["cuda"],
}


@pytest.mark.parametrize("field", [field.name for field in fields(EngineSpec)])
def test_two_specs_that_differ_in_any_field_have_different_facts(field: str) -> None:
    for value in OTHER[field]:
        assert facts_of(replace(SPEC, **{field: value})) != facts_of(SPEC), value


def test_what_is_no_difference_is_none() -> None:
    cuda = replace(SPEC, device="cuda")
    assert facts_of(replace(SPEC, frames_per_s=8)) == facts_of(SPEC)
    assert facts_of(replace(cuda, device="cuda:3")) == facts_of(cuda)


def test_the_keys_are_said_and_however_many_there_are_they_can_be_sent() -> None:
    assert facts_of(SPEC)["keys"] == '["up", "down"]'
    many = tuple(f"{number:03}".rjust(64, "k") for number in range(255))
    same_but_one = (*many[:-1], "x")
    told = facts_of(replace(SPEC, keys=many))["keys"]
    assert len(told) <= MAX_SAID
    assert told.startswith("255 keys, ")
    assert facts_of(replace(SPEC, keys=same_but_one))["keys"] != told
