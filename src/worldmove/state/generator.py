"""Generators of random numbers: their whole state, to and from canonical bytes.

Carried: ``torch.Generator`` (CPU), ``numpy.random.Generator`` and ``RandomState`` over numpy's own bit
generators, ``random.Random``. A process's own generator is refused: every session of the process draws from it.
"""

import random
import struct
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import numpy as np
import torch

from worldmove.errors import ManifestError, StateRefused
from worldmove.state.leaf import GeneratorRecord

MAX_GENERATOR_BYTES = 1 << 16

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

# What the libraries raise when they are given the state of no generator.
_FAULTS = (
    *(LookupError, TypeError, ValueError, OverflowError, RuntimeError),
    *(struct.error, msgspec.MsgspecError, RecursionError),
)


def is_generator(value: object) -> bool:
    """Say whether a leaf is one of the carried generators (subclasses are not)."""
    return type(value) in _SAVE


def save(path: str, generator: object) -> GeneratorRecord:
    """Return the generator's record. Raises StateRefused where its state cannot be read whole."""
    if generator is torch.default_generator or generator is _numpy_global() or generator is _random_global():
        raise StateRefused(path, "it is the process's own generator, from which other sessions draw too")
    kind, write = _SAVE[type(generator)]
    try:
        return GeneratorRecord(kind, write(generator))
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise StateRefused(path, f"this generator's state cannot be read whole ({error})") from error


def load(record: GeneratorRecord) -> Any:
    """Return a new generator in the recorded state. Raises ManifestError where the record is none of ours."""
    if record.kind not in _LOAD or len(record.state) > MAX_GENERATOR_BYTES:
        raise ManifestError(f"there is no generator of kind {record.kind[:40]!r} with {len(record.state)} bytes")
    try:
        generator = _LOAD[record.kind](record.state)
    except _FAULTS as error:
        raise ManifestError(f"this is no state of a {record.kind} generator") from error
    if save("", generator) != record:
        raise ManifestError(f"this state of a {record.kind} generator is not canonical")
    return generator


def shared_parts(generator: object) -> tuple[object, ...]:
    """Return the objects inside a generator through which another could disturb it."""
    if isinstance(generator, np.random.Generator):
        return generator.bit_generator, _seed_sequence(generator)
    if isinstance(generator, np.random.RandomState):
        return (generator._bit_generator,)
    return ()


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
    if version != 3:
        raise ValueError(f"version {version}")
    tail = b"" if gauss is None else struct.pack("<d", gauss)
    return struct.pack(f"<{_RANDOM_WORDS}I", *words) + tail


def _load_random(state: bytes) -> random.Random:
    size = 4 * _RANDOM_WORDS
    gauss = struct.unpack("<d", state[size:])[0] if len(state) > size else None
    generator = random.Random()
    generator.setstate((3, struct.unpack(f"<{_RANDOM_WORDS}I", state[:size]), gauss))
    return generator


def _save_numpy(generator: np.random.Generator) -> bytes:
    bits, seed = _bit_generator(generator.bit_generator), _seed_sequence(generator)
    parts = [_plain(bits.state), [_plain(seed.entropy), _plain(seed.spawn_key), seed.pool_size]]
    return msgspec.msgpack.encode([*parts, seed.n_children_spawned])


def _load_numpy(state: bytes) -> np.random.Generator:
    bits, (entropy, spawn_key, pool_size), children = msgspec.msgpack.decode(state)
    seed = np.random.SeedSequence(
        entropy=_value(entropy), spawn_key=_value(spawn_key), pool_size=pool_size, n_children_spawned=children
    )
    values = _bit_state(bits)
    generator = BIT_GENERATORS[values["bit_generator"]](seed)
    generator.state = values
    return np.random.Generator(generator)


def _save_random_state(generator: np.random.RandomState) -> bytes:
    _bit_generator(generator._bit_generator)
    return msgspec.msgpack.encode(_plain(generator.get_state(legacy=False)))


def _load_random_state(state: bytes) -> np.random.RandomState:
    values = _bit_state(msgspec.msgpack.decode(state))
    generator = np.random.RandomState(BIT_GENERATORS[values["bit_generator"]](0))
    generator.set_state(values)
    return generator


def _bit_generator(bits: np.random.BitGenerator) -> np.random.BitGenerator:
    if type(bits) not in BIT_GENERATORS.values():
        raise TypeError(f"its bit generator is a {type(bits).__name__}")
    return bits


def _bit_state(plain: Any) -> dict[str, Any]:
    values: dict[str, Any] = _value(plain)
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


def _plain(value: Any) -> Any:
    """Turn numpy's dictionaries into lists that have one encoding: integers as bytes, for they exceed 64 bits."""
    if type(value) is dict:
        return ["dict", [[key, _plain(item)] for key, item in sorted(value.items())]]
    if type(value) in (tuple, list):
        return [type(value).__name__, [_plain(item) for item in value]]
    if type(value) is np.ndarray:
        return ["array", value.dtype.str, value.tobytes()]
    if type(value) is int:
        return ["int", value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)]
    if type(value) is float:
        return ["float", struct.pack("<d", value)]
    if type(value) is str:
        return ["str", value]
    raise TypeError(f"it holds a {type(value).__name__}")


def _value(plain: Any) -> Any:
    kind, *rest = plain
    return _VALUE[kind](*rest)


_VALUE: dict[str, Callable[..., Any]] = {
    "dict": lambda items: {key: _value(item) for key, item in items},
    "tuple": lambda items: tuple(_value(item) for item in items),
    "list": lambda items: [_value(item) for item in items],
    "array": lambda dtype, data: np.frombuffer(data, dtype={"<u4": "<u4", "<u8": "<u8"}[dtype]).copy(),
    "int": lambda data: int.from_bytes(data, "little", signed=True),
    "float": lambda data: struct.unpack("<d", data)[0],
    "str": str,
}

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


def _numpy_global() -> object:
    return np.random.mtrand._rand


def _random_global() -> object:
    return getattr(random.random, "__self__", None)
