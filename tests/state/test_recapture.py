"""A state captured again is exactly what ``capture`` returns, whatever happened to it in between."""

import random
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from worldmove.errors import StateRefused
from worldmove.state import Xxh3Digester, capture, tensor_facts
from worldmove.state import recapture as module
from worldmove.state.capture import Capture
from worldmove.state.device_digests import prepare
from worldmove.state.digest import Pass
from worldmove.state.kit_double import DoubleKit
from worldmove.state.recapture import recapture, remember

KIT, DIGESTER = DoubleKit(least_bytes=256), Xxh3Digester()


class Season(Enum):
    SPRING = 1
    AUTUMN = 2


@dataclass
class Cache:
    k: torch.Tensor
    v: torch.Tensor
    end: int = 0


TYPES: dict[str, type] = {"Season": Season, "Cache": Cache}
Tree = dict[str, Any]


def tree() -> Tree:
    base = torch.arange(200.0)
    return {
        "caches": [Cache(torch.zeros(4, 30), torch.ones(6)), Cache(torch.zeros(0), base[3:90:2])],
        "base": base,
        "over base": base.view(20, 10).t()[2:],
        "array": np.arange(40),
        "back": np.arange(9.0)[::-1],
        "season": Season.SPRING,
        "turned": torch.ones(5, dtype=torch.complex64).conj(),
        "noise": torch.Generator().manual_seed(3),
        "late": None,
        "pair": (1, {"x": 2.0, 7: b"bytes"}),
        "number": np.float32(1),
        "twins": [torch.full((7,), 1.0), torch.full((7,), 2.0)],
    }


def is_same(found: Capture, expected: Capture) -> bool:
    places = [[(s.address, s.num_bytes, s.used, type(s)) for s in state.storages] for state in (found, expected)]
    parts = (found.manifest.leaves, found.manifest.storages, found.manifest.generators, found.manifest.structure)
    return (
        found.manifest == expected.manifest
        and parts
        == (
            expected.manifest.leaves,
            expected.manifest.storages,
            expected.manifest.generators,
            expected.manifest.structure,
        )
        and places[0] == places[1]
    )


def rebind(t: Tree) -> None:
    t["caches"][0].v = torch.full((6,), 9.0)


def swap_storages(t: Tree) -> None:
    t["caches"][0].k, t["caches"][0].v = t["caches"][0].v, t["caches"][0].k


def set_in_place(t: Tree) -> None:
    t["base"].set_(torch.zeros(300))


def share_more(t: Tree) -> None:
    t["caches"][0].k = t["base"][:120].view(4, 30)


def _slide(t: Tree) -> None:
    """Let a view lie elsewhere in the storage that it is of."""
    view = t["caches"][1].v
    view.set_(view.untyped_storage(), 1, view.size(), view.stride())


def _exchange(t: Tree) -> None:
    """Keep both objects, with the memory of the other."""
    one, other = t["caches"][0].v, t["base"]
    mine = one.data
    one.data = other.data
    other.data = mine


def _own(tensor: torch.Tensor) -> torch.Tensor:
    """Return it, if its memory may grow: torch copies beyond the end of one that was moved to shared memory."""
    if tensor.is_shared():
        raise RuntimeError("shared memory has its size")
    return tensor


def _see_less(t: Tree) -> None:
    """Set a tensor to another storage that begins at the same byte and ends sooner."""
    twin = t["twins"][0]
    shorter = torch.from_numpy(np.asarray(t["base"].numpy()[:100])).untyped_storage()
    t["base"].set_(shorter, 0, (100,), (1,))
    twin.set_(twin.untyped_storage(), 0, (7,), (1,))


def _see_as_much_of_less(t: Tree) -> None:
    """The same, with the very shape: only the storage is another."""
    view = t["caches"][0].v
    whole = torch.zeros(20)
    view.set_(whole.untyped_storage(), 0, (6,), (1,))
    view.set_(torch.from_numpy(whole.numpy()[:8]).untyped_storage(), 0, (6,), (1,))


