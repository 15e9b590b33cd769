"""A session of the matrix engine, and its state as a tree."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from worldmove.engine.base import Tree
from worldmove.engine.matrix import conditioning
from worldmove.engine.matrix.actions import KEYS, Stand
from worldmove.engine.matrix.caches import CROSS, INDICES, KINDS, Cache, Caches, cache_shape, empty_caches
from worldmove.engine.matrix.conditioning import Conditioning, draw_conditioning
from worldmove.engine.matrix.config import MatrixConfig
from worldmove.engine.matrix.decoder import Features, empty_features
from worldmove.engine.matrix.decoder_weights import slot_shapes
from worldmove.engine.matrix.likeness import Likeness, tensors_of
from worldmove.engine.tree_checks import held_of, mapping, padded, pose_of, require, sequence, whole
from worldmove.errors import StateRefused

LATENTS = "latents"
DECODER = "decoder"
FIELDS = (LATENTS, "conditioning", DECODER, "frame", "generator", "held", "number", "pose")


@dataclass(slots=True, kw_only=True)
class Session:
    """One world: what its next pictures depend on, and nothing else."""

    caches: Caches
    features: Features
    conditioning: Conditioning
    generator: torch.Generator
    frame: int
    """Index of the next latent frame."""
    stand: Stand


def new_session(config: MatrixConfig, seed: int, device: torch.device) -> Session:
    """A world nobody has seen yet."""
    generator = torch.Generator(device).manual_seed(seed)
    return Session(
        caches=empty_caches(config, device),
        features=empty_features(config, device),
        conditioning=draw_conditioning(config, generator),
        generator=generator,
        frame=0,
        stand=Stand(),
    )


def export(session: Session) -> Tree:
    """The whole state. Tensors and generator are the live ones."""
    own = session.conditioning
    return {
        LATENTS: {kind: [dict(cache) for cache in session.caches[kind]] for kind in KINDS},
        "conditioning": {"visual": own.visual, "scene": own.scene, "mouse": own.mouse, "keyboard": own.keyboard},
        DECODER: list(session.features),
        "frame": session.frame,
        "generator": session.generator,
        "held": padded(session.stand.held, KEYS),
        "number": session.stand.number,
        "pose": session.stand.pose,
    }


def adopt(config: MatrixConfig, tree: Tree, device: torch.device, likeness: Likeness | None = None) -> Session:
    """A session whose memory is the tree's. Raises StateRefused, naming the path, if it is no state of this model.

    ``likeness``: of the last state of this model on this device, so that its tensors need not be asked one by one.
    """
    fields = mapping(tree, FIELDS, "")
    held = fields[LATENTS], fields[DECODER], fields["conditioning"]
    tensors = None if likeness is None else tensors_of(config, *held)
    if tensors is not None and likeness is not None and likeness.fits(tensors):
        latents, decoder, own = held
        parts = {kind: list(map(dict, latents[kind])) for kind in KINDS}, list(decoder), Conditioning(**own)
    else:
        parts = _checked(config, *held, device)
        if tensors is not None and likeness is not None:
            likeness.learn(tensors)
    generator, frame, stand = _values(config, fields, device)
    return Session(
        caches=parts[0], features=parts[1], conditioning=parts[2], generator=generator, frame=frame, stand=stand
    )


def take_values(config: MatrixConfig, session: Session, tree: Tree, device: torch.device) -> None:
    """Let a session that was adopted of this tree have what is no tensor of it as it is now. Raises StateRefused."""
    fields = mapping(tree, FIELDS, "")
    for index, (own, given) in enumerate(zip(session.caches[CROSS], fields[LATENTS][CROSS], strict=True)):
        own["is_init"] = _flag(given["is_init"], f"{LATENTS}.{CROSS}[{index}]")
    session.generator, session.frame, session.stand = _values(config, fields, device)


def _values(
    config: MatrixConfig, fields: Mapping[str, Any], device: torch.device
) -> tuple[torch.Generator, int, Stand]:
    return (
        _generator(fields["generator"], device),
        whole(fields["frame"], "frame", step=config.frames_per_block),
        Stand(
            held=held_of(fields["held"], KEYS),
            number=whole(fields["number"], "number"),
            pose=pose_of(fields["pose"]),
        ),
    )


def _checked(
    config: MatrixConfig, latents: Any, decoder: Any, conditions: Any, device: torch.device
) -> tuple[Caches, Features, Conditioning]:
    return (
        _caches(config, latents, device),
        _features(config, decoder, device),
        _conditioning(config, conditions, device),
    )


def overwrite(session: Session, given: Session) -> None:
    """Copy a session's values into another's memory, whose tensors keep their addresses."""
    for kind, caches in session.caches.items():
        for own, other in zip(caches, given.caches[kind], strict=True):
            for name, value in other.items():
                if isinstance(value, Tensor):
                    own[name].copy_(value)
                else:
                    own[name] = value
    for slot, value in zip(session.features, given.features, strict=True):
        slot.copy_(value)
    for name in conditioning.NAMES:
        getattr(session.conditioning, name).copy_(getattr(given.conditioning, name))
    session.generator.set_state(given.generator.get_state())
    session.frame = given.frame
    session.stand = given.stand


def _caches(config: MatrixConfig, value: Any, device: torch.device) -> Caches:
    kinds = mapping(value, KINDS, LATENTS)
    return {kind: _caches_of(config, kind, kinds[kind], device) for kind in KINDS}


def _caches_of(config: MatrixConfig, kind: str, value: Any, device: torch.device) -> list[Cache]:
    path, shape = f"{LATENTS}.{kind}", cache_shape(config, kind)
    caches = sequence(value, config.num_layers, path)
    cache_of = _cross_cache if kind == CROSS else _rolling_cache
    return [cache_of(config.dtype, shape, cache, f"{path}[{index}]", device) for index, cache in enumerate(caches)]


def _rolling_cache(dtype: torch.dtype, shape: tuple[int, ...], value: Any, path: str, device: torch.device) -> Cache:
    leaves = mapping(value, ("k", "v", *INDICES), path)
    cache: Cache = {name: _tensor(leaves[name], shape, dtype, f"{path}.{name}", device) for name in ("k", "v")}
    for name in INDICES:
        cache[name] = _tensor(leaves[name], (1,), torch.int64, f"{path}.{name}", device)
    return cache


def _cross_cache(dtype: torch.dtype, shape: tuple[int, ...], value: Any, path: str, device: torch.device) -> Cache:
    leaves = mapping(value, ("k", "v", "is_init"), path)
    flag = _flag(leaves["is_init"], path)
    cache: Cache = {name: _tensor(leaves[name], shape, dtype, f"{path}.{name}", device) for name in ("k", "v")}
    cache["is_init"] = flag
    return cache


def _flag(value: Any, path: str) -> bool:
    require(type(value) is bool, f"{path}.is_init", "it must be True or False")
    flag: bool = value
    return flag


def _features(config: MatrixConfig, value: Any, device: torch.device) -> Features:
    shapes = slot_shapes(config)
    slots = sequence(value, len(shapes), DECODER)
    return [
        _tensor(slot, shape, config.decoder_dtype, f"{DECODER}[{index}]", device)
        for index, (slot, shape) in enumerate(zip(slots, shapes, strict=True))
    ]


def _conditioning(config: MatrixConfig, value: Any, device: torch.device) -> Conditioning:
    leaves, shapes = mapping(value, conditioning.NAMES, "conditioning"), conditioning.shapes(config)
    paths = {name: f"conditioning.{name}" for name in conditioning.NAMES}
    return Conditioning(
        **{name: _tensor(leaves[name], shapes[name], config.dtype, path, device) for name, path in paths.items()}
    )


def _tensor(value: Any, shape: tuple[int, ...], dtype: torch.dtype, path: str, device: torch.device) -> Tensor:
    if not isinstance(value, Tensor):
        raise StateRefused(path, "it must be a tensor")
    is_such = value.dtype == dtype and value.shape == shape and value.device == device
    if not (is_such and value.is_contiguous() and not value.requires_grad):
        raise StateRefused(path, _why_not(value, shape, dtype, device))
    return value


def _why_not(tensor: Tensor, shape: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> str:
    """Say what is wrong with a tensor: words for hundreds that are right would cost milliseconds of a move's pause."""
    if tensor.dtype != dtype or tensor.device != device:
        return f"it must be {dtype} on {device}"
    if tensor.shape != shape:
        return f"its shape is {tuple(tensor.shape)}, not {shape}"
    return "it must be contiguous, without gradient"


def _generator(value: Any, device: torch.device) -> torch.Generator:
    require(isinstance(value, torch.Generator), "generator", "it must be a torch.Generator")
    generator: torch.Generator = value
    require(generator.device == device, "generator", f"it must be on {device}")
    return generator
