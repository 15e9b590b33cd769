"""Generators of random numbers: their whole state, to and from canonical bytes.

Carried: ``torch.Generator`` (CPU, or the session's device), ``numpy.random.Generator`` and ``RandomState`` over
numpy's own bit generators, ``random.Random``. A process's own generator is refused: every session of the process
draws from it.
"""

import random
import struct
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import numpy as np
import torch

from worldmove.errors import ManifestError, StateRefused
from worldmove.state.leaf import DEVICE_KIND, GeneratorRecord
from worldmove.state.memory import MemoryKit
from worldmove.state.numpy_state import from_plain, plain

MAX_GENERATOR_BYTES = 1 << 16
MAX_POOL_WORDS = 64
MAX_SEED_BYTES = 1 << 12
"""Of what a seed sequence is made of. numpy's time for it, and for its pool, grows with their square, and no other
thread runs meanwhile: a pool of 2^20 words would stop every session of its process for an hour."""

BIT_GENERATORS: Mapping[str, type[np.random.BitGenerator]] = {
    kind.__name__: kind
    for kind in (
        np.random.PCG64,
        np.random.PCG64DXSM,
        np.random.MT19937,
        np.random.Philox,
        np.random.SFC64,
    )
}
# numpy reads its buffers at these positions without looking whether they lie inside.
_LAST_POSITION = {"pos": 624, "buffer_pos": 4}

_RANDOM_WORDS = 625

# Where random.Random keeps its second normal; no other carried generator has attributes.
_ATTRIBUTES = frozenset({"gauss_next"})

_PROCESS_OWN = "it is, or draws from, the process's own generator, from which other sessions draw too"

_UNREADABLE = (AttributeError, KeyError, TypeError, ValueError, OverflowError, RecursionError, struct.error)
# What the libraries raise when they are given the state of no generator.
_FAULTS = (
    *(LookupError, TypeError, ValueError, OverflowError, RuntimeError),
    *(struct.error, msgspec.MsgspecError, RecursionError),
)


def is_generator(value: object) -> bool:
    """Say whether a leaf is one of the carried generators (subclasses are not)."""
    return type(value) in _SAVE


def save(path: str, generator: object, kit: MemoryKit | None = None) -> GeneratorRecord:
    """Return the generator's record. Raises StateRefused where ``load`` could not make the same one of it."""
    if any(generator is own for own in _process_generators()):
        raise StateRefused(path, _PROCESS_OWN)
    strange = vars(generator).keys() - _ATTRIBUTES if hasattr(generator, "__dict__") else ()
    if strange:
        raise StateRefused(path, f"it has attributes of its own, which would be dropped: {', '.join(sorted(strange))}")
    try:
        record = _record(generator, kit)
    except _UNREADABLE as error:
        raise StateRefused(path, f"this generator's state cannot be read whole ({error})") from error
    if any(part is own for part in shared_parts(generator) for own in shared_parts(np.random.mtrand._rand)):
        raise StateRefused(path, _PROCESS_OWN)
    _check_made_again(path, generator, record, kit)
    return record


def load(record: GeneratorRecord, kit: MemoryKit | None = None) -> Any:
    """Return a new generator in the recorded state. Raises ManifestError where the record is none of ours."""
    if (record.kind not in _LOAD and (record.kind != DEVICE_KIND or kit is None)) or len(
        record.state
    ) > MAX_GENERATOR_BYTES:
        raise ManifestError(f"there is no generator of kind {record.kind[:40]!r} with {len(record.state)} bytes")
    try:
        generator = _loaded(record, kit)
        again = _record(generator, kit)
    except _FAULTS as error:
        raise ManifestError(f"this is no state of a {record.kind} generator") from error
    if again != record:
        raise ManifestError(f"this state of a {record.kind} generator is not canonical")
    return generator


def shared_parts(generator: object) -> tuple[object, ...]:
    """Return the objects inside a generator through which another could disturb it."""
    if isinstance(generator, np.random.Generator):
        return generator.bit_generator, generator.bit_generator.seed_seq
    if isinstance(generator, np.random.RandomState):
        bits = generator._bit_generator
        # One that was seeded in the old way has no seed sequence.
        return (bits,) if bits.seed_seq is None else (bits, bits.seed_seq)
    return ()


def _loaded(record: GeneratorRecord, kit: MemoryKit | None) -> Any:
    if record.kind == DEVICE_KIND and kit is not None:
        return kit.load_generator(record.state)
    return _LOAD[record.kind](record.state)


def _record(generator: object, kit: MemoryKit | None) -> GeneratorRecord:
    if kit is not None and isinstance(generator, torch.Generator) and kit.holds(generator):
        return GeneratorRecord(DEVICE_KIND, kit.save_generator(generator))
    kind, write = _SAVE[type(generator)]
    return GeneratorRecord(kind, write(generator))


