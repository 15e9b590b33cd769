"""Engines that say during a step which leaves are final: what they say is true, and the block is the same."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from worldmove.engine.base import Engine, Streams
from worldmove.engine.matrix import tiny as matrix_tiny
from worldmove.engine.reference import tiny
from worldmove.state import capture
from worldmove.state.tree import flatten

ENGINES = {"reference": tiny, "matrix": matrix_tiny}


def leaves(engine: Engine[Any], session: Any, under: str) -> dict[str, bytes]:
    """The bytes of the leaves under a path."""
    found = capture(engine.state(session), engine.state_types)
    kept = {}
    for leaf in found.manifest.leaves:
        storage = getattr(leaf.content, "storage", None)
        if storage is not None and leaf.path.startswith(under):
            kept[leaf.path] = b"".join(bytes(found.storages[storage].view(e)) for e in found.storages[storage].used)
    return kept


@pytest.mark.parametrize("make", ENGINES.values(), ids=ENGINES)
def test_what_is_called_final_stays_until_the_next_step_and_the_block_is_the_same(make: Callable[[], Any]) -> None:
    torch.set_num_threads(1)
    engine = make()
    is_streaming = isinstance(engine, Streams)
    assert is_streaming
    streamed, plain = engine.open(3), engine.open(3)
    for _ in range(6):
        said: dict[str, bytes] = {}

        def final(path: str, into: dict[str, bytes] = said) -> None:
            into.update(leaves(engine, streamed, path))

        block = engine.step_streaming(streamed, (), final)
        assert (block.frames == engine.step(plain, ()).frames).all()
        assert {path: data for path, data in leaves(engine, streamed, "").items() if path in said} == said
        caches = [path for path in leaves(engine, streamed, "") if path.endswith((".k", ".v"))]
        assert sorted(caches) == sorted(path for path in said if path.endswith((".k", ".v")))


@pytest.mark.parametrize("make", ENGINES.values(), ids=ENGINES)
def test_a_leaf_that_is_said_to_have_rolled_has_its_old_rows_nearer_to_the_front(make: Callable[[], Any]) -> None:
    torch.set_num_threads(1)
    engine = make()
    session = engine.open(3)
    said = 0
    for _ in range(6):
        before = tensors(engine, session)
        engine.step(session, ())
        now = tensors(engine, session)
        for path, by in engine.rolled(session).items():
            said += 1
            size = now[path].shape[by.axis] - by.sink - by.block
            assert size > 0
            old = before[path].narrow(by.axis, by.sink + by.block, size)
            assert torch.equal(now[path].narrow(by.axis, by.sink, size), old)
    assert said


def tensors(engine: Engine[Any], session: Any) -> dict[str, torch.Tensor]:
    """Copies of the state's tensors, by path."""
    flat = flatten(engine.state(session), engine.state_types)
    pairs = zip(flat.paths, flat.values, strict=True)
    return {path: value.clone() for path, value in pairs if isinstance(value, torch.Tensor)}
