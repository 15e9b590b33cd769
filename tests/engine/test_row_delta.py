"""What two block boundaries of an engine differ by, found by content alone, against its shapes worked out by hand."""

from typing import Any

import torch

from worldmove.engine import matrix, reference
from worldmove.engine.base import Engine
from worldmove.move.reconcile import Difference, reconcile
from worldmove.state import Arena, adopt, capture, materialise
from worldmove.state.held import Held
from worldmove.state.row_digests import row_digests
from worldmove.state.row_moves import apply
from worldmove.state.rows import rows_of

FRAMES = 3
"""A block of the small matrix engine, in latent frames; its window holds two."""


def between_two_boundaries(engine: Engine[Any], session: Any, row_bytes: int) -> tuple[Difference, int]:
    """Step a session whose memory lies in an arena; return how what was there becomes what is there."""
    torch.set_num_threads(1)
    state = capture(engine.state(session), engine.state_types)
    arena = Arena(state.num_bytes + 512 * len(state.storages), "before")
    placement = adopt(state, arena)
    session = engine.install(materialise(state.manifest, placement, arena, engine.state_types))
    rows, held = rows_of(state.manifest, placement, row_bytes), arena.memory.copy()
    before = Held(rows, row_digests(held, rows))
    engine.step(session, ())
    after = capture(engine.state(session), engine.state_types)
    assert [storage.address for storage in after.storages] == [arena.address + at for at in placement]
    wanted = rows_of(after.manifest, placement, row_bytes)
    found = reconcile(before, wanted, row_digests(arena.memory, wanted), arena.size)
    apply(found.moves, held.data, memoryview(bytearray(found.moves.spare_bytes)))
    for pull in found.pulls:
        held[pull.offset : pull.end] = arena.memory[pull.offset : pull.end]
    for begin, end in zip(wanted.offsets.tolist(), wanted.ends.tolist(), strict=True):
        assert (held[begin:end] == arena.memory[begin:end]).all()
    return found, after.num_bytes


class Latents:
    """The small matrix engine, of which only the attention caches are looked at."""

    def __init__(self) -> None:
        self.engine = matrix.tiny()
        self.session = self.engine.open(3)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.engine, name)

    def state(self, session: Any) -> Any:
        return self.engine.state(session)["latents"]

    def install(self, state: Any, into: Any = None) -> Any:
        assert into is None
        return self.engine.install({**self.engine.state(self.session), "latents": state})


def test_of_the_attention_caches_of_a_large_model_a_block_leaves_three_eighths_to_be_pulled() -> None:
    """No word of the engine's is needed, though the mouse's caches roll inside each of many lines."""
    engine = Latents()
    for _ in range(3):
        engine.step(engine.session, ())
    found, num_bytes = between_two_boundaries(engine, engine.session, 32)
    self_rows = 3 * 2 * FRAMES * 4 * 2 * 16 * 2  # layers, keys and values, frames, tokens, heads, channels, bfloat16
    mouse_rows = 2 * 2 * 4 * FRAMES * 2 * 8 * 2  # working layers, keys and values, places, frames, heads, channels
    keyboard_rows = 2 * 2 * FRAMES * 2 * 8 * 2
    cursors = (3 + 2 + 2) * 8
    new = self_rows + mouse_rows + keyboard_rows + cursors
    assert (new, num_bytes) == (6584, 17040)
    assert new - keyboard_rows <= found.pulled_bytes <= new  # nobody pressed a key: some of these are as they were
    assert found.moved_bytes >= self_rows + mouse_rows
    assert int(found.moves.waves[-1]) == 0


def test_of_an_island_a_block_leaves_a_tenth_to_be_pulled() -> None:
    engine = reference.island()
    session = engine.open(3)
    session.filled = [window * 64 for window in 3 * (8, 48)]
    engine.step(session, ())
    engine.step(session, ())
    found, num_bytes = between_two_boundaries(engine, session, 512)
    new = 3 * 2 * 2 * 64 * (1024 + 512)  # layers of each kind, keys and values, frames, tiles, bytes of a tile
    assert (new, num_bytes) == (1_179_648, 12_582_912)
    assert 0.9 * new <= found.pulled_bytes <= new  # a tile that looks as it did has the values that it had
