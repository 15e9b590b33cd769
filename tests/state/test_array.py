import warnings
from typing import Any

import numpy as np
import pytest
import torch
from torch.autograd import forward_ad

from tests.state.equality import element_bytes, plain
from worldmove.errors import StateRefused
from worldmove.state import Arena, Layout, adopt, capture, materialise
from worldmove.state.dtypes import TORCH_COMPLEX, TORCH_ITEM_BYTES, TORCH_REFUSED


def _move(tree: Any) -> Any:
    source = capture(tree)
    arena = Arena(Layout.of(source.manifest).arena_bytes, "array")
    arena.poison()
    return materialise(source.manifest, adopt(source, arena), arena)


def _tensor(name: str) -> torch.Tensor:
    data = torch.arange(64, dtype=torch.uint8) * 37 + 11
    return data.view(getattr(torch, name))


@pytest.mark.parametrize("name", sorted(TORCH_ITEM_BYTES))
def test_a_carried_dtype_comes_back_bit_for_bit(name: str) -> None:
    tensor = _tensor(name)
    assert tensor.element_size() == TORCH_ITEM_BYTES[name]
    assert plain(_move(tensor)) == plain(tensor)
    assert element_bytes(_move(tensor)) == bytes((i * 37 + 11) % 256 for i in range(64))


def test_every_dtype_of_torch_is_either_carried_or_refused() -> None:
    known = {str(value).removeprefix("torch.") for value in vars(torch).values() if isinstance(value, torch.dtype)}
    assert known <= set(TORCH_ITEM_BYTES) | set(TORCH_REFUSED)
    assert not set(TORCH_ITEM_BYTES) & set(TORCH_REFUSED)


@pytest.mark.parametrize("name", sorted(TORCH_COMPLEX))
def test_conjugate_and_negative_bits_are_kept(name: str) -> None:
    base = _tensor(name)
    both = torch._neg_view(base.conj())
    moved = _move({"base": base, "conj": base.conj(), "both": both, "imag": base.conj().imag})
    assert (moved["conj"].is_conj(), moved["conj"].is_neg()) == (True, False)
    assert (moved["both"].is_conj(), moved["both"].is_neg()) == (True, True)
    assert (moved["imag"].is_conj(), moved["imag"].is_neg()) == (False, True)
    assert moved["imag"].untyped_storage().data_ptr() == moved["base"].untyped_storage().data_ptr()


def test_nan_payloads_in_tensors_are_kept() -> None:
    bits = torch.tensor([0x7F800001, 0x7FC00123, -1, -(1 << 31)], dtype=torch.int32)
    assert torch.equal(_move(bits.view(torch.float32)).view(torch.int32), bits)


def test_views_of_one_storage_still_share_it() -> None:
    base = torch.zeros(6, 4)
    tree = {
        "base": base,
        "row": base[2],
        "column": base[:, 1],
        "flat": base.view(-1)[5:9],
        "wide": base[:1].expand(9, 4),
    }
    moved = _move(tree)
    moved["base"][2, 1] = 7
    assert moved["row"][1] == moved["column"][2] == moved["base"].view(-1)[9] == 7
    moved["wide"][0, 0] = 3
    assert (moved["base"][0, 0], moved["wide"][8, 0]) == (3, 3)


def test_an_array_and_a_tensor_of_the_same_memory_still_share_it() -> None:
    memory = np.arange(12, dtype=np.float32)
    moved = _move(
        {
            "array": memory,
            "tensor": torch.from_numpy(memory),
            "tail": memory[::-2],
            "alias": torch.from_numpy(memory[3:]),
        }
    )
    moved["tensor"][11] = 40
    assert (moved["array"][11], moved["tail"][0], moved["alias"][8]) == (40, 40, 40)


def test_arrays_that_overlap_only_in_part_still_do() -> None:
    memory = np.arange(10, dtype=np.int64)
    moved = _move([memory[:6], memory[4:]])
    moved[0][5] = -1
    assert moved[1][1] == -1


def test_memory_that_merely_touches_is_not_shared() -> None:
    memory = np.arange(10, dtype=np.int64)
    assert len(capture([memory[:5], memory[5:]]).storages) == 2


def test_an_empty_tensor_keeps_its_shape_strides_and_offset() -> None:
    base = torch.zeros(4, 5)
    tree = [torch.empty(0), torch.empty(3, 0, 2), base[4:, 1:], base, torch.zeros(())]
    assert plain(_move(tree)) == plain(tree)


def test_bool_bytes_that_are_neither_0_nor_1_are_kept() -> None:
    raw = torch.tensor([0, 1, 2, 255], dtype=torch.uint8)
    assert element_bytes(_move(raw.view(torch.bool))) == bytes([0, 1, 2, 255])


def test_a_restored_tensor_is_no_inference_tensor_even_in_inference_mode() -> None:
    with torch.inference_mode():
        moved = _move(torch.ones(3))
    assert not moved.is_inference()
    moved.add_(1)


def test_moving_a_half_complex_tensor_warns_of_nothing() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert _move(_tensor("complex32")).dtype == torch.complex32


class Marked(torch.Tensor):
    pass


def _noted() -> torch.Tensor:
    tensor = torch.ones(2)
    tensor.note = "kept"  # type: ignore[attr-defined]
    return tensor


def _with_gradient() -> torch.Tensor:
    tensor = torch.ones(2)
    tensor.grad = torch.ones(2)
    return tensor


