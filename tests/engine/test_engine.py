"""The reference engine keeps the contract, gives away all of its state, and says what is wrong with a tree."""

import hashlib
import re
import subprocess
import sys
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch

from tests.engine.contract import EngineContract, copied, digest, play, trace, walk
from tests.own_path import ROOT, own_path
from worldmove.engine.base import Engine, KeyChange, Recovers, Tree
from worldmove.engine.reference.actions import MAX_WAITING
from worldmove.engine.reference.engine import ReferenceEngine
from worldmove.engine.reference.presets import tiny
from worldmove.engine.reference.session import Session
from worldmove.engine.reference.weights import RandomWeights
from worldmove.errors import StateRefused
from worldmove.state.tree import flatten, rebuild


class TestReferenceEngine(EngineContract):
    def make_engine(self) -> Engine[Any]:
        return ReferenceEngine(tiny())


@cache
def the_engine() -> ReferenceEngine:
    return ReferenceEngine(tiny())


def scenario() -> Session:
    """A world whose windows have rolled, generator mid-use, a key held and changes waiting."""
    engine = the_engine()
    session = engine.open(3)
    play(engine, session, walk(engine, 7, seed=2))
    crowd = [(90, "down", False), (91, "right", False), (92, "left", False), (93, "up", False), (94, "flag", False)]
    engine.step(session, [KeyChange(number=n, key=key, down=down) for n, key, down in crowd])
    presses = ["down", "right", "left", "up"]
    engine.step(session, [KeyChange(number=100 + n, key=key, down=True) for n, key in enumerate(presses)])
    return session


def paths() -> list[str]:
    engine = the_engine()
    return flatten(engine.state(scenario()), engine.state_types).paths


def blank(value: Any) -> Any:
    """What a place holds to which nothing was moved."""
    match value:
        case torch.Tensor():
            return torch.zeros_like(value)
        case torch.Generator():
            return torch.Generator().manual_seed(0)
        case bool():
            return not value
        case int():
            return 0
        case str():
            return "flag"
    raise AssertionError(value)


def test_the_scenario_is_as_full_as_it_says() -> None:
    session, config = scenario(), tiny().config
    assert session.filled == [config.cache_rows(index) for index in range(config.num_layers)]
    assert session.frame > max(layer.window for layer in config.layers)
    assert all(session.pose)
    assert session.controls.held
    assert session.controls.waiting


def lacking(path: str, session: Session) -> Tree:
    """A session's state with one leaf left behind."""
    engine = the_engine()
    flat = flatten(copied(engine, session), engine.state_types)
    index = flat.paths.index(path)
    flat.values[index] = blank(flat.values[index])
    return rebuild(flat.structure, iter(flat.values), engine.state_types)


CAUGHT_BY = {
    **dict.fromkeys(("caches[0].k", "caches[0].v", "caches[1].k", "caches[1].v"), ("frames", "state")),
    **dict.fromkeys(("filled[0]", "filled[1]", "generator"), ("frames", "state")),
    "frame": ("index", "frames", "state"),
    **dict.fromkeys(("pose[0]", "pose[1]"), ("frames", "notes", "state")),
    **dict.fromkeys(("held[0]", "held[1]"), ("state",)),
    "number": ("notes", "state"),  # once no change waits: the next one used would set it anew
    "waiting[0].number": ("notes",),
    "waiting[1].number": ("notes", "state"),
    **dict.fromkeys(("waiting[0].key", "waiting[1].key"), ("frames", "notes", "state")),
    **dict.fromkeys(("waiting[0].down", "waiting[1].down"), ("frames", "notes", "state")),
}
"""By what each leaf is missed in the three blocks after it was left behind."""


def differences(one: Session, two: Session) -> tuple[str, ...]:
    """In what two worlds differ over the next three blocks; nothing for equal ones."""
    engine = the_engine()
    pairs = list(zip(*(play(engine, session, [[]] * 3) for session in (one, two)), strict=True))
    seen = {name: [(a[at], b[at]) for a, b in pairs] for at, name in enumerate(("index", "frames", "notes"))}
    seen["state"] = [(digest(engine, one), digest(engine, two))]
    return tuple(name for name, values in seen.items() if any(a != b for a, b in values))


def test_the_table_has_every_leaf_of_the_scenario() -> None:
    assert sorted(CAUGHT_BY) == sorted(paths())


@pytest.mark.parametrize(("path", "caught_by"), CAUGHT_BY.items())
def test_a_world_without_this_leaf_is_another_world_by_these_signs(path: str, caught_by: tuple[str, ...]) -> None:
    session = scenario()
    if path == "number":
        play(the_engine(), session, [[]] * 2)
        assert not session.controls.waiting
    assert differences(the_engine().install(lacking(path, session)), session) == caught_by


def test_a_world_that_lacks_nothing_is_the_same_world() -> None:
    session = scenario()
    assert differences(the_engine().install(copied(the_engine(), session)), session) == ()


