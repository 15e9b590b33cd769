import random
import time
from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
import pytest
import torch

from tests.state.equality import plain
from tests.state.trees import GENERATORS
from worldmove.errors import ManifestError, StateRefused
from worldmove.state import capture
from worldmove.state.arena import Arena
from worldmove.state.generator import MAX_POOL_WORDS, load, save
from worldmove.state.landing import materialise
from worldmove.state.leaf import GeneratorRecord
from worldmove.state.manifest import MAX_GENERATORS_BYTES


def _draw(generator: Any) -> Any:
    """Draw in every way that leaves something behind: halves of words, second normals, children."""
    if isinstance(generator, torch.Generator):
        values = torch.randn(7, generator=generator, dtype=torch.float64), torch.rand(3, generator=generator)
        return [value.tolist() for value in values]
    if isinstance(generator, random.Random):
        return [generator.gauss(0, 1), generator.random(), generator.getrandbits(70)]
    if isinstance(generator, np.random.RandomState):
        return [generator.normal(size=3).tolist(), generator.randint(0, 9, 5).tolist()]
    half = generator.integers(0, 100, size=3, dtype=np.uint32).tolist()
    return [half, generator.normal(size=3).tolist(), generator.spawn(1)[0].random()]


@pytest.mark.parametrize("make", GENERATORS)
@pytest.mark.parametrize("seed", range(5))
def test_a_restored_generator_draws_what_the_first_would_have(make: Callable[[int], Any], seed: int) -> None:
    generator = make(seed)
    restored = load(save("g", generator))
    assert type(restored) is type(generator)
    assert plain(restored) == plain(generator)
    assert [_draw(restored), _draw(restored)] == [_draw(generator), _draw(generator)]
    assert save("g", restored) == save("g", generator)


@pytest.mark.parametrize("make", GENERATORS)
def test_reading_a_generator_draws_nothing(make: Callable[[int], Any]) -> None:
    read, unread = make(3), make(3)
    save("g", read)
    assert _draw(read) == _draw(unread)


def test_a_seed_of_many_words_and_a_spawned_generator_are_restored() -> None:
    for generator in (np.random.default_rng([1, 2, 2**40]), np.random.default_rng(5).spawn(3)[2]):
        assert _draw(load(save("g", generator))) == _draw(generator)


@pytest.mark.parametrize("dtype", ["|i1", "|u1", "<u2", ">u2", "<i4", ">u4", "<u4", "<i8", ">i8", "<u8"])
def test_a_seed_that_was_an_array_comes_back_with_its_dtype(dtype: str) -> None:
    generator = np.random.default_rng(np.array([1, 2, 3], dtype=dtype))
    restored = load(save("g", generator))
    assert restored.bit_generator.seed_seq.entropy.dtype.str == dtype
    assert _draw(restored) == _draw(generator)


def test_one_generator_at_two_paths_is_made_again_as_one() -> None:
    generator = np.random.default_rng(1)
    state = capture({"a": generator, "b": [generator], "c": np.random.default_rng(1)})
    assert len(state.manifest.generators) == 2
    tree = materialise(state.manifest, (), Arena(1, "none"))
    assert tree["a"] is tree["b"][0]
    assert tree["a"] is not tree["c"]


def test_generators_over_one_bit_generator_are_refused_by_path() -> None:
    bits = np.random.PCG64(1)
    with pytest.raises(StateRefused, match="PCG64 with a") as refused:
        capture({"a": np.random.Generator(bits), "b": np.random.Generator(bits)})
    assert refused.value.path == "b"
    twister = np.random.MT19937(1)
    with pytest.raises(StateRefused, match="MT19937 with a"):
        capture({"a": np.random.RandomState(twister), "b": np.random.Generator(twister)})
    seed = np.random.SeedSequence(1)
    with pytest.raises(StateRefused, match="SeedSequence with a"):
        capture({"a": np.random.Generator(np.random.PCG64(seed)), "b": np.random.Generator(np.random.SFC64(seed))})