def _with_backward_hook() -> torch.Tensor:
    tensor = torch.ones(2, requires_grad=True)
    tensor.register_hook(lambda gradient: gradient)
    tensor.requires_grad = False
    return tensor


def _with_accumulation_hook() -> torch.Tensor:
    tensor = torch.ones(2, requires_grad=True)
    tensor.register_post_accumulate_grad_hook(lambda _: None)
    tensor.requires_grad = False
    return tensor


class OwnFloat(np.float32):
    pass


def _quantised() -> torch.Tensor:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8)


def _sparse_csr() -> torch.Tensor:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.eye(3).to_sparse_csr()


def _nested() -> torch.Tensor:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: torch.eye(3).to_sparse(), "strided"),
        (_sparse_csr, "strided"),
        (lambda: torch.eye(3).to_mkldnn(), "strided"),
        (_nested, "nested"),
        (_quantised, "quantised"),
        (lambda: torch.empty(3, device="meta"), "host memory"),
        (lambda: torch.nn.Parameter(torch.ones(2)), "subclass"),
        (lambda: torch.nn.Parameter(torch.ones(2), requires_grad=False), "subclass"),
        (lambda: torch.ones(2).as_subclass(Marked), "subclass"),
        (lambda: torch.ones(2, requires_grad=True), "requires grad"),
        (lambda: torch.ones(2, requires_grad=True) * 2, "requires grad"),
        (lambda: torch._efficientzerotensor(2), "zero tensor"),
        (_noted, "attributes"),
        (_with_gradient, "gradient"),
        (_with_backward_hook, "hooks"),
        (_with_accumulation_hook, "hooks"),
        (lambda: torch.zeros(1).expand((1,) * 65), "dimensions"),
        (lambda: torch.zeros(1).as_strided((1,), (1 << 50,)), "out of range"),
        (lambda: np.array([object()]), "references"),
        (lambda: np.zeros(2, dtype=[("x", "f4")]), "structured"),
        (lambda: np.zeros(2, dtype=np.longdouble), "padding"),
        (lambda: np.zeros(2, dtype=np.clongdouble), "padding"),
        (lambda: np.array(["a"], dtype=np.dtypes.StringDType()), "references"),
        (lambda: np.zeros(2, dtype=np.dtype("f4", metadata={"unit": "m"})), "not carried"),
        (lambda: np.ma.masked_array([1, 2], [True, False]), "derives from ndarray"),
        (lambda: np.zeros(2).view(np.recarray), "derives from ndarray"),
        (lambda: np.str_("x"), "not carried"),
        (lambda: np.void(b"x"), "not carried"),
        (lambda: np.longdouble(1), "padding"),
        (lambda: OwnFloat(1), "subclass"),
    ],
)
def test_what_cannot_be_carried_exactly_is_refused_and_the_reason_said(make: Any, why: str) -> None:
    with pytest.raises(StateRefused, match=why) as refused:
        capture({"caches": [make()]})
    assert refused.value.path == "caches[0]"


# torch itself calls what it calls deprecated when a dual level is first entered.
ENTERS_DUAL_LEVEL = pytest.mark.filterwarnings("ignore:`torch.jit.script` is:DeprecationWarning")


@ENTERS_DUAL_LEVEL
def test_a_forward_tangent_is_refused_and_a_tensor_beside_it_is_not() -> None:
    with forward_ad.dual_level():
        beside = torch.ones(2)
        dual = forward_ad.make_dual(torch.ones(2), torch.ones(2))
        assert capture({"beside": beside}).num_bytes == 8
        with pytest.raises(StateRefused, match="tangent") as refused:
            capture({"beside": beside, "dual": dual})
    assert refused.value.path == "dual"


@ENTERS_DUAL_LEVEL
def test_a_tensor_inside_a_function_transform_is_refused() -> None:
    def look(tensor: torch.Tensor) -> torch.Tensor:
        with pytest.raises(StateRefused):
            capture({"x": tensor})
        return tensor * 2

    ones = torch.ones(2, 2)
    torch.func.vmap(look)(ones)
    torch.func.jvp(look, (ones,), (ones,))
    torch.func.functionalize(look)(ones)
    torch.func.vjp(look, ones)


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6, dtype=">i4").reshape(2, 3)[:, ::-1],
        np.array(["ab", "c"]),
        np.array([b"ab", b"c\0d"]),
        np.array([b"\1\2", b"\3"], dtype="V2"),
        np.array(["2020-01-01", "NaT"], dtype="M8[D]"),
        np.array([1, 2], dtype="m8"),
        np.arange(3, dtype=np.longlong),
        np.zeros((0, 3), dtype=np.float16),
        np.zeros((), dtype=bool),
        np.broadcast_to(np.float64(2.5), (3, 4)),
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    ],
)
def test_an_array_comes_back_with_its_dtype_strides_and_flags(array: Any) -> None:
    assert plain(_move(array)) == plain(array)


@pytest.mark.parametrize(
    "number",
    [
        np.float32(-0.0),
        np.int64(3),
        np.longlong(3),
        np.bool_(1),
        np.complex64(1j),
        np.datetime64("2020-01-01T00", "h"),
    ],
)
def test_a_numpy_scalar_comes_back_with_its_type(number: Any) -> None:
    assert plain(_move(number)) == plain(number)


def test_long_and_long_long_are_different_state() -> None:
    assert capture(np.int64(3)).manifest != capture(np.longlong(3)).manifest
