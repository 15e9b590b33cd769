from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from worldmove.engine.reference.engine import ReferenceEngine
from worldmove.engine.reference.presets import ISLAND_SHA256, Preset, island, tiny
from worldmove.engine.reference.weights import RandomWeights, WeightsFile, load_model
from worldmove.errors import WeightsError


def pinned(path: Path, sha256: str | None) -> Preset:
    return Preset(name="tiny", config=tiny().config, weights=WeightsFile(path=path, sha256=sha256))


@pytest.fixture
def drawn(tmp_path: Path) -> Path:
    """A weights file of the tiny model."""
    model, _ = load_model(tiny().config, RandomWeights(seed=3))
    path = tmp_path / "tiny.safetensors"
    save_file({name: tensor.bfloat16() for name, tensor in model.state_dict().items()}, path)
    return path


def test_the_packaged_weights_are_the_pinned_ones_and_make_a_world() -> None:
    engine = ReferenceEngine(island())
    assert engine.spec.weights_sha256 == ISLAND_SHA256
    frames = engine.step(engine.open(0), ()).frames
    assert frames.shape == (2, 64, 64, 3)
    assert frames.std() > 20


def test_the_packaged_weights_are_small() -> None:
    weights = island().weights
    assert isinstance(weights, WeightsFile)
    assert weights.path.stat().st_size <= 16 * 2**20


def test_a_file_is_named_by_its_bytes_and_computed_in_float32(drawn: Path) -> None:
    import hashlib

    sha256 = hashlib.sha256(drawn.read_bytes()).hexdigest()
    assert ReferenceEngine(pinned(drawn, sha256)).spec.weights_sha256 == sha256
    model, _ = load_model(tiny().config, WeightsFile(path=drawn, sha256=None))
    assert {tensor.dtype for tensor in model.state_dict().values()} == {torch.float32}


@pytest.mark.parametrize("kind", ["missing", "another", "damaged", "cut"])
def test_weights_that_are_not_the_pinned_ones_are_refused_in_one_sentence(drawn: Path, kind: str) -> None:
    import hashlib

    sha256: str | None = hashlib.sha256(drawn.read_bytes()).hexdigest()
    data = drawn.read_bytes()
    if kind == "missing":
        drawn.unlink()
    elif kind == "another":
        drawn.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    else:
        drawn.write_bytes(b"not weights" if kind == "damaged" else data[:-10])
        sha256 = None
    with pytest.raises(WeightsError, match="install worldmove again"):
        ReferenceEngine(pinned(drawn, sha256))


def test_a_path_keeps_the_presets_pin(drawn: Path) -> None:
    with pytest.raises(WeightsError, match="not the ones this version pins"):
        ReferenceEngine(island(), weights=drawn)


def test_weights_of_another_model_are_refused(drawn: Path) -> None:
    with pytest.raises(WeightsError, match="another model"):
        ReferenceEngine(island(), weights=WeightsFile(path=drawn, sha256=None))
