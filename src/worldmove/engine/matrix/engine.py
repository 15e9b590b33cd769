"""The matrix engine: the contract of ``worldmove.engine.base`` at the geometry of a large interactive world model."""

from collections.abc import Callable, Mapping, Sequence

from torch import Tensor

from worldmove.engine.base import Block, EngineSpec, KeyChange, Rolled, Tree
from worldmove.engine.matrix.actions import KEYS, plan
from worldmove.engine.matrix.arithmetic import Arithmetic
from worldmove.engine.matrix.caches import num_working
from worldmove.engine.matrix.conditioning import begin_block, to_latents
from worldmove.engine.matrix.config import MatrixConfig
from worldmove.engine.matrix.decoder import decode
from worldmove.engine.matrix.decoder_weights import DecoderWeights, draw_decoder
from worldmove.engine.matrix.handing import packed, unpacked
from worldmove.engine.matrix.likeness import Likeness
from worldmove.engine.matrix.presets import Preset
from worldmove.engine.matrix.projection import draw_projection, project
from worldmove.engine.matrix.session import (
    DECODER,
    LATENTS,
    Session,
    adopt,
    export,
    new_session,
    overwrite,
    take_values,
)
from worldmove.engine.matrix.sizes import Size, num_bytes, size_of
from worldmove.engine.matrix.transformer import Transformer, places_of
from worldmove.engine.matrix.weights import Draw, Linear, draw_weights, name_of
from worldmove.errors import StateRefused

WARM_UP_BLOCKS = 3
"""The first block, one whose window fills, one whose window rolls: after them no shape is new."""