def test_a_seed_sequence_of_another_type_is_refused_by_path() -> None:
    class Seeds(np.random.bit_generator.ISeedSequence):
        def generate_state(self, n_words: int, dtype: Any = np.uint32) -> Any:
            return np.ones(n_words, dtype=dtype)

    seeds: Any = Seeds()
    with pytest.raises(StateRefused, match="seed sequence is a Seeds") as refused:
        capture({"rng": np.random.Generator(np.random.PCG64(seeds))})
    assert refused.value.path == "rng"


def test_a_seed_sequence_that_the_process_too_spawns_from_is_refused() -> None:
    seed = np.random.SeedSequence(1)
    before = np.random.mtrand.get_bit_generator()
    np.random.mtrand.set_bit_generator(np.random.MT19937(seed))
    try:
        with pytest.raises(StateRefused, match="process's own"):
            capture({"rng": np.random.Generator(np.random.PCG64(seed))})
    finally:
        np.random.mtrand.set_bit_generator(before)
    assert len(capture({"rng": np.random.Generator(np.random.PCG64(seed))}).manifest.generators) == 1


def test_two_legacy_generators_share_nothing() -> None:
    state = capture({"a": np.random.RandomState(1), "b": np.random.RandomState(1)})
    assert len(state.manifest.generators) == 2


class OwnRandom(random.Random):
    pass


def _with_attribute(name: str, value: object) -> random.Random:
    generator = random.Random(1)
    setattr(generator, name, value)
    return generator


def _with_another_pool() -> np.random.Generator:
    generator = np.random.default_rng(1)
    generator.bit_generator.seed_seq.pool[0] ^= 1  # type: ignore[attr-defined]
    return generator


@pytest.mark.parametrize(
    "make",
    [
        lambda: _with_attribute("note", 3),
        lambda: _with_attribute("random", lambda: 0.5),
        lambda: _with_attribute("gauss_next", 1),
        lambda: random.Random.__new__(random.Random),
        lambda: np.random.Generator.__new__(np.random.Generator),
        lambda: np.random.RandomState.__new__(np.random.RandomState),
        lambda: np.random.Generator(np.random.mtrand._rand._bit_generator),
        lambda: np.random.RandomState(np.random.mtrand._rand._bit_generator),
        lambda: np.random.default_rng(list(range(30_000))),
        lambda: np.random.default_rng(range(3)),
        lambda: np.random.default_rng(np.int64(3)),
        lambda: np.random.default_rng(np.array([[1, 2], [3, 4]])),
        lambda: np.random.default_rng(np.array([1, 2], dtype=np.longlong)),
        lambda: np.random.default_rng(np.array([1, 2**70], dtype=object)),
        _with_another_pool,
    ],
)
def test_a_generator_that_would_not_be_made_again_the_same_is_refused_by_path(make: Callable[[], Any]) -> None:
    with pytest.raises(StateRefused) as refused:
        capture({"fine": 1, "rng": make()})
    assert refused.value.path == "rng"


@pytest.mark.parametrize(
    "generator",
    [
        torch.default_generator,
        random.random.__self__,  # type: ignore[attr-defined]
        np.random.mtrand._rand,
        random.SystemRandom(),
        OwnRandom(),
        np.random.PCG64(1),
        np.random.SeedSequence(1),
    ],
)
def test_a_generator_that_is_not_the_sessions_own_is_refused_by_path(generator: Any) -> None:
    with pytest.raises(StateRefused) as refused:
        capture({"rng": generator})
    assert refused.value.path == "rng"


def test_other_bit_generators_are_refused() -> None:
    class Mine(np.random.PCG64):
        pass

    with pytest.raises(StateRefused, match="Mine"):
        save("g", np.random.Generator(Mine(1)))


def _changed(make: Callable[[int], Any], change: Callable[[Any], None]) -> GeneratorRecord:
    record = save("g", make(1))
    parts = msgspec.msgpack.decode(record.state)
    change(parts)
    return GeneratorRecord(record.kind, msgspec.msgpack.encode(parts))


