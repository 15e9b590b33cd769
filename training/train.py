"""Train the island world: ``python -m training.train --out FOLDER``. About eight minutes on one H200."""

import argparse
import json
from dataclasses import asdict, replace
from pathlib import Path

import torch
from safetensors.torch import save_file

from training.figures import figures
from training.log import Log
from training.optimiser import initialise
from training.phases import decide, flow, straighten
from training.trainer import Trainer, TrainingConfig
from training.walks import walks
from worldmove.engine.reference.config import LayerShape, ReferenceConfig
from worldmove.engine.reference.model import ReferenceModel
from worldmove.engine.reference.presets import island

SMALL_LAYERS = (LayerShape(window=4, num_heads=2), LayerShape(window=6, num_heads=1))


def options_of(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seconds", type=float, nargs=3, default=(110.0, 130.0, 110.0), help="of each phase")
    parser.add_argument("--steps", type=int, nargs=3, help="at most so many of each phase, for a smoke test")
    parser.add_argument("--small", action="store_true", help="a small model on the CPU, for a smoke test")
    parser.add_argument("--sessions", type=int, default=64, help="of the evaluation at the end; 0 skips it")
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args(arguments)


def settings_of(options: argparse.Namespace) -> TrainingConfig:
    full = TrainingConfig(
        seconds=tuple(options.seconds),
        steps=tuple(options.steps) if options.steps else (None, None, None),
        seed=options.seed,
    )
    return replace(full, batch=2, num_frames=16, device="cpu", num_walks=50) if options.small else full


def small() -> ReferenceConfig:
    """The island's geometry around a model that a laptop trains for a few steps in a minute."""
    return replace(island().config, dim=64, mlp_dim=128, layers=SMALL_LAYERS)


def train(config: ReferenceConfig, settings: TrainingConfig, log: Log) -> ReferenceModel:
    """All three phases."""
    torch.set_float32_matmul_precision("high")
    model = ReferenceModel(config)
    initialise(model, settings.seed)
    log.say("start", parameters=sum(parameter.numel() for parameter in model.parameters()))
    pool = walks(settings.num_walks, settings.num_frames, settings.seed)
    trainer = Trainer(model.to(settings.device), settings, pool)
    flow(trainer, log)
    student = straighten(trainer, log)
    decide(trainer, student, log)
    log.say("trained")
    return student


def save(model: ReferenceModel, path: Path) -> None:
    """Write the weights as bfloat16, and round the model to what was written."""
    tensors = {name: tensor.detach().bfloat16().cpu().contiguous() for name, tensor in model.state_dict().items()}
    save_file(tensors, path)
    model.load_state_dict({name: tensor.float() for name, tensor in tensors.items()})


def main() -> None:
    options = options_of()
    settings, log = settings_of(options), Log()
    student = train(small() if options.small else island().config, settings, log)
    options.out.mkdir(parents=True, exist_ok=True)
    save(student, options.out / "island.safetensors")
    if options.sessions:
        report = figures(student, sessions=options.sessions, say=log.say)
        (options.out / "figures.json").write_text(json.dumps(report, indent=1))
    record = {"settings": asdict(settings), "torch": torch.__version__, "log": log.lines}
    (options.out / "training.json").write_text(json.dumps(record, indent=1))


if __name__ == "__main__":
    main()