class MatrixEngine:
    """A transformer with rolling caches and a streaming decoder, on the device that its preset names.

    It fixes torch's settings of arithmetic for the whole process. Raises UserError where that device is not there.
    """

    def __init__(self, preset: Preset, *, num_threads: int = 1) -> None:
        config = self._config = preset.config
        self.arithmetic = Arithmetic(config.device, num_threads)
        device = self.arithmetic.device
        with self.arithmetic.engaged():
            weights = draw_weights(config, Draw(preset.weights_seed, device, config.dtype))
            self._pictures = draw_pictures(config, Draw(preset.weights_seed + 1, device, config.decoder_dtype))
            self._transformer = Transformer(config, weights, device)
        self.arithmetic.finish()
        self._likeness = Likeness()
        self._shared_bytes = num_bytes([weights, self._pictures, self._transformer.workspace])
        self._spec = EngineSpec(
            name="matrix",
            preset=preset.name,
            weights_sha256=name_of(preset.name, preset.weights_seed),
            height=config.height,
            width=config.width,
            frames_per_block=config.video_frames,
            frames_per_s=config.frames_per_s,
            keys=KEYS,
            num_threads=num_threads,
            device=config.device,
        )

    @property
    def spec(self) -> EngineSpec:
        return self._spec

    @property
    def state_types(self) -> Mapping[str, type]:
        """None: a state is made of dicts, lists and tuples."""
        return {}

    @property
    def installs_unread(self) -> bool:
        """It looks at shapes, dtypes and places."""
        return True

    def warm_up(self) -> None:
        scratch = self.open(0)
        for _ in range(WARM_UP_BLOCKS):
            self.step(scratch, ())
        if self.arithmetic.device.type == "cuda":
            with self.arithmetic.engaged():
                self._transformer.capture()
            self.step(scratch, ())

    def open(self, seed: int) -> Session:
        with self.arithmetic.engaged():
            session = new_session(self._config, seed, self.arithmetic.device)
        self.arithmetic.finish()
        return session

    def step(self, session: Session, changes: Sequence[KeyChange]) -> Block:
        return self._step(session, changes)

    def step_streaming(self, session: Session, changes: Sequence[KeyChange], final: Callable[[str], None]) -> Block:
        """Step, and say that the attention caches are final, once they are: while the pictures are drawn."""
        return self._step(session, changes, final)

    @property
    def followed(self) -> tuple[str, ...]:
        """The decoder, where there is one."""
        return (DECODER,) if isinstance(self._pictures, DecoderWeights) else ()

    def step_handing(
        self,
        session: Session,
        changes: Sequence[KeyChange],
        final: Callable[[str], None],
        hand: Callable[[bytes], None],
    ) -> Block:
        """Step, and hand the latents on: while the pictures are drawn."""
        return self._step(session, changes, final, hand)

    def follow(self, part: dict[str, Tree], handed: bytes) -> None:
        """Draw a block's pictures of its latents, for the sake of what the decoder remembers of them."""
        if not isinstance(self._pictures, DecoderWeights):
            raise StateRefused(DECODER, "this model has no decoder")
        with self.arithmetic.engaged():
            latents = unpacked(self._config, handed, self.arithmetic.device)
            decode(self._pictures, part[DECODER], latents)
        self.arithmetic.finish()

    def _step(
        self,
        session: Session,
        changes: Sequence[KeyChange],
        final: Callable[[str], None] | None = None,
        hand: Callable[[bytes], None] | None = None,
    ) -> Block:
        planned = plan(session.stand, changes, self._config.video_frames)
        index = session.frame // self._config.frames_per_block
        with self.arithmetic.engaged():
            latents = self.generate(session, planned.controls)
            if hand is not None:
                hand(packed(self._config, latents))
            if final is not None:
                self.arithmetic.finish()  # what was only ordered so far is done then
                final(LATENTS)
            pictures = self.arithmetic.to_host(self.draw(session, latents))
        session.frame += self._config.frames_per_block
        session.stand = planned.stand
        return Block(index=index, frames=pictures.numpy(), notes=planned.notes)

    def rolled(self, session: Session) -> Mapping[str, Rolled]:
        """The attention caches whose windows were full when the last block came."""
        config = self._config
        found: dict[str, Rolled] = {}
        if session.frame > config.window:
            for kind, place in places_of(config, session.frame - config.frames_per_block).items():
                for index in range(num_working(config, kind)):
                    by = Rolled(axis=1, block=place.shift)
                    found |= {f"{LATENTS}.{kind}[{index}].{name}": by for name in ("k", "v")}
        return found

    def generate(self, session: Session, controls: Sequence[Sequence[float]]) -> Tensor:
        """The first part of a step: make the next block's latents. Afterwards the attention caches are final."""
        conditions = begin_block(self._config, session.conditioning, controls, session.frame)
        patches = self._transformer.generate(session.caches, conditions, session.generator, session.frame)
        return to_latents(self._config, patches)

    def draw(self, session: Session, latents: Tensor) -> Tensor:
        """The second part: make the pictures, uint8 [frames, height, width, 3], on the device."""
        latents = latents.to(self._config.decoder_dtype)
        if isinstance(self._pictures, DecoderWeights):
            return decode(self._pictures, session.features, latents)
        return project(self._pictures, latents)

    def quiesce(self, session: Session) -> None:
        """Wait for the stream that all work is on."""
        self.arithmetic.finish()

    def state(self, session: Session) -> Tree:
        return export(session)

    def install(self, state: Tree, into: Session | None = None) -> Session:
        given = adopt(self._config, state, self.arithmetic.device, self._likeness)
        if into is None:
            return given
        with self.arithmetic.engaged():
            overwrite(into, given)
        self.arithmetic.finish()
        return into

    def take_values(self, session: Session, state: Tree) -> None:
        take_values(self._config, session, state, self.arithmetic.device)

    def size(self, session: Session, scope: str) -> Size:
        """How large a session is, in one scope: ``latents`` or ``complete``."""
        return size_of(self._config, export(session), scope, self._shared_bytes)


def draw_pictures(config: MatrixConfig, draw: Draw) -> DecoderWeights | Linear:
    """Draw what makes pictures of latents: the decoder, or a projection where there is none."""
    width = config.decoder_width
    return draw_projection(config, draw) if width is None else draw_decoder(config, width, draw)