def _check_made_again(path: str, generator: object, record: GeneratorRecord, kit: MemoryKit | None) -> None:
    """Raise StateRefused here, where the session can go on, rather than at the other end of a move."""
    try:
        made = load(record, kit)
    except ManifestError as error:
        raise StateRefused(path, f"this generator could not be made again: {error}") from error
    if _pool(made) != _pool(generator):
        raise StateRefused(path, "the pool of its seed sequence was written to")


def _pool(generator: object) -> bytes:
    """Return what a seed sequence draws from; it follows from its entropy, but can be written to."""
    return _seed_sequence(generator).pool.tobytes() if isinstance(generator, np.random.Generator) else b""


def _save_torch(generator: torch.Generator) -> bytes:
    if generator.device.type != "cpu":
        raise ValueError(f"it lies on {generator.device}")
    return generator.get_state().numpy().tobytes()


def _load_torch(state: bytes) -> torch.Generator:
    generator = torch.Generator(device="cpu")
    generator.set_state(torch.frombuffer(bytearray(state), dtype=torch.uint8))
    return generator


def _save_random(generator: random.Random) -> bytes:
    version, words, gauss = generator.getstate()
    if version != 3 or type(gauss) not in (float, type(None)):
        raise ValueError(f"version {version}, second normal {gauss!r}")
    tail = b"" if gauss is None else struct.pack("<d", gauss)
    return struct.pack(f"<{_RANDOM_WORDS}I", *words) + tail


def _load_random(state: bytes) -> random.Random:
    size = 4 * _RANDOM_WORDS
    gauss = struct.unpack("<d", state[size:])[0] if len(state) > size else None
    # A seed of our own, because without one it asks the system for 2,500 random bytes.
    generator = random.Random(0)
    generator.setstate((3, struct.unpack(f"<{_RANDOM_WORDS}I", state[:size]), gauss))
    return generator


def _save_numpy(generator: np.random.Generator) -> bytes:
    bits, seed = _bit_generator(generator.bit_generator), _seed_sequence(generator)
    seeds = _small([plain(seed.entropy), plain(seed.spawn_key), seed.pool_size])
    return msgspec.msgpack.encode([plain(bits.state), seeds, seed.n_children_spawned])


def _load_numpy(state: bytes) -> np.random.Generator:
    bits, seeds, children = msgspec.msgpack.decode(state)
    entropy, spawn_key, pool_size = _small(seeds)
    seed = np.random.SeedSequence(
        entropy=from_plain(entropy), spawn_key=from_plain(spawn_key), pool_size=pool_size, n_children_spawned=children
    )
    values = _bit_state(bits)
    generator = BIT_GENERATORS[values["bit_generator"]](seed)
    generator.state = values
    return np.random.Generator(generator)


def _save_random_state(generator: np.random.RandomState) -> bytes:
    _bit_generator(generator._bit_generator)
    return msgspec.msgpack.encode(plain(generator.get_state(legacy=False)))


def _small(seeds: list[Any]) -> list[Any]:
    """Return entropy, spawn key and size of a seed sequence. Raises ValueError where numpy would take long for them."""
    num_bytes, words = len(msgspec.msgpack.encode(seeds)), seeds[2]
    if num_bytes > MAX_SEED_BYTES or words > MAX_POOL_WORDS:
        raise ValueError(f"a seed sequence of {num_bytes:,} bytes with a pool of {words:,} words")
    return seeds


def _load_random_state(state: bytes) -> np.random.RandomState:
    values = _bit_state(msgspec.msgpack.decode(state))
    generator = np.random.RandomState(BIT_GENERATORS[values["bit_generator"]](0))
    generator.set_state(values)
    return generator


def _bit_generator(bits: np.random.BitGenerator) -> np.random.BitGenerator:
    if type(bits) not in BIT_GENERATORS.values():
        raise TypeError(f"its bit generator is a {type(bits).__name__}")
    return bits


def _bit_state(lists: Any) -> dict[str, Any]:
    values: dict[str, Any] = from_plain(lists)
    for name, last in _LAST_POSITION.items():
        for holder in (values, values["state"]):
            if name in holder and not 0 <= holder[name] <= last:
                raise ValueError(f"{name} is {holder[name]}")
    return values


def _seed_sequence(generator: np.random.Generator) -> np.random.SeedSequence:
    seed = generator.bit_generator.seed_seq
    if type(seed) is not np.random.SeedSequence:
        raise TypeError(f"its seed sequence is a {type(seed).__name__}")
    return seed


_SAVE: Mapping[type, tuple[str, Callable[[Any], bytes]]] = {
    torch.Generator: ("torch", _save_torch),
    random.Random: ("random", _save_random),
    np.random.Generator: ("numpy", _save_numpy),
    np.random.RandomState: ("numpy-legacy", _save_random_state),
}
_LOAD: Mapping[str, Callable[[bytes], Any]] = {
    "torch": _load_torch,
    "random": _load_random,
    "numpy": _load_numpy,
    "numpy-legacy": _load_random_state,
}


def _process_generators() -> tuple[object, ...]:
    own = torch.default_generator, np.random.mtrand._rand, getattr(random.random, "__self__", None)
    return own + tuple(torch.cuda.default_generators)
