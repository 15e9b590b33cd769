import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.state.trees import float_of
from worldmove.errors import ManifestError
from worldmove.state.leaf import ScalarLeaf, decode_scalar, encode_scalar


def _exact(value: Any) -> Any:
    return (type(value), struct.pack("<d", value)) if type(value) is float else (type(value), value)


@given(st.integers(0, 2**64 - 1).map(float_of))
def test_a_float_comes_back_with_the_same_64_bits(value: float) -> None:
    back = decode_scalar(encode_scalar(value))
    assert isinstance(back, float)
    assert struct.pack("<d", back) == struct.pack("<d", value)


@pytest.mark.parametrize("bits", [0x7FF0000000000001, 0x7FF8000000000123, 0xFFF8000000000000, 1 << 63, 1])
def test_a_signalling_nan_a_payload_and_minus_zero_are_kept(bits: int) -> None:
    assert encode_scalar(float_of(bits)).value == struct.pack("<Q", bits)
    assert encode_scalar(complex(float_of(bits), float_of(bits))).value == struct.pack("<QQ", bits, bits)


@pytest.mark.parametrize(
    "value",
    [None, True, False, 0, 1, -1, 127, 128, -128, -129, 255, 256, 2**63, -(2**63), 10**400, "", "a\ud800b", "é\0", b""],
)
def test_a_scalar_comes_back_with_its_type(value: Any) -> None:
    assert _exact(decode_scalar(encode_scalar(value))) == _exact(value)


@given(st.integers(), st.integers())
def test_different_integers_have_different_bytes(one: int, other: int) -> None:
    assert (encode_scalar(one) == encode_scalar(other)) == (one == other)


def test_true_is_not_one() -> None:
    assert encode_scalar(value=True) != encode_scalar(value=1)


@pytest.mark.parametrize(
    "leaf",
    [
        ScalarLeaf("int", b""),
        ScalarLeaf("int", b"\1\0"),
        ScalarLeaf("int", b"\xff\xff"),
        ScalarLeaf("bool", b"\2"),
        ScalarLeaf("bool", b""),
        ScalarLeaf("none", b"x"),
        ScalarLeaf("float", b"1234567"),
        ScalarLeaf("float", b"123456789"),
        ScalarLeaf("complex", b"12345678"),
        ScalarLeaf("str", b"\xff"),
        ScalarLeaf("str", b"\xc0\x80"),
        ScalarLeaf("tuple", b""),
    ],
)
def test_bytes_that_no_scalar_has_are_refused(leaf: ScalarLeaf) -> None:
    with pytest.raises(ManifestError):
        decode_scalar(leaf)