@pytest.mark.parametrize("name", sorted(the_engine().state(the_engine().open(0))))
def test_a_state_without_this_part_is_refused_by_name(name: str) -> None:
    engine = the_engine()
    tree = copied(engine, scenario())
    del tree[name]
    with pytest.raises(StateRefused, match="missing") as refused:
        engine.install(tree)
    assert refused.value.path == name


def broken(path: str, value: Any) -> Tree:
    """The scenario's state with one place overwritten."""
    tree = copied(the_engine(), scenario())
    *parents, last = [int(part) if part.isdigit() else part for part in re.findall(r"\w+", path)]
    place = tree
    for part in parents:
        place = place[part]
    place[last] = value
    return tree


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("more", 1),
        ("caches[0].q", torch.zeros(1)),
        ("caches[0].k", torch.zeros(1, 36, 2, 15)),
        ("caches[1].v", torch.zeros(1, 72, 1, 16, dtype=torch.float64)),
        ("caches[0].v", torch.zeros(1, 2, 36, 16).transpose(1, 2)),
        ("caches[0].v", "rows"),
        ("filled[0]", 37),
        ("filled[1]", -18),
        ("filled[1]", 17),
        ("filled[1]", True),
        ("frame", 3),
        ("frame", 2.0),
        ("number", -1),
        ("pose", (1,)),
        ("pose", (1, 2.0)),
        ("generator", torch.zeros(3)),
        ("held", ("jump",)),
        ("held", ("up", "up")),
        ("waiting", ("up",)),
        ("waiting", (KeyChange(number=1, key="jump", down=True),)),
        ("waiting", (KeyChange(number=1, key="flag", down=True),) * (MAX_WAITING + 1)),
    ],
)
def test_a_part_that_is_not_this_engines_is_refused_by_path(path: str, value: Any) -> None:
    with pytest.raises(StateRefused) as refused:
        the_engine().install(broken(path, value))
    assert refused.value.path.startswith(path)


def test_a_refused_state_changes_nothing_in_place() -> None:
    engine, slot = the_engine(), scenario()
    before = digest(engine, slot)
    with pytest.raises(StateRefused):
        engine.install(broken("filled[1]", 17), into=slot)
    assert digest(engine, slot) == before


PROGRAM = """
from tests.engine.contract import digest, play, walk
from worldmove.engine.reference.engine import ReferenceEngine
from worldmove.engine.reference.presets import tiny
import hashlib, sys
engine = ReferenceEngine(tiny())
session = engine.open(11)
shown = play(engine, session, walk(engine, 12))
print(hashlib.sha256(repr(shown).encode()).hexdigest(), digest(engine, session))
print({"sympy", "torch._dynamo"} & sys.modules.keys() or "no compiler")
"""


def test_two_processes_make_equal_bytes_and_import_no_compiler() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM], cwd=ROOT, env={"PYTHONPATH": own_path()}, stdout=subprocess.PIPE, text=True
    ) as process:
        engine = ReferenceEngine(tiny())
        session = engine.open(11)
        shown = play(engine, session, walk(engine, 12))
        here = f"{hashlib.sha256(repr(shown).encode()).hexdigest()} {digest(engine, session)}"
        there = process.communicate(timeout=100)[0].splitlines()
    assert there == [here, "no compiler"]  # torch's own takes seconds to import


def test_a_thread_of_its_own_makes_equal_bytes() -> None:
    from concurrent.futures import ThreadPoolExecutor

    engine = the_engine()
    with ThreadPoolExecutor(1) as pool:
        there = pool.submit(play, engine, engine.open(1), walk(engine, 4)).result()
    assert there == play(engine, engine.open(1), walk(engine, 4))


def test_a_world_far_from_its_beginning_goes_on() -> None:
    engine = the_engine()
    tree = copied(engine, scenario())
    tree["frame"], tree["pose"] = 10**9, (10**6, -(10**6))
    session = engine.install(tree)
    block = engine.step(session, ())
    assert block.index == 10**9 // 2
    assert all(rows.isfinite().all() for cache in tree["caches"] for rows in cache.values())


def test_recovering_shows_the_picture_and_knows_nothing_else() -> None:
    engine = the_engine()
    recovering: Recovers[Session] = engine
    lived = scenario()
    picture = engine.step(lived, ()).frames[-1]
    recovered = recovering.recover(picture, seed=4)
    again = recovering.recover(picture, seed=4)
    assert recovered.frame == engine.spec.frames_per_block
    assert recovered.pose == (0, 0)
    assert digest(engine, recovered) == digest(engine, again)
    assert digest(engine, recovered) != digest(engine, recovering.recover(255 - picture, seed=4))
    engine.step(recovered, ())
    assert trace(engine.step(recovered, ())) != trace(engine.step(lived, ()))


def test_a_picture_of_another_size_is_refused() -> None:
    with pytest.raises(StateRefused, match="size"):
        the_engine().recover(np.zeros((3, 3, 3), dtype=np.uint8), seed=0)


def test_other_weights_have_another_name() -> None:
    names = {ReferenceEngine(tiny(), weights=RandomWeights(seed=seed)).spec.weights_sha256 for seed in (0, 1)}
    assert len(names) == 2
