"""What every engine promises: subclass ``EngineContract`` beside the engine and give it ``make_engine``.

A world is compared by its frames, its notes and the digest of its whole state.
"""

import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch

from worldmove.engine.base import Block, Engine, KeyChange, Tree
from worldmove.errors import StateRefused
from worldmove.state.capture import capture
from worldmove.state.digest import Xxh3Digester, state_digest
from worldmove.state.tree import flatten

Inputs = Sequence[Sequence[KeyChange]]
Trace = list[Any]


def walk(engine: Engine[Any], num_blocks: int, seed: int = 0) -> Inputs:
    """Key changes for each block: keys go down and up at random, more of them than a block has frames for."""
    dice = random.Random(seed)
    down: set[str] = set()
    number = 0
    blocks = []
    for _ in range(num_blocks):
        changes = []
        for key in dice.sample(engine.spec.keys, k=dice.randint(0, 3)):
            number += 1
            down ^= {key}
            changes.append(KeyChange(number=number, key=key, down=key in down))
        blocks.append(changes)
    return blocks


def trace(block: Block) -> Any:
    return block.index, block.frames.tobytes(), block.notes


def play(engine: Engine[Any], session: Any, inputs: Inputs) -> Trace:
    return [trace(engine.step(session, changes)) for changes in inputs]


def digest(engine: Engine[Any], session: Any) -> str:
    engine.quiesce(session)
    return state_digest(capture(engine.state(session), engine.state_types), Xxh3Digester()).text


def addresses(engine: Engine[Any], session: Any) -> list[tuple[str, int]]:
    """Where every tensor of a state lies."""
    flat = flatten(engine.state(session), engine.state_types)
    pairs = zip(flat.paths, flat.values, strict=True)
    return [(path, value.data_ptr()) for path, value in pairs if isinstance(value, torch.Tensor)]


def copied(engine: Engine[Any], session: Any) -> Tree:
    """A state that shares no memory with its session: what a move would bring."""
    return duplicate(engine.state(session))


def duplicate(value: Any) -> Any:
    match value:
        case torch.Tensor():
            return value.clone()
        case torch.Generator():
            return torch.Generator(value.device).set_state(value.get_state())
        case dict():
            return {key: duplicate(item) for key, item in value.items()}
        case list():
            return [duplicate(item) for item in value]
        case _:
            return value


def global_generators() -> Any:
    return torch.get_rng_state().tolist(), random.getstate(), np.random.get_state()[1].tolist()  # type: ignore[index]


