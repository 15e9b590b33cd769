"""An engine with a component that is stepped alone: on what a block hands on it becomes what the block made of it."""

import pytest
import torch

from worldmove.engine.base import Follows
from worldmove.engine.matrix import MatrixEngine, tiny
from worldmove.engine.matrix.presets import tiny as tiny_preset
from worldmove.engine.matrix.presets import without_decoder
from worldmove.errors import StateRefused
from worldmove.state.part import part_of


def test_a_decoder_that_is_stepped_alone_remembers_what_the_sessions_own_does() -> None:
    torch.set_num_threads(1)
    engine = tiny()
    assert isinstance(engine, Follows)
    session, plain = engine.open(3), engine.open(3)
    for each in (session, plain):
        engine.step(each, ())
    part = {
        key: [leaf.clone() for leaf in leaves]
        for key, leaves in part_of(engine.state(session), engine.followed).items()
    }
    for _ in range(5):
        handed: list[bytes] = []
        said: list[str] = []
        block = engine.step_handing(session, (), said.append, handed.append)
        assert (block.frames == engine.step(plain, ()).frames).all()
        assert said == ["latents"]
        engine.follow(part, handed[0])
        now = engine.state(session)["decoder"]
        assert len(handed) == 1
        assert all(torch.equal(own, other) for own, other in zip(part["decoder"], now, strict=True))


def test_what_is_no_blocks_latents_is_refused() -> None:
    torch.set_num_threads(1)
    engine = tiny()
    part = part_of(engine.state(engine.open(3)), engine.followed)
    with pytest.raises(StateRefused, match="a block's latents have 768 bytes, and 3 were handed on"):
        engine.follow(part, b"123")


def test_without_a_decoder_nothing_is_followed() -> None:
    torch.set_num_threads(1)
    engine = MatrixEngine(without_decoder(tiny_preset()))
    assert engine.followed == ()
    with pytest.raises(StateRefused):
        engine.follow({}, b"")
