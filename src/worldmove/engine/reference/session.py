"""A session of the reference engine, and its state as a tree."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from worldmove.engine.base import KeyChange, Tree
from worldmove.engine.reference.actions import KEYS, MAX_WAITING, Controls
from worldmove.engine.reference.caches import Cache, cache_shape, empty_caches
from worldmove.engine.reference.config import ReferenceConfig
from worldmove.engine.tree_checks import held_of, mapping, pose_of, require, sequence, whole

FIELDS = ("caches", "filled", "frame", "generator", "held", "number", "pose", "waiting")


@dataclass(slots=True, kw_only=True)
class Session:
    """One world. It has no map: what it remembers of the country is in ``caches`` and nowhere else."""

    caches: list[Cache]
    filled: list[int]
    """Rows in use of each layer's caches."""
    frame: int
    """Index of the next frame."""
    pose: tuple[int, int]
    generator: torch.Generator
    controls: Controls


def new_session(config: ReferenceConfig, seed: int) -> Session:
    """A world nobody has seen yet."""
    return Session(
        caches=empty_caches(config),
        filled=[0] * config.num_layers,
        frame=0,
        pose=(0, 0),
        generator=torch.Generator().manual_seed(seed),
        controls=Controls(),
    )


def export(session: Session) -> Tree:
    """The whole state. Tensors and generator are the live ones."""
    return {
        "caches": [dict(cache) for cache in session.caches],
        "filled": list(session.filled),
        "frame": session.frame,
        "generator": session.generator,
        "held": session.controls.held,
        "number": session.controls.number,
        "pose": session.pose,
        "waiting": session.controls.waiting,
    }


def adopt(config: ReferenceConfig, tree: Tree) -> Session:
    """A session whose memory is the tree's. Raises StateRefused, naming the path, if it is no state of this model."""
    fields = mapping(tree, FIELDS, "")
    return Session(
        caches=caches_of(config, fields["caches"]),
        filled=filled_of(config, fields["filled"]),
        frame=whole(fields["frame"], "frame", step=config.frames_per_block),
        pose=pose_of(fields["pose"]),
        generator=generator_of(fields["generator"]),
        controls=Controls(
            held=held_of(fields["held"], KEYS),
            waiting=waiting_of(fields["waiting"]),
            number=whole(fields["number"], "number"),
        ),
    )


def overwrite(session: Session, given: Session) -> None:
    """Copy a session's values into another's memory, whose tensors keep their addresses."""
    for own, other in zip(session.caches, given.caches, strict=True):
        for name, rows in own.items():
            rows.copy_(other[name])
    session.filled[:] = given.filled
    session.frame = given.frame
    session.pose = given.pose
    session.generator.set_state(given.generator.get_state())
    session.controls = given.controls


def caches_of(config: ReferenceConfig, value: Any) -> list[Cache]:
    caches = []
    for index, cache in enumerate(sequence(value, config.num_layers, "caches")):
        path = f"caches[{index}]"
        tensors = mapping(cache, ("k", "v"), path)
        shape = (1, *cache_shape(config, index))
        caches.append({name: rows_of(tensors[name], shape, f"{path}.{name}") for name in ("k", "v")})
    return caches


def rows_of(value: Any, shape: tuple[int, ...], path: str) -> Tensor:
    require(isinstance(value, Tensor), path, "it must be a tensor")
    require(value.dtype == torch.float32 and value.device.type == "cpu", path, "it must be float32 on the CPU")
    require(tuple(value.shape) == shape, path, f"its shape is {tuple(value.shape)}, not {shape}")
    require(value.is_contiguous() and not value.requires_grad, path, "it must be contiguous, without gradient")
    rows: Tensor = value
    return rows


def filled_of(config: ReferenceConfig, value: Any) -> list[int]:
    entries = sequence(value, config.num_layers, "filled")
    limits = [(f"filled[{i}]", config.cache_rows(i)) for i in range(config.num_layers)]
    block = config.tokens_per_block
    return [whole(rows, path, most=most, step=block) for rows, (path, most) in zip(entries, limits, strict=True)]


def generator_of(value: Any) -> torch.Generator:
    require(isinstance(value, torch.Generator), "generator", "it must be a torch.Generator")
    require(value.device.type == "cpu", "generator", "it must be on the CPU")
    generator: torch.Generator = value
    return generator


def waiting_of(value: Any) -> tuple[KeyChange, ...]:
    changes = sequence(value, None, "waiting")
    require(len(changes) <= MAX_WAITING, "waiting", f"it has {len(changes):,} changes, and at most {MAX_WAITING} wait")
    for index, change in enumerate(changes):
        known = isinstance(change, KeyChange) and change.key in KEYS
        require(known, f"waiting[{index}]", "it is no change of a key of this engine")
    return tuple(changes)
