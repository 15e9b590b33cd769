"""The matrix engine keeps the contract, moves mid-world bit for bit, and says what is wrong with a tree."""

from functools import cache
from typing import Any

import pytest
import torch

from tests.engine.contract import EngineContract, addresses, copied, digest, play, trace, walk
from worldmove.engine.base import Engine, KeyChange, Tree
from worldmove.engine.matrix import tiny, tiny_latents
from worldmove.engine.matrix.engine import MatrixEngine
from worldmove.engine.matrix.presets import matrix_game_2
from worldmove.engine.matrix.sizes import is_finite
from worldmove.errors import StateRefused, UserError

REBOUND = ("decoder[", "latents.cross[")


@cache
def the_engine() -> MatrixEngine:
    return tiny()


class TestMatrixEngine(EngineContract):
    NUM_BLOCKS = 3

    def make_engine(self) -> Engine[Any]:
        return tiny()

    def test_a_step_keeps_the_addresses_of_an_adopted_state(self, engine: Engine[Any]) -> None:
        """All but those of the leaves that a step replaces: see ``test_rebinding``."""
        session = engine.install(copied(engine, engine.open(5)))
        places = dict(addresses(engine, session))
        play(engine, session, walk(engine, self.NUM_BLOCKS))
        after = dict(addresses(engine, session))
        moved = [path for path in places if places[path] != after[path]]
        assert [path for path in moved if not path.startswith(REBOUND)] == []


def test_the_feature_cache_has_new_tensors_after_every_block() -> None:
    engine = the_engine()
    session = engine.open(5)
    before = list(session.features)
    engine.step(session, ())
    assert len(session.features) == 32
    assert all(new is not old for new, old in zip(session.features, before, strict=True))
    assert not {slot.untyped_storage().data_ptr() for slot in before} & {
        slot.untyped_storage().data_ptr() for slot in session.features
    }


def test_cross_attention_is_rebound_at_its_first_use_and_then_stays() -> None:
    engine = the_engine()
    session = engine.open(5)
    zeros = [dict(cache) for cache in session.caches["cross"]]
    engine.step(session, ())
    filled = [dict(cache) for cache in session.caches["cross"]]
    engine.step(session, ())
    for old, new, last in zip(zeros, filled, session.caches["cross"], strict=True):
        assert (old["is_init"], new["is_init"]) == (False, True)
        assert new["k"] is not old["k"]
        assert new["v"] is not old["v"]
        assert not old["k"].any()
        assert new["k"].any()
        assert last["k"] is new["k"]
        assert last["v"] is new["v"]


@pytest.mark.parametrize("num_before", [1, 2, 3, 6])
def test_a_moved_world_goes_on_bit_for_bit(num_before: int) -> None:
    """At its first boundaries windows are half full, full, and rolling."""
    engine = the_engine()
    session = engine.open(num_before)
    inputs = walk(engine, num_before + 4, seed=num_before)
    play(engine, session, inputs[:num_before])
    moved = engine.install(copied(engine, session))
    assert play(engine, moved, inputs[num_before:]) == play(engine, session, inputs[num_before:])
    assert digest(engine, moved) == digest(engine, session)


@pytest.mark.parametrize("key", the_engine().spec.keys)
def test_every_key_makes_another_picture_at_once(key: str) -> None:
    engine = the_engine()
    one, two = engine.open(5), engine.open(5)
    pressed = engine.step(one, [KeyChange(number=1, key=key, down=True)])
    rested = engine.step(two, ())
    assert (pressed.frames != rested.frames).any()
    assert pressed.notes[-1].action == key


def test_an_action_is_still_seen_two_latent_frames_later_and_in_memory() -> None:
    engine = the_engine()
    one, two = engine.open(5), engine.open(5)
    engine.step(one, [KeyChange(number=1, key="up", down=True)] + 11 * [KeyChange(number=2, key="up", down=False)])
    engine.step(two, ())
    assert trace(engine.step(one, ())) != trace(engine.step(two, ()))


def test_an_unknown_key_is_refused_and_nothing_was_done() -> None:
    engine = the_engine()
    session = engine.open(5)
    before = digest(engine, session)
    with pytest.raises(UserError, match="no key 'jump'"):
        engine.step(session, [KeyChange(number=1, key="jump", down=True)])
    assert digest(engine, session) == before


