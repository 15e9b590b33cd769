import os

import msgspec
import pytest
import torch

from worldmove.limits import MAX_TEXT
from worldmove.move.message import Fields
from worldmove.state import Environment, collect


def test_two_looks_at_one_process_agree() -> None:
    assert collect({"preset": "island"}).difference(collect({"preset": "island"})) == ()


def test_a_difference_names_the_field_and_both_sides() -> None:
    here, there = Environment(fields={"a": "1", "b": "2"}), Environment(fields={"b": "3", "c": "4"})
    found = here.difference(there)
    assert [(d.field, d.here, d.there) for d in found] == [("a", "1", None), ("b", "2", "3"), ("c", None, "4")]
    assert str(found[0]) == "a is 1 here and not set there"


def test_an_empty_value_is_not_an_absent_one() -> None:
    assert len(Environment(fields={"a": ""}).difference(Environment(fields={}))) == 1


def test_the_engines_fields_stand_under_its_name() -> None:
    fields = collect({"weights_sha256": "ab", "python": "x"}).fields
    assert fields["engine.weights_sha256"] == "ab"
    assert fields["python"] != "x"


@pytest.mark.parametrize(
    "field",
    [
        "cpu.model",
        "cpu.flags_sha256",
        "torch",
        "torch.mkl",
        "torch.onednn",
        "torch.cpu_capability",
        "torch.num_threads",
        "torch.default_dtype",
        "torch.deterministic",
        "torch.flush_denormal",
        "numpy",
        "python",
    ],
)
def test_what_decides_a_blocks_bytes_on_a_cpu_is_there(field: str) -> None:
    assert collect({}).fields[field]


def test_thread_count_denormals_and_variables_are_read_when_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    before = collect({})
    threads = torch.get_num_threads()
    monkeypatch.setenv("MKL_CBWR", "COMPATIBLE")
    torch.set_num_threads(threads + 1)
    flushing = torch.set_flush_denormal(True)
    try:
        changed = collect({})
    finally:
        torch.set_flush_denormal(False)
        torch.set_num_threads(threads)
    expected = {"env.MKL_CBWR", "torch.num_threads"} | ({"torch.flush_denormal"} if flushing else set())
    assert {difference.field for difference in before.difference(changed)} == expected
    assert collect({}).fields["torch.flush_denormal"] == "False"


def test_a_generators_state_is_no_environment() -> None:
    before = collect({})
    torch.manual_seed(1234)
    torch.rand(3)
    assert before.difference(collect({})) == ()


@pytest.mark.parametrize("value", ["x" * (MAX_TEXT + 1), os.fsdecode(b"\xff"), "x" * MAX_TEXT, "\N{EURO SIGN}"])
def test_whatever_a_variable_says_can_be_sent_and_is_told_apart(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("GLIBC_TUNABLES", value)
    told = dict(collect({}).fields)
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(told), type=Fields) == told
    monkeypatch.setenv("GLIBC_TUNABLES", f"{value}y")
    assert collect({}).fields["env.GLIBC_TUNABLES"] != told["env.GLIBC_TUNABLES"]