def _set(parts: Any, name: str, value: Any) -> None:
    for key, item in parts[1]:
        if key == name:
            item[:] = value
        elif item[0] == "dict":
            _set(item, name, value)


LEGACY, PHILOX, PCG = GENERATORS[2], GENERATORS[6], GENERATORS[3]


@pytest.mark.parametrize(
    "record",
    [
        GeneratorRecord("cuda", b""),
        GeneratorRecord("torch", b""),
        GeneratorRecord("torch", b"\0" * 5056),
        GeneratorRecord("torch", b"\0" * (1 << 17)),
        GeneratorRecord("random", b"\0" * 2499),
        GeneratorRecord("random", b"\xff" * 2500),
        GeneratorRecord("random", save("g", random.Random(1)).state + b"\0"),
        GeneratorRecord("numpy", b""),
        GeneratorRecord("numpy", b"\x93\xc0\xc0\xc0"),
        GeneratorRecord("numpy", save("g", np.random.default_rng(1)).state + b"\0"),
        _changed(PHILOX, lambda parts: _set(parts[0], "buffer_pos", ["int", b"\x70"])),
        _changed(PHILOX, lambda parts: _set(parts[0], "buffer_pos", ["int", b"\xff"])),
        _changed(LEGACY, lambda parts: _set(parts, "pos", ["int", b"\xff"])),
        _changed(LEGACY, lambda parts: _set(parts, "pos", ["int", b"\x00\x70"])),
        _changed(LEGACY, lambda parts: _set(parts, "bit_generator", ["str", "PCG65"])),
        _changed(LEGACY, lambda parts: _set(parts, "key", ["array", "<u4", b"\0" * 4])),
        _changed(LEGACY, lambda parts: _set(parts, "key", ["array", ">u4", b"\0" * 2496])),
        _changed(LEGACY, lambda parts: _set(parts, "key", ["array", "|O", b"\0" * 4992])),
        _changed(PCG, lambda parts: _set(parts[0], "bit_generator", ["str", "SFC64"])),
        _changed(PCG, lambda parts: _set(parts[0], "uinteger", ["int", b"\1" * 9])),
        _changed(PCG, lambda parts: parts.__setitem__(2, -1)),
        _changed(PCG, lambda parts: parts[1].__setitem__(2, 1 << 14)),
        _changed(PCG, lambda parts: parts[1].__setitem__(2, MAX_POOL_WORDS + 1)),
        _changed(PCG, lambda parts: parts[1].__setitem__(0, ["int", b"\1" * 60_000])),
        _changed(PCG, lambda parts: parts[1].__setitem__(1, ["tuple", [["int", b"\1"]] * 7_000])),
    ],
)
def test_a_record_that_no_generator_wrote_is_refused(record: GeneratorRecord) -> None:
    began = time.thread_time()
    with pytest.raises(ManifestError):
        load(record)
    assert time.thread_time() - began < 0.1  # whoever wrote it, no other session waits for it


def test_a_seed_sequence_for_which_numpy_takes_long_is_refused_where_its_session_can_go_on() -> None:
    assert save("g", np.random.Generator(np.random.PCG64(np.random.SeedSequence(1, pool_size=MAX_POOL_WORDS))))
    for seed in (np.random.SeedSequence(1, pool_size=MAX_POOL_WORDS + 1), np.random.SeedSequence([7] * 2_000)):
        with pytest.raises(StateRefused, match="a seed sequence of"):
            save("g", np.random.Generator(np.random.PCG64(seed)))


def test_more_generators_than_can_be_made_anew_in_a_moment_are_refused() -> None:
    generators = [torch.Generator() for _ in range(MAX_GENERATORS_BYTES // 5056)]
    assert len(capture(generators).manifest.generators) == len(generators)
    with pytest.raises(StateRefused, match="its generators have"):
        capture([*generators, torch.Generator()])
