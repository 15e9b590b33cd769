"""A model in training: its average, its streams, and its three phases.

Phase 1, flow matching, teaches it the world. Phase 2, straightening, freezes the average as a teacher that
walks from noise to picture in twelve steps; the student learns to reach the teacher's picture in one, from
the same noise. Phase 3, deciding, follows the student's own passes of play: where they end between two
tiles, it learns all along the way to end at the nearer one, so that play does not blend what might have been.
"""

import copy
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TypeVar, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from training.agreement import agreed
from training.noise import blend, block_noise, damaged, levels, loss_of, one_of, per_block
from training.optimiser import Optimiser
from training.scenes import Scenes, nearest, paint, scenes
from training.streams import Context, Streams
from training.tiles import NUM_PLAIN
from worldmove.engine.reference.config import ReferenceConfig
from worldmove.engine.reference.model import ReferenceModel

TEACHER_LEVELS = tuple(4 * t / (1 + 3 * t) for t in (1 - step / 12 for step in range(12)))
"""Closer together where much noise is left: there it is decided what kind of country a place becomes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingConfig:
    """``seconds``: of each phase. ``steps``: at most so many of each, if not None."""

    batch: int = 24
    num_frames: int = 64
    device: str = "cuda"
    seconds: tuple[float, float, float] = (110.0, 130.0, 110.0)
    steps: tuple[int | None, int | None, int | None] = (None, None, None)
    seed: int = 0
    num_walks: int = 20_000


Function = TypeVar("Function", bound=Callable[..., object])


def compiled(function: Function, device: str) -> Function:
    """The function, compiled where there is a compiler to count on."""
    if device != "cuda":
        return function
    return cast("Function", torch.compile(function, dynamic=False))


class Trainer:
    """Owns model, average, optimiser and the generator of all training data."""

    def __init__(self, model: ReferenceModel, config: TrainingConfig, walks: NDArray[np.int64]) -> None:
        self.model = model
        self.settings = config
        self.config: ReferenceConfig = model.config
        self.average = copy.deepcopy(model).requires_grad_(requires_grad=False)
        self.streams = Streams(self.config, config.num_frames, config.device)
        self.optimiser = Optimiser(model)
        self.generator = torch.Generator(config.device).manual_seed(config.seed)
        self.walks = torch.from_numpy(walks).to(config.device)
        self._write = compiled(self.streams.write, config.device)
        self._read = compiled(self.streams.read, config.device)

    def batch(self) -> Scenes:
        picked = torch.randint(
            len(self.walks), (self.settings.batch,), generator=self.generator, device=self.settings.device
        )
        return scenes(self.config, self.walks[picked], self.generator)

    def write(self, model: ReferenceModel, clean: Tensor, given: Scenes, turns: Tensor) -> Context:
        with self._precision():
            return self._write(model, clean, given.actions, turns)

    def read(
        self, model: ReferenceModel, noisy: Tensor, level: Tensor, given: Scenes, turns: Tensor, context: Context
    ) -> Tensor:
        with self._precision():
            return self._read(model, noisy, level, given.actions, turns, context).float()

    def flow_step(self, fraction: float, *, own_guesses: bool) -> Tensor:
        """One step of phase 1. With ``own_guesses`` half of the context is the average model's."""
        given = self.batch()
        turns = self.streams.turns(given.poses)
        noise = block_noise(self.config, given.poses, self.generator)
        shape = (given.actions.shape[0], given.actions.shape[1])
        context = damaged(self.config, given.patches, self.generator)
        if own_guesses:
            half = per_block(self.config, shape, 0.5, self.generator)
            context = torch.where(half, self._one_step_guess(given, noise, turns), context)
        level = levels(self.config, shape, (0.20, 0.55), self.generator)
        written = self.write(self.model, context, given, turns)
        guess = self.read(self.model, blend(given.patches, noise, level), level, given, turns, written)
        return self._learn(loss_of(guess, given.patches, level), fraction)

    def straighten_step(self, fraction: float, student: ReferenceModel | None) -> Tensor:
        """One step of phase 2. With ``student``, half of the noisy blocks come from its own first pass."""
        given = self.batch()
        turns = self.streams.turns(given.poses)
        noise = block_noise(self.config, given.poses, self.generator)
        shape = (given.actions.shape[0], given.actions.shape[1])
        target = self.decided(given, self.trajectory(self.average, given, noise, turns, TEACHER_LEVELS)[-1])
        level = levels(self.config, shape, (0.35, 0.40), self.generator)
        reached = target
        if student is not None:
            half = per_block(self.config, shape, 0.5, self.generator)
            reached = torch.where(half, self._first_pass(student, given, noise, turns), target)
        written = self.write(self.model, damaged(self.config, given.patches, self.generator), given, turns)
        guess = self.read(self.model, blend(reached, noise, level), level, given, turns, written)
        return self._learn(loss_of(guess, target, level), fraction)

    def decide_step(self, fraction: float, student: ReferenceModel) -> Tensor:
        """One step of phase 3: from each point of its own way, reach what its last pass all but decided."""
        given = self.batch()
        turns = self.streams.turns(given.poses)
        noise = block_noise(self.config, given.poses, self.generator)
        way = self.trajectory(student, given, noise, turns, self.config.levels)
        target = self.decided(given, way[-1])
        shape = (given.actions.shape[0], given.actions.shape[1])
        picked = one_of(self.config, shape, len(self.config.levels), self.generator)
        level = torch.tensor(self.config.levels, device=noise.device)[picked]
        reached = torch.stack(way[:-1]).take_along_dim(picked[None, ..., None, None], dim=0)[0]
        written = self.write(self.model, damaged(self.config, given.patches, self.generator), given, turns)
        guess = self.read(self.model, reached, level, given, turns, written)
        return self._learn(loss_of(guess, target, level), fraction)

    @torch.no_grad()
    def trajectory(
        self, model: ReferenceModel, given: Scenes, noise: Tensor, turns: Tensor, schedule: tuple[float, ...]
    ) -> list[Tensor]:
        """Every block's way from noise to picture, each after its true past: the input of each pass, then the end."""
        written = self.write(model, given.patches, given, turns)
        way = [noise]
        for level, lower in zip(schedule, (*schedule[1:], 0.0), strict=True):
            at = torch.full(given.actions.shape, level, device=noise.device)
            way.append(torch.lerp(self.read(model, way[-1], at, given, turns, written), way[-1], lower / level))
        return way

    def decided(self, given: Scenes, x: Tensor) -> Tensor:
        """The tiles nearest to patches; frames of a block agree on what they both see, and flags are where they are."""
        index, distance = nearest(self.config, x)
        country = agreed(self.config, index % NUM_PLAIN, distance, given.poses)
        return paint(self.config, country + given.tiles // NUM_PLAIN * NUM_PLAIN)

    @torch.no_grad()
    def _first_pass(self, model: ReferenceModel, given: Scenes, noise: Tensor, turns: Tensor) -> Tensor:
        written = self.write(model, given.patches, given, turns)
        at = torch.ones(given.actions.shape, device=noise.device)
        return self.read(model, noise, at, given, turns, written)

    @torch.no_grad()
    def _one_step_guess(self, given: Scenes, noise: Tensor, turns: Tensor) -> Tensor:
        written = self.write(self.average, given.patches, given, turns)
        blocks = (given.actions.shape[0], given.actions.shape[1] // self.config.frames_per_block)
        drawn = 0.4 + 0.35 * torch.rand(blocks, generator=self.generator, device=noise.device)
        level = drawn.repeat_interleave(self.config.frames_per_block, dim=1)
        return self.read(self.average, blend(given.patches, noise, level), level, given, turns, written)

    def _learn(self, loss: Tensor, fraction: float) -> Tensor:
        loss.backward()
        self.optimiser.step(fraction)
        return loss.detach()

    @torch.no_grad()
    def follow(self, average: ReferenceModel, decay: float) -> None:
        """Let an average follow the model."""
        torch._foreach_lerp_(list(average.parameters()), list(self.model.parameters()), 1 - decay)

    def _precision(self) -> AbstractContextManager[object]:
        return torch.autocast("cuda", dtype=torch.bfloat16) if self.settings.device == "cuda" else nullcontext()