MUTATIONS: dict[str, Callable[[Tree], Any]] = {
    "nothing": lambda t: None,
    "a cursor": lambda t: setattr(t["caches"][0], "end", t["caches"][0].end + 1),
    "a cursor of another type": lambda t: setattr(t["caches"][0], "end", True),
    "an equal float of other bits": lambda t: t["pair"][1].update(x=-0.0),
    "a tensor bound anew": rebind,
    "tensors exchanged": swap_storages,
    "tensors of one shape exchanged": lambda t: t["twins"].reverse(),
    "tensors of one shape that exchange their insides": lambda t: torch.utils.swap_tensors(*t["twins"]),
    "a dict of others in place": lambda t: t["pair"][1].update({"x": b"bytes", 7: 2.0}),
    "a list turned round in place": lambda t: t["caches"].reverse(),
    "a tensor of another window of the same memory": _see_less,
    "a tensor of another window and the same shape": _see_as_much_of_less,
    "a storage moved in place": lambda t: t["base"].untyped_storage().share_memory_(),
    "host memory written in place": lambda t: t["array"].__setitem__(3, -1),
    "a tensor set to another storage": set_in_place,
    "a tensor grown": lambda t: setattr(t["caches"][0], "v", torch.ones(12)),
    "a storage resized in place": lambda t: _own(t["base"]).untyped_storage().resize_(4 * 400),
    "a tensor transposed in place": lambda t: t["caches"][0].k.t_(),
    "a tensor transposed and back, in place": lambda t: t["caches"][0].k.t_().t_(),
    "a tensor resized in place": lambda t: _own(t["caches"][0].v).resize_(3),
    "a tensor resized beyond its storage": lambda t: _own(t["caches"][0].v).resize_(4000),
    "a tensor set to other memory of the same shape": lambda t: t["caches"][0].v.set_(torch.ones(6)),
    "a tensor moved within its storage": _slide,
    "a tensor with other strides": lambda t: t["caches"][0].k.as_strided_((4, 30), (1, 4)),
    "a tensor with one more dimension": lambda t: t["caches"][0].v.unsqueeze_(0),
    "one object at two paths": lambda t: setattr(t["caches"][1], "k", t["caches"][0].v),
    "two that exchange their memory": _exchange,
    "another dtype over the same memory": lambda t: setattr(
        t["caches"][0].v, "data", t["caches"][0].v.data.view(torch.int32)
    ),
    "another dtype": lambda t: setattr(t["caches"][0], "v", torch.ones(6, dtype=torch.int32)),
    "data set": lambda t: setattr(t["caches"][0].v, "data", torch.zeros(6)),
    "views that share what they did not": share_more,
    "views that share no more": lambda t: t.update({"over base": t["over base"].clone()}),
    "all views moved together": lambda t: t.update(_moved(t)),
    "none becomes a tensor": lambda t: t.update(late=torch.ones(3)),
    "a new key": lambda t: t.update(extra=1),
    "a key that is equal and of another type": lambda t: t["pair"][1].update({True: t["pair"][1].pop(7)}),
    "keys in another order": lambda t: t.update(base=t.pop("base")),
    "a longer list": lambda t: t["caches"].append(Cache(torch.ones(2), torch.ones(2))),
    "a generator drawn from": lambda t: torch.rand(3, generator=t["noise"]),
    "an array of another shape": lambda t: t.update(array=np.arange(40).reshape(5, 8)),
    "an array written shut": lambda t: t["array"].setflags(write=False),
    "an array bound anew": lambda t: t.update(array=np.arange(40) + 1),
    "another season": lambda t: t.update(season=Season.AUTUMN),
    "another number": lambda t: t.update(number=np.float32(2)),
    "the conjugate bit": lambda t: t.update(turned=torch.ones(5, dtype=torch.complex64)),
    "the conjugate bit, in place": lambda t: setattr(t["turned"], "data", t["turned"].conj()),
    "the negative bit, in place": lambda t: setattr(t["base"], "data", torch._neg_view(t["base"])),
    "fresh views of the same memory": lambda t: t.update(base=t["base"].view(-1)),
}
REFUSED: dict[str, Callable[[Tree], Any]] = {
    "a container twice": lambda t: t.update(late=t["caches"]),
    "a tensor that requires grad": lambda t: t["base"].requires_grad_(),
    "a gradient": lambda t: setattr(t["caches"][0].v, "grad", torch.zeros(6)),
    "an attribute on a tensor": lambda t: setattr(t["base"], "mark", 1),
    "an attribute that is false": lambda t: setattr(t["base"], "mark", None),
    "a hook": lambda t: setattr(t["base"], "_backward_hooks", OrderedDict({1: print})),
    "a hook for later": lambda t: setattr(t["base"], "_post_accumulate_grad_hooks", OrderedDict({1: print})),
    "an attribute on a record": lambda t: setattr(t["caches"][0], "mark", 1),
    "a parameter": lambda t: t.update(base=torch.nn.Parameter(t["base"])),
    "a rebound tensor that requires grad": lambda t: t.update(base=torch.ones(200, requires_grad=True)),
    "a tensor that left for another device": lambda t: _leave(t["caches"][0].v),
    "one without a byte that left for another device": lambda t: _leave(t["caches"][1].k),
    "a tensor bound to no memory": lambda t: t.update(base=torch._efficientzerotensor((200,))),
    "a sparse tensor": lambda t: t.update(base=torch.eye(3).to_sparse()),
    "a set": lambda t: t.update(late={1}),
    "a long string": lambda t: t.update(late="x" * (1 << 21)),
    "the process's generator": lambda t: t.update(noise=torch.default_generator),
    "an attribute on a generator": lambda t: t.update(late=np.random.Generator(np.random.MT19937(1)).bit_generator),
}