def test_dead_action_caches_stay_zero_and_live_ones_do_not() -> None:
    engine = the_engine()
    session = engine.open(5)
    play(engine, session, walk(engine, 4))
    for kind in ("mouse", "keyboard"):
        *live, dead = session.caches[kind]
        assert not any(tensor.any() for tensor in dead.values())
        assert all(tensor.any() for cache in live for tensor in cache.values())


def broken(path: tuple[Any, ...], value: Any) -> Tree:
    engine = the_engine()
    tree = copied(engine, engine.open(5))
    place = tree
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    return tree


REFUSED = {
    "latents.self[1].k": (("latents", "self", 1, "k"), torch.zeros(1, 24, 2, 16)),
    "latents.self[0].v": (("latents", "self", 0, "v"), torch.zeros(1, 23, 2, 16, dtype=torch.bfloat16)),
    "latents.self[0].local_end_index": (("latents", "self", 0, "local_end_index"), 5280),
    "latents.mouse": (("latents", "mouse"), []),
    "latents.keyboard[2]": (("latents", "keyboard", 2), None),
    "latents.cross[2].is_init": (("latents", "cross", 2, "is_init"), 1),
    "latents.cross[0].extra": (("latents", "cross", 0, "extra"), 1),
    "conditioning.mouse": (("conditioning", "mouse"), torch.zeros(2, 8, dtype=torch.bfloat16).T),
    "decoder[31]": (("decoder", 31), torch.zeros(2, 32, 32, 3)),
    "frame": (("frame",), 4),
    "generator": (("generator",), 4),
    "held[1]": (("held",), ("up", "up")),
    "number": (("number",), -1),
    "pose[1]": (("pose",), (1, 0.5)),
}


@pytest.mark.parametrize("path", REFUSED)
def test_a_tree_that_does_not_fit_is_refused_by_path(path: str) -> None:
    with pytest.raises(StateRefused) as raised:
        the_engine().install(broken(*REFUSED[path]))
    assert raised.value.path == path


@pytest.mark.skipif(torch.cuda.is_available(), reason="here it could be made")
def test_without_a_cuda_device_the_full_size_is_refused_in_one_sentence() -> None:
    with pytest.raises(UserError, match="CUDA device, and torch finds none"):
        MatrixEngine(matrix_game_2())


def test_whatever_the_memory_holds_it_is_in_bounds_again_when_the_window_has_passed() -> None:
    """So nothing that is stored can grow with a session, however long it is."""
    engine = the_engine()
    session = engine.open(5)
    play(engine, session, walk(engine, 3))
    session.frame = 3_000_000
    for own in session.caches["self"] + session.caches["mouse"] + session.caches["keyboard"]:
        for name in ("k", "v"):
            own[name].fill_(1e4)
    play(engine, session, walk(engine, 6))
    assert is_finite(engine.state(session))
    assert max(float(cache[name].abs().max()) for cache in session.caches["self"] for name in ("k", "v")) < 20
    assert max(float(slot.abs().max()) for slot in session.features) < 20


def test_without_a_decoder_a_session_is_its_caches_and_goes_on_bit_for_bit() -> None:
    engine = tiny_latents()
    session = engine.open(5)
    assert session.features == []
    inputs = walk(engine, 6)
    play(engine, session, inputs[:3])
    moved = engine.install(copied(engine, session))
    assert play(engine, moved, inputs[3:]) == play(engine, session, inputs[3:])
    small = engine.size(session, "complete").allocated - engine.size(session, "latents").allocated
    assert small < 1000


def test_what_is_live_grows_as_windows_fill_and_never_counts_dead_caches() -> None:
    engine = the_engine()
    session = engine.open(5)
    live = [engine.size(session, "latents").live]
    for _ in range(3):
        engine.step(session, ())
        live.append(engine.size(session, "latents").live)
    dead = sum(
        cache[name].nbytes for kind in ("mouse", "keyboard") for cache in session.caches[kind][2:] for name in "kv"
    )
    assert live[0] < live[1] < live[2] == live[3]
    assert live[3] == engine.size(session, "latents").allocated - dead


def test_the_scopes_differ_by_what_pixels_need() -> None:
    engine = the_engine()
    session = engine.open(5)
    latents, complete = (engine.size(session, scope) for scope in ("latents", "complete"))
    assert latents.num_leaves == 15 * 3
    assert complete.num_leaves == latents.num_leaves + 32 + 4 + 10
    assert complete.resident - complete.allocated == latents.resident - latents.allocated > 0