class EngineContract:
    """The promises of ``worldmove.engine.base``, as tests."""

    NUM_BLOCKS = 8

    @pytest.fixture
    def engine(self) -> Engine[Any]:
        return self.make_engine()

    def make_engine(self) -> Engine[Any]:
        raise NotImplementedError

    def test_equal_seeds_and_inputs_give_equal_worlds(self, engine: Engine[Any]) -> None:
        one, two = engine.open(5), engine.open(5)
        inputs = walk(engine, self.NUM_BLOCKS)
        assert play(engine, one, inputs) == play(engine, two, inputs)
        assert digest(engine, one) == digest(engine, two)

    def test_other_seeds_give_other_worlds(self, engine: Engine[Any]) -> None:
        one, two = engine.open(5), engine.open(6)
        assert trace(engine.step(one, ())) != trace(engine.step(two, ()))

    def test_sessions_do_not_share_anything(self, engine: Engine[Any]) -> None:
        inputs = walk(engine, self.NUM_BLOCKS)
        alone = engine.open(5)
        expected = play(engine, alone, inputs)
        beside, other = engine.open(5), engine.open(6)
        shown = []
        for changes in inputs:
            shown.append(trace(engine.step(beside, changes)))
            engine.step(other, walk(engine, 1, seed=len(shown))[0])
        assert shown == expected
        assert digest(engine, beside) == digest(engine, alone)

    def test_nothing_draws_from_a_global_generator(self, engine: Engine[Any]) -> None:
        before = global_generators()
        session = engine.open(5)
        engine.warm_up()
        play(engine, session, walk(engine, 2))
        engine.install(copied(engine, session))
        assert global_generators() == before

    def test_warming_up_touches_no_session(self, engine: Engine[Any]) -> None:
        session = engine.open(5)
        play(engine, session, walk(engine, 2))
        before = digest(engine, session)
        engine.warm_up()
        assert digest(engine, session) == before

    def test_a_step_leaves_other_sessions_as_they_were(self, engine: Engine[Any]) -> None:
        one, two = engine.open(5), engine.open(5)
        play(engine, two, walk(engine, 2))
        before = digest(engine, two)
        play(engine, one, walk(engine, 2))
        assert digest(engine, two) == before

    def test_blocks_are_as_the_engine_says(self, engine: Engine[Any]) -> None:
        session, spec = engine.open(5), engine.spec
        numbers = [0]
        for index, changes in enumerate(walk(engine, self.NUM_BLOCKS)):
            block = engine.step(session, changes)
            assert block.index == index
            assert block.frames.shape == (spec.frames_per_block, spec.height, spec.width, 3)
            assert block.frames.dtype == np.uint8
            assert block.frames.flags.c_contiguous
            assert len(block.notes) == spec.frames_per_block
            numbers.extend(note.number for note in block.notes)
        assert numbers == sorted(numbers)

    def test_frames_stay_as_they_were_shown(self, engine: Engine[Any]) -> None:
        session = engine.open(5)
        block = engine.step(session, ())
        before = block.frames.tobytes()
        play(engine, session, walk(engine, 3))
        assert block.frames.tobytes() == before

    def test_a_state_is_the_live_one(self, engine: Engine[Any]) -> None:
        session = engine.open(5)
        play(engine, session, walk(engine, self.NUM_BLOCKS))
        held = engine.state(session)
        assert addresses(engine, session) == addresses(engine, engine.install(held))

    def test_a_fresh_install_continues_the_world(self, engine: Engine[Any]) -> None:
        session = engine.open(5)
        inputs = walk(engine, 2 * self.NUM_BLOCKS)
        play(engine, session, inputs[: self.NUM_BLOCKS])
        moved = self.make_engine().install(copied(engine, session))
        assert digest(engine, moved) == digest(engine, session)
        rest = inputs[self.NUM_BLOCKS :]
        assert play(engine, moved, rest) == play(engine, session, rest)
        assert digest(engine, moved) == digest(engine, session)

    def test_an_install_in_place_continues_the_world_at_the_same_addresses(self, engine: Engine[Any]) -> None:
        session, slot = engine.open(5), engine.open(9)
        inputs = walk(engine, 2 * self.NUM_BLOCKS)
        play(engine, session, inputs[: self.NUM_BLOCKS])
        play(engine, slot, walk(engine, 3, seed=9))
        places = addresses(engine, slot)
        assert engine.install(copied(engine, session), into=slot) is slot
        assert addresses(engine, slot) == places
        rest = inputs[self.NUM_BLOCKS :]
        assert play(engine, slot, rest) == play(engine, session, rest)
        assert digest(engine, slot) == digest(engine, session)

    def test_a_step_keeps_the_addresses_of_an_adopted_state(self, engine: Engine[Any]) -> None:
        session = engine.open(5)
        play(engine, session, walk(engine, 2))
        tree = copied(engine, session)
        adopted = engine.install(tree)
        places = addresses(engine, adopted)
        play(engine, adopted, walk(engine, self.NUM_BLOCKS))
        assert addresses(engine, adopted) == places

    @pytest.mark.parametrize("tree", [None, {}, [], {"frame": 0}])
    def test_another_kind_of_tree_is_refused(self, engine: Engine[Any], tree: Tree) -> None:
        with pytest.raises(StateRefused):
            engine.install(tree)