def _moved(t: Tree) -> Tree:
    base = t["base"].clone()
    t["caches"][1].v = base[3:90:2]
    return {"base": base, "over base": base.view(20, 10).t()[2:]}


def _leave(tensor: torch.Tensor) -> None:
    torch.utils.swap_tensors(tensor, torch.empty_like(tensor, device="meta"))


@pytest.mark.parametrize("kit", [None, KIT], ids=["host", "device"])
@pytest.mark.parametrize("name", MUTATIONS)
def test_after_any_change_it_is_what_a_capture_is(name: str, kit: DoubleKit | None) -> None:
    state = tree()
    known = remember(state, TYPES, kit)
    MUTATIONS[name](state)
    again = recapture(known, state)
    assert is_same(again.capture, capture(state, TYPES, kit))
    torch.rand(1, generator=state["noise"])
    assert is_same(recapture(again, state).capture, capture(state, TYPES, kit))


@pytest.mark.parametrize("name", REFUSED)
def test_what_a_capture_refuses_is_refused_with_the_same_words(name: str) -> None:
    state = tree()
    known = remember(state, TYPES)
    REFUSED[name](state)
    with pytest.raises(StateRefused) as expected:
        capture(state, TYPES)
    with pytest.raises(StateRefused) as found:
        recapture(known, state)
    assert str(found.value) == str(expected.value)


@pytest.mark.parametrize("name", [*MUTATIONS, *REFUSED])
def test_where_torch_compares_no_tensors_at_once_each_is_asked(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tensor_facts, "guard_of", lambda tensors: None)
    monkeypatch.setattr(tensor_facts, "_shows_carried", bool)
    if name in MUTATIONS:
        test_after_any_change_it_is_what_a_capture_is(name, None)
    else:
        test_what_a_capture_refuses_is_refused_with_the_same_words(name)


def test_what_mostly_carries_nothing_is_not_asked_one_by_one() -> None:
    assert tensor_facts._shows_carried()
    tensors = [torch.zeros(2) for _ in range(3)]
    facts = tensor_facts.facts_of(tensors)
    assert facts.guard is not None
    assert tensor_facts.are_bare(tensors, facts)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(sorted(MUTATIONS)), max_size=6), st.booleans())
def test_what_is_begun_on_memory_that_was_found_is_of_the_state_or_known_not_to_be(
    names: list[str], is_on_device: bool
) -> None:
    kit = KIT if is_on_device else None
    state = tree()
    known = remember(state, TYPES, kit)
    prepare(known.capture)
    for name in names:
        with suppress(RuntimeError, KeyError, ValueError, AttributeError, IndexError):  # it may not be possible now
            MUTATIONS[name](state)
    early: list[Pass] = []
    try:
        expected = capture(state, TYPES, kit)
    except StateRefused:
        with pytest.raises(StateRefused):
            recapture(known, state)
        return
    again = recapture(known, state, lambda found: early.append(Pass(found, DIGESTER, b"n", b"l"))).capture
    assert is_same(again, expected)
    wanted = Pass(expected, DIGESTER, b"n", b"l").joined()
    if early and early[0].plan is not None and again.plans:
        assert early[0].plan is again.plans[0]
    assert Pass(again, DIGESTER, b"n", b"l").joined() == wanted
    if early and again.storages is early[0].storages:
        assert early[0].joined() == wanted


@pytest.mark.parametrize("seed", range(12))
def test_after_many_changes_in_a_row_it_still_is(seed: int) -> None:
    rng = random.Random(seed)
    state = tree()
    known = remember(state, TYPES, KIT)
    for _ in range(12):
        for name in rng.choices(list(MUTATIONS), k=rng.randrange(3)):
            try:
                MUTATIONS[name](state)
            except (RuntimeError, KeyError, ValueError):  # not possible any more after the changes before
                state = tree()
        known = recapture(known, state)
        assert is_same(known.capture, capture(state, TYPES, KIT))


def test_what_mostly_changes_is_read_without_a_capture(monkeypatch: pytest.MonkeyPatch) -> None:
    state = tree()
    known = remember(state, TYPES)
    for name in ("nothing", "a cursor", "a tensor bound anew", "all views moved together", "another season"):
        MUTATIONS[name](state)
    expected = capture(state, TYPES)
    monkeypatch.delattr(module, "capture")
    assert is_same(recapture(known, state).capture, expected)


def test_memory_that_an_old_tensor_held_is_held_by_the_new_one_now() -> None:
    state = {"a": torch.zeros(1000)}
    known = remember(state)
    state["a"] = state["a"].view(10, 100).view(1000)
    again = recapture(known, state)
    del known, state
    assert int(again.capture.storages[0].view(again.capture.storages[0].used[0])[0]) == 0
