"""The reference engine: the contract of ``worldmove.engine.base`` over the model, on the CPU."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from worldmove.engine.base import Block, EngineSpec, FrameNote, KeyChange, Rolled, Tree
from worldmove.engine.reference.actions import ACTIONS, KEYS, Controls, accept, moved, next_action
from worldmove.engine.reference.presets import Preset
from worldmove.engine.reference.sampler import Sampler, canvas_shape, unheard
from worldmove.engine.reference.session import Session, adopt, export, new_session, overwrite
from worldmove.engine.reference.weights import RandomWeights, WeightsFile, load_model
from worldmove.engine.tree_checks import require


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a block's key changes come to, before a picture is drawn."""

    notes: tuple[FrameNote, ...]
    controls: Controls
    pose: tuple[int, int]


class ReferenceEngine:
    """Float32 on the CPU. It fixes torch's thread count and leaves flush-denormal off, for the whole process.

    ``weights``: None takes the preset's own; a path must hold the file that the preset pins.
    Raises WeightsError.
    """

    def __init__(
        self, preset: Preset, *, weights: Path | WeightsFile | RandomWeights | None = None, num_threads: int = 1
    ) -> None:
        self._config = preset.config
        self._num_threads = num_threads
        self._control_arithmetic()
        model, sha256 = load_model(preset.config, chosen(preset, weights))
        self._sampler = Sampler(model)
        self._spec = EngineSpec(
            name="reference",
            preset=preset.name,
            weights_sha256=sha256,
            height=preset.config.height,
            width=preset.config.width,
            frames_per_block=preset.config.frames_per_block,
            frames_per_s=preset.config.frames_per_s,
            keys=KEYS,
            num_threads=num_threads,
        )

    @property
    def spec(self) -> EngineSpec:
        return self._spec

    @property
    def memory_blocks(self) -> int:
        """How many blocks before the one in hand a world remembers."""
        return max(layer.window for layer in self._config.layers) // self._config.frames_per_block - 1

    @property
    def state_types(self) -> Mapping[str, type]:
        return {"KeyChange": KeyChange}

    def warm_up(self) -> None:
        """Step a scratch world at its first block and at one whose windows are full."""
        scratch = self.open(0)
        self.step(scratch, ())
        scratch.filled = [self._config.cache_rows(i) for i in range(self._config.num_layers)]
        self.step(scratch, ())

    def open(self, seed: int) -> Session:
        return new_session(self._config, seed)

    def step(self, session: Session, changes: Sequence[KeyChange]) -> Block:
        return self._step(session, changes, unheard)

    def step_streaming(self, session: Session, changes: Sequence[KeyChange], final: Callable[[str], None]) -> Block:
        """Step, and say of each layer's caches when they are final: in the clean pass, one layer after the other."""
        return self._step(session, changes, lambda layer: final(f"caches[{layer}]"))

    def _step(self, session: Session, changes: Sequence[KeyChange], on_layer: Callable[[int], None]) -> Block:
        plan = self._plan(session, changes)
        index = session.frame // self._config.frames_per_block
        self._control_arithmetic()
        with torch.inference_mode():
            frames = self._sampler.advance(
                session.caches,
                session.filled,
                poses=torch.tensor([[note.pose for note in plan.notes]]),
                actions=torch.tensor([[ACTIONS.index(note.action) for note in plan.notes]]),
                frame=session.frame,
                canvas=torch.randn(1, *canvas_shape(self._config), generator=session.generator),
                on_layer=on_layer,
            )
        session.frame += self._config.frames_per_block
        session.pose = plan.pose
        session.controls = plan.controls
        return Block(index=index, frames=frames[0].numpy(), notes=plan.notes)

    def rolled(self, session: Session) -> Mapping[str, Rolled]:
        """The caches whose windows were full when the last block came."""
        by = Rolled(axis=1, block=self._config.tokens_per_block)
        full = [i for i, layer in enumerate(self._config.layers) if session.frame > layer.window]
        return {f"caches[{index}].{name}": by for index in full for name in ("k", "v")}

    def quiesce(self, session: Session) -> None:
        """Nothing to wait for: ``step`` returns when the last of its writes is done."""

    def state(self, session: Session) -> Tree:
        return export(session)

    def install(self, state: Tree, into: Session | None = None) -> Session:
        given = adopt(self._config, state)
        if into is None:
            return given
        overwrite(into, given)
        return into

    def recover(self, frame: NDArray[np.uint8], seed: int) -> Session:
        """Begin a world whose first block was ``frame``, seen standing still: all that is known of it.

        Raises StateRefused for a picture of another size.
        """
        require(frame.shape == (self._spec.height, self._spec.width, 3), "frame", "it has not this world's size")
        session = self.open(seed)
        num_frames = self._config.frames_per_block
        picture = torch.from_numpy(np.array(frame))  # a copy: the frame given may be read-only
        self._control_arithmetic()
        with torch.inference_mode():
            self._sampler.write(
                session.caches,
                session.filled,
                poses=torch.zeros(1, num_frames, 2, dtype=torch.int64),
                actions=torch.zeros(1, num_frames, dtype=torch.int64),
                frame=0,
                frames=picture.expand(1, num_frames, *picture.shape),
            )
        session.frame = num_frames
        return session

    def _plan(self, session: Session, changes: Sequence[KeyChange]) -> Plan:
        controls, pose = accept(session.controls, changes), session.pose
        notes = []
        for _ in range(self._config.frames_per_block):
            action, controls = next_action(controls, session.controls.held)
            pose = moved(pose, action)
            notes.append(FrameNote(pose=pose, action=action, number=controls.number))
        return Plan(notes=tuple(notes), controls=controls, pose=pose)

    def _control_arithmetic(self) -> None:
        """Both settings decide bytes, and both belong to a thread: the caller's may be a new one."""
        if torch.get_num_threads() != self._num_threads:
            torch.set_num_threads(self._num_threads)
        torch.set_flush_denormal(False)


def chosen(preset: Preset, weights: Path | WeightsFile | RandomWeights | None) -> WeightsFile | RandomWeights:
    """Where the weights come from. A bare path keeps the preset's pin."""
    if weights is None:
        return preset.weights
    if isinstance(weights, Path):
        pinned = preset.weights.sha256 if isinstance(preset.weights, WeightsFile) else None
        return WeightsFile(path=weights, sha256=pinned)
    return weights
